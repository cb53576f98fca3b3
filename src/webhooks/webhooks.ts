// Endpoints, fan-out and dispatch of events to customers' HTTPS endpoints. For which endpoints an event is queued is
// decided in the store, with its record or, of an account with many, soon after (fan-out.ts); here they are posted (dispatcher.ts, post.ts), signed
// (signature.ts), tried again (schedule.ts) and kept from leading into the operator's network (ssrf-filter.ts).
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import { createAllowList, isPublicAddress } from "../dns/networks.ts";
import type { Resolver } from "../dns/resolver.ts";
import { Refusal } from "../errors.ts";
import { isEventType, type EventType } from "../events/catalog.ts";
import type { Recorder } from "../events/record.ts";
import type { Log } from "../log.ts";
import type { DeliveryResult } from "../model/webhook-delivery.ts";
import type { Endpoint } from "../model/webhook.ts";
import type { Service } from "../service.ts";
import type { Store } from "../store/store.ts";
import type { DispatchStore } from "./dispatcher.ts";
import { createDispatcher } from "./dispatcher.ts";
import { createFanOut } from "./fan-out.ts";
import { createSsrfFilter, readEndpointUrl } from "./ssrf-filter.ts";
import { createPost } from "./post.ts";
import type { DeadLetter } from "./results.ts";

export interface TestResult {
  delivered: boolean;
  status: number | null;
  durationMs: number;
  /** Why there was no answer; null where there was one. */
  failure: string | null;
  eventId: string;
}

export interface Webhooks extends Service {
  /** Events were committed: look for deliveries now. */
  kick(): void;
  /** The endpoint may have been repaired, resumed or moved: its events are tried now. */
  retryNow(endpointKey: number): void;
  /** One attempt now, no retry, `data.test=true`. */
  test(endpoint: Endpoint, type?: string): Promise<TestResult>;
  /** Throws Refusal validation_failed where a URL may not be an endpoint (decision on the resolved addresses). */
  checkUrl(url: string): Promise<void>;
}

export interface WebhooksDeps {
  store: DispatchStore & Pick<Store, "takeBackDeliveries" | "accountsToFanOut" | "fanOut">;
  /** This boot; what an earlier one of its node held is taken back at start. */
  owner: string;
  recorder: Pick<Recorder, "test">;
  config: Config["webhooks"];
  resolver: Pick<Resolver, "a" | "aaaa">;
  clock: Clock;
  log: Log;
  /** Called after the dead letter is on disk. */
  onDeadLetter(letter: DeadLetter): void;
  /** An attempt ended, and came to this. */
  onAttempt?(endpoint: Endpoint, result: DeliveryResult["result"]["kind"]): void;
}

/** Throws where `webhooks.ca_file` cannot be read or a network of `webhooks.allow_networks` is none. */
export function createWebhooks(deps: WebhooksDeps): Webhooks {
  const { config, clock, resolver } = deps;
  const allowed = createAllowList(config.allowNetworks);
  const ssrfFilter = createSsrfFilter({
    resolver,
    mayDial: (address) => isPublicAddress(address) || allowed(address),
  });
  const post = createPost({ config, ssrfFilter, clock });
  const log = deps.log.component("webhooks");
  const dispatcher = createDispatcher({ ...deps, ...config, post, log });
  const fanOut = createFanOut({ ...deps, log });
  return {
    name: "webhooks",
    async start() {
      const taken = await deps.store.takeBackDeliveries(deps.owner, clock.now());
      if (taken > 0) log.warn({ deliveries: taken }, "requeued the webhooks that the last run had claimed");
      dispatcher.start();
      fanOut.kick();
    },
    async stop() {
      await Promise.all([fanOut.stop(), dispatcher.stop()]);
    },
    kick() {
      dispatcher.kick();
      fanOut.kick();
    },
    retryNow: (endpointKey) => dispatcher.retryNow(endpointKey),
    checkUrl: (url) => ssrfFilter.check(url),
    async test(endpoint, type) {
      const event = deps.recorder.test(endpoint, type === undefined ? undefined : knownType(type));
      const pool = post.open(readEndpointUrl(endpoint.url), 1, endpoint.accountKey);
      try {
        const { body: _body, ...answer } = await post.post(() => pool, endpoint, event, 1);
        if (answer.delivered) dispatcher.retryNow(endpoint.key);
        return { ...answer, eventId: event.id };
      } finally {
        void pool.destroy();
      }
    },
  };
}

function knownType(type: string): EventType {
  if (isEventType(type)) return type;
  const issue = "is not an event type";
  throw new Refusal("validation_failed", `event ${issue}`, {
    field: "event",
    errors: [{ field: "event", code: "validation_failed", issue }],
  });
}
