// What the HTTP server is given, and what it hands to its routes.
import type { Access } from "../access/access.ts";
import type { Activity } from "../activity/activity.ts";
import type { AbuseGuard } from "../sending-pause/abuse-guard.ts";
import type { Maintenance } from "../maintenance/maintenance.ts";
import type { Backups } from "../backup/backup.ts";
import type { StoreChecks } from "../backup/check.ts";
import type { Retention } from "../retention/retention.ts";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Doctor } from "../doctor/doctor.ts";
import type { Dnsbl } from "../dnsbl/dnsbl.ts";
import type { Domains } from "../domains/domains.ts";
import type { IdMint } from "../ids.ts";
import type { Log, LogLines } from "../log.ts";
import type { Parsing } from "../parsing/parsing.ts";
import type { Pools } from "../pools/pools.ts";
import type { QueueAdmin } from "../queue/queue-admin.ts";
import type { QueuePauses } from "../queue/queue-pauses.ts";
import type { Probe } from "../model/probe.ts";
import type { Reloaded } from "../model/reload.ts";
import type { Runner } from "../queue/runner.ts";
import type { ShapingRules } from "../queue/shaping-rules.ts";
import type { Store } from "../store/store.ts";
import type { Submission } from "../submission/submission.ts";
import type { Certificates } from "../tls/certificates.ts";
import type { NameCertificates } from "../tls/name-certificates.ts";
import type { Tls } from "../tls/tls.ts";
import type { Webhooks } from "../webhooks/webhooks.ts";
import type { Streams } from "./streams.ts";
import type { TrackingParts } from "./tracking.ts";

export interface HttpDeps {
  config: Config;
  /** null where tls.mode is off. */
  certificates: Certificates | null;
  /** Those of tracking names. */
  trackingCertificates: NameCertificates | null;
  tls: Pick<Tls, "list" | "renew" | "install">;
  store: Store;
  access: Access;
  submission: Submission;
  domains: Domains;
  webhooks: Webhooks;
  maintenance: Maintenance;
  backups: Pick<Backups, "begin" | "running" | "last" | "list">;
  storeChecks: Pick<StoreChecks, "begin" | "running" | "last">;
  retention: Pick<Retention, "begin" | "running" | "last" | "expired">;
  guard: Pick<AbuseGuard, "resume">;
  pools: Pools;
  queueAdmin: QueueAdmin;
  queuePauses: Pick<QueuePauses, "list" | "of" | "reload">;
  dnsbl: Pick<Dnsbl, "listings" | "zones" | "check" | "test" | "zonesChanged">;
  shapingRules: ShapingRules;
  queue: Pick<Runner, "waitOf">;
  /** Mail to a mailbox, up to the reply to RCPT; null: as many probes run as may. */
  probe(request: { accountKey: number; pool: string; rcptTo: string; domain: string }): Promise<Probe | null>;
  parsing: Pick<Parsing, "readContent">;
  tracking: TrackingParts;
  clock: Clock;
  log: Log;
  logLines: LogLines;
  mint: IdMint;
  /** What GET /v1/status shows; its `ready` decides /readyz. */
  status(): Promise<object>;
  doctor: Pick<Doctor, "run">;
  /** What Prometheus reads. */
  metrics(): Promise<string>;
  activity: Pick<Activity, "now">;
  /** Reads again what can be read again while the program runs. */
  reload(): Promise<Reloaded>;
}

export interface RouteDeps extends HttpDeps {
  streams: Streams;
}
