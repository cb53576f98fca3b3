// The calls about webhook endpoints and the deliveries to them: claim what is due, settle it, replay it.
import type { Page, PageRequest } from "../../model/page.ts";
import type {
  DeliveryAttempt,
  DeliveryAttemptFilter,
  DeliveryResult,
  DueDelivery,
  LeasedDelivery,
} from "../../model/webhook-delivery.ts";
import type { Endpoint, EndpointChange, ReplayRequest } from "../../model/webhook.ts";

export interface EndpointDue {
  endpointKey: number;
  accountKey: number;
  /** Of its earliest delivery; 0: a first attempt waits. */
  dueAt: number;
  /** Attempts in a row that failed. */
  failures: number;
  /** Of a failing endpoint (model/webhook.ts) with first attempts: of its earliest retry; null: there is none. */
  retryAt: number | null;
}

/** What was queued: the account's events up to `seq`, for its endpoints up to `endpointKey`; null: for all. */
export interface FanOutPiece {
  seq: number;
  endpointKey: number | null;
}

export interface WebhookStore {
  /** Throws LimitReached where the account would have more than `most`. */
  createEndpoint(endpoint: Omit<Endpoint, "key">, most?: number): Promise<Endpoint>;
  endpoint(accountKey: number, id: string): Promise<Endpoint | null>;
  endpointByKey(key: number): Promise<Endpoint | null>;
  listEndpoints(accountKey: number): Promise<Endpoint[]>;
  /** `discardBacklog`: pending deliveries are dropped; the events stay in the pull API. */
  updateEndpoint(
    accountKey: number,
    id: string,
    change: EndpointChange,
    options?: { discardBacklog?: boolean },
  ): Promise<Endpoint | null>;
  /** Signs with `secret` from now on, and until `previousUntil` with the one before as well; null: no more. */
  rotateSecret(
    accountKey: number,
    id: string,
    rotation: { secret: string; previousUntil: number | null; at: number },
  ): Promise<Endpoint | null>;
  /** Requeues events, with all their attempts; answers how many. Events that are queued already are left alone. null: no such endpoint. */
  replayDeliveries(accountKey: number, id: string, which: ReplayRequest, at: number): Promise<number | null>;
  deleteEndpoint(accountKey: number, id: string): Promise<boolean>;
  /** Accounts with events that are still to be queued for some of their endpoints. */
  accountsToFanOut(): Promise<number[]>;
  /** Queues a piece of them, after the piece before, if there was one; null: nothing waits. */
  fanOut(accountKey: number, before: FanOutPiece | null): Promise<FanOutPiece | null>;
  /** Active endpoints with pending deliveries. */
  endpointsDue(): Promise<EndpointDue[]>;
  /** First attempts in event order before retries, or `retriesOnly`, leased to the boot `owner`; raises and writes the attempt number. */
  claimDeliveries(claim: {
    owner: string;
    accountKey: number;
    endpointKey: number;
    limit: number;
    now: number;
    retriesOnly?: boolean;
  }): Promise<{ deliveries: DueDelivery[]; nextDueAt: number | null }>;
  /** Of one account. A result whose attempt lost its lease is left out, unless the event was delivered. */
  settleDeliveries(results: DeliveryResult[]): Promise<void>;
  /** Puts back what was claimed and not tried: its attempt does not count, unless it is to be `counted`. */
  requeueDeliveries(deliveries: LeasedDelivery[], at: number, how?: { counted?: boolean }): Promise<void>;
  /**
   * At start: what is leased, neither to a living boot nor to one of another node than that of `owner`, is due at `now`, and
   * each attempt listed as failed; answers how many.
   */
  takeBackDeliveries(owner: string, now: number): Promise<number>;
  /** Attempts of the endpoint: events newest first, of each the last attempt first. null: no such endpoint. */
  listDeliveries(
    accountKey: number,
    id: string,
    filter: DeliveryAttemptFilter,
    page: PageRequest,
  ): Promise<Page<DeliveryAttempt> | null>;
}
