// The one interface through which every module keeps and finds things. Calls say an intent, take and return plain
// values, and are asynchronous: nothing outside this module knows SQL, SQLite or threads, or that another engine may
// stand behind it. Time comes in as an argument. A call that writes is answered only after its commit is on disk;
// StoreUnavailable means that nothing of it was kept. The calls stand by noun in interface/, the nouns in model/.
import type { AnsweredResult, AnswerRequest, KeptAnswer } from "../model/idempotency.ts";
import type { AccountStore } from "./interface/accounts.ts";
import type { AuditStore } from "./interface/audit.ts";
import type { ApiKeyStore } from "./interface/api-keys.ts";
import type { BackupStore } from "./interface/backups.ts";
import type { BootStore } from "./interface/boots.ts";
import type { DomainStore } from "./interface/domains.ts";
import type { EngineStore } from "./interface/engine.ts";
import type { ErasureStore } from "./interface/erasure.ts";
import type { EventStore } from "./interface/events.ts";
import type { InboxStore } from "./interface/inbox.ts";
import type { IpPoolStore } from "./interface/ip-pools.ts";
import type { ListingStore } from "./interface/listings.ts";
import type { MaintenanceStore } from "./interface/maintenance.ts";
import type { MessageStore } from "./interface/messages.ts";
import type { MtaStsStore } from "./interface/mta-sts.ts";
import type { NxdomainRecheckStore } from "./interface/nxdomain-rechecks.ts";
import type { QueueStore } from "./interface/queue.ts";
import type { QueueEntryStore } from "./interface/queue-entries.ts";
import type { QueuePauseStore } from "./interface/queue-pauses.ts";
import type { ReportStore } from "./interface/reports.ts";
import type { RetentionStore } from "./interface/retention.ts";
import type { SendingPauseStore } from "./interface/sending-pause.ts";
import type { ShapingStore } from "./interface/shaping.ts";
import type { SmtpCredentialStore } from "./interface/smtp-credentials.ts";
import type { StatisticsStore } from "./interface/statistics.ts";
import type { SuppressionStore } from "./interface/suppressions.ts";
import type { TlsResultStore } from "./interface/tls-results.ts";
import type { TrackingStore } from "./interface/tracking.ts";
import type { WarmupStore } from "./interface/warmups.ts";
import type { WebhookStore } from "./interface/webhooks.ts";

export type { Health } from "./interface/engine.ts";
export type { FanOutPiece } from "./interface/webhooks.ts";
export type { TlsResultDay } from "./interface/tls-results.ts";

export interface Store
  extends
    AccountStore,
    ApiKeyStore,
    SmtpCredentialStore,
    BackupStore,
    BootStore,
    DomainStore,
    MessageStore,
    QueueStore,
    QueueEntryStore,
    QueuePauseStore,
    SendingPauseStore,
    MaintenanceStore,
    MtaStsStore,
    ShapingStore,
    ReportStore,
    EventStore,
    SuppressionStore,
    NxdomainRecheckStore,
    WebhookStore,
    AuditStore,
    IpPoolStore,
    WarmupStore,
    ListingStore,
    InboxStore,
    StatisticsStore,
    TlsResultStore,
    TrackingStore,
    ErasureStore,
    RetentionStore,
    EngineStore {
  /**
   * Runs `effect` and keeps what `answer` makes of its result, under the request's key where it has one, with what the
   * audit log records: in one transaction with what it wrote, at most one call of the store that it is given. What
   * either throws is thrown on, and nothing is kept. Both may run again where another write came between, so nothing
   * else may happen in them.
   */
  withIdempotency<T>(
    request: AnswerRequest | null,
    effect: (store: Store) => Promise<T>,
    answer: (result: T) => KeptAnswer,
  ): Promise<AnsweredResult<T>>;
}

/** The store could not write: nothing of the call was kept. `full`: no room; `failed`: the disk or engine refused. */
export class StoreUnavailable extends Error {
  readonly why: "full" | "failed";
  constructor(why: "full" | "failed", detail: string, options?: ErrorOptions) {
    super(detail, options);
    this.name = "StoreUnavailable";
    this.why = why;
  }
}

/** The account has as many of these as it may; nothing was written. */
export class LimitReached extends Error {
  /** How many it has. */
  readonly has: number;
  constructor(has: number) {
    super(`the account has ${has}, which is its limit`);
    this.name = "LimitReached";
    this.has = has;
  }
}

/** The content was removed by retention. */
export class ContentGone extends Error {}

/** Another process has the store open. */
export class StoreLocked extends Error {
  readonly code = "STORE_LOCKED";
}
