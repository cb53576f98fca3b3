// The calls of the Store that webhooks make, in memory, with what their comments promise:
// first attempts in event order before retries, the attempt number raised and a lease taken at the claim.
import type { DeliveryResult, LeasedDelivery } from "../../src/model/webhook-delivery.ts";
import { everyEvent, failingAfter, type Endpoint } from "../../src/model/webhook.ts";
import type { StoreUnavailable } from "../../src/store/store.ts";
import type { DispatchStore } from "../../src/webhooks/dispatcher.ts";

export interface Row {
  endpointKey: number;
  eventSeq: number;
  eventId: string;
  body: string;
  attempts: number;
  /** 0 for a first attempt. */
  dueAt: number;
  leased: boolean;
  status: "pending" | "delivered" | "dead_lettered";
}

export class MemoryStore implements DispatchStore {
  endpoints = new Map<number, Endpoint>();
  rows: Row[] = [];
  results: DeliveryResult[] = [];
  claims: { endpointKey: number; limit: number; claimed: number }[] = [];
  /** Thrown by every call while it is set. */
  refusal: StoreUnavailable | null = null;
  #waiting: { count: number; resolve: () => void }[] = [];

  addEndpoint(endpoint: Partial<Endpoint> & { key: number; url: string; secret: string }): Endpoint {
    const full: Endpoint = {
      id: `whk_${endpoint.key}`,
      accountKey: 1,
      eventMask: everyEvent,
      description: null,
      active: true,
      previousSecret: null,
      previousSecretUntil: null,
      createdAt: 0,
      updatedAt: 0,
      lastSuccessAt: null,
      lastFailureAt: null,
      consecutiveFailures: 0,
      failingSince: null,
      format: "svc",
      ...endpoint,
    };
    this.endpoints.set(full.key, full);
    return full;
  }
  /** `count` events, one delivery each at `endpointKey`. */
  record(endpointKey: number, count: number): void {
    for (let i = 0; i < count; i++) {
      const eventSeq = this.rows.length + 1;
      const eventId = `evt_${eventSeq}`;
      const body = `{"event":"message.delivered","event_id":"${eventId}","data":{"subject":"Grüße \\u2028 ${eventSeq}"}}`;
      this.rows.push({
        endpointKey,
        eventSeq,
        eventId,
        body,
        attempts: 0,
        dueAt: 0,
        leased: false,
        status: "pending",
      });
    }
  }
  /** Resolves once `count` results have been written in all. */
  settled(count: number): Promise<void> {
    return this.results.length >= count
      ? Promise.resolve()
      : new Promise((resolve) => this.#waiting.push({ count, resolve }));
  }

  #pending(endpointKey: number): Row[] {
    return this.endpoints.get(endpointKey)?.active
      ? this.rows.filter((row) => row.endpointKey === endpointKey && row.status === "pending")
      : [];
  }
  #waitingOf(endpointKey: number): Row[] {
    return this.#pending(endpointKey).filter(({ leased }) => !leased);
  }
  async accountsToFanOut() {
    return [];
  }
  async fanOut() {
    return null;
  }
  async endpointsDue() {
    this.#refuse();
    return [...this.endpoints.values()].flatMap(({ key: endpointKey, accountKey }) => {
      const due = this.#waitingOf(endpointKey).map((row) => row.dueAt);
      const failures = this.endpoints.get(endpointKey)?.consecutiveFailures ?? 0;
      const retries = due.filter((at) => at > 0);
      const both = failures >= failingAfter && retries.length > 0 && retries.length < due.length;
      const retryAt = both ? Math.min(...retries) : null;
      return due.length === 0
        ? []
        : [{ endpointKey, accountKey, dueAt: Math.min(...due), failures, retryAt }];
    });
  }
  async endpointByKey(key: number) {
    return this.endpoints.get(key) ?? null;
  }
  async claimDeliveries(wanted: Parameters<DispatchStore["claimDeliveries"]>[0]) {
    const { owner, endpointKey, limit, now, retriesOnly = false } = wanted;
    const from = retriesOnly ? 1 : 0;
    this.#refuse();
    const rank = (row: Row): number => (row.attempts === 0 ? 0 : 1);
    const due = this.#pending(endpointKey)
      .filter((row) => !row.leased && row.dueAt >= from && row.dueAt <= now)
      .sort((a, b) => rank(a) - rank(b) || a.dueAt - b.dueAt || a.eventSeq - b.eventSeq)
      .slice(0, limit);
    const deliveries = due.map((row) => {
      row.attempts = Math.min(row.attempts, 10) + 1;
      row.leased = true;
      return {
        accountKey: 1,
        endpointKey,
        eventSeq: row.eventSeq,
        eventId: row.eventId,
        owner,
        attempt: row.attempts,
        body: row.body,
      };
    });
    this.claims.push({ endpointKey, limit, claimed: deliveries.length });
    const rest = this.#waitingOf(endpointKey).flatMap(({ dueAt }) => (dueAt >= from ? dueAt : []));
    return { deliveries, nextDueAt: rest.length === 0 ? null : Math.min(...rest) };
  }
  async requeueDeliveries(deliveries: LeasedDelivery[], at: number, { counted = false } = {}) {
    this.#refuse();
    for (const { endpointKey, eventSeq, attempt } of deliveries) {
      const row = this.rows.find((other) => other.endpointKey === endpointKey && other.eventSeq === eventSeq);
      if (!row?.leased || row.attempts !== attempt) continue;
      row.leased = false;
      if (!counted) row.attempts--;
      row.dueAt = row.attempts === 0 ? 0 : at;
    }
  }
  async settleDeliveries(results: DeliveryResult[]) {
    this.#refuse();
    for (const { endpointKey, eventSeq, result } of results) {
      const row = this.rows.find((other) => other.endpointKey === endpointKey && other.eventSeq === eventSeq);
      if (!row) continue;
      row.leased = false;
      const endpoint = this.endpoints.get(endpointKey);
      if (endpoint)
        endpoint.consecutiveFailures = result.kind === "delivered" ? 0 : endpoint.consecutiveFailures + 1;
      if (result.kind === "retry") row.dueAt = result.dueAt;
      else row.status = result.kind;
    }
    this.results.push(...results);
    for (const one of this.#waiting) if (this.results.length >= one.count) one.resolve();
  }
  async takeBackDeliveries() {
    return 0;
  }
  #refuse(): void {
    if (this.refusal) throw this.refusal;
  }
}
