// Endpoints, fan-out and dispatch of events to customers' HTTPS endpoints.
import type { Endpoint } from "../store/store.ts";
import type { Service } from "../service.ts";

export interface TestResult {
  delivered: boolean;
  status: number | null;
  durationMs: number;
  eventId: string;
}

export interface Webhooks extends Service {
  /** Events were committed: look for deliveries now. */
  kick(): void;
  /** One attempt now, no retry, `data.test=true`. */
  test(endpoint: Endpoint, type?: string): Promise<TestResult>;
  /** Throws Refusal validation_failed where a URL may not be an endpoint (decision on the resolved addresses). */
  checkUrl(url: string): Promise<void>;
}
