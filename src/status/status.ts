// What GET /v1/status returns and `svc status` shows: the queue, the store, the listeners, the periodic jobs and the
// process at one time, in the API's spelling. Its `ready` decides GET /readyz.
import { isoTime, isoTimeOrNull, type Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Dnsbl } from "../dnsbl/dnsbl.ts";
import type { Maintenance } from "../maintenance/maintenance.ts";
import { defaultAccount } from "../model/account.ts";
import { queuePrefixOf } from "../queue/queue-name.ts";
import { adviceOf, effectOf, subjectOf, type PoolProblem } from "../pools/problems.ts";
import type { Store } from "../store/store.ts";

export interface StatusDeps {
  store: Pick<Store, "queueCounts" | "pausedAccounts" | "health" | "accountByKey" | "scheduledQueues">;
  config: Pick<Config, "hostname" | "dev">;
  clock: Clock;
  version: string;
  startedAt: number;
  maintenance: Pick<Maintenance, "window">;
  poolProblems(): PoolProblem[];
  certificateTroubles(): { name: string; error: string; nextAt: number | null }[];
  dnsbl: Pick<Dnsbl, "summary" | "zones">;
  listeners(): { name: string; address: string }[];
  jobs(): object[];
}

/** GET /v1/certificates has all. */
const mostTroubles = 100;

export function createStatus(deps: StatusDeps): () => Promise<object> {
  const { store, config, clock } = deps;
  return async () => {
    const window = deps.maintenance.window();
    const [queue, paused, health, pools] = await Promise.all([
      store.queueCounts(),
      store.pausedAccounts(),
      store.health(),
      poolProblems(store, deps.poolProblems()),
    ]);
    return {
      version: deps.version,
      hostname: config.hostname,
      dev: config.dev,
      started_at: isoTime(deps.startedAt),
      uptime_seconds: Math.max(0, Math.round((clock.now() - deps.startedAt) / 1000)),
      ready: health.writable && !health.full && window === null,
      maintenance: window && { since: isoTime(window.since), until: isoTimeOrNull(window.until) },
      paused_accounts: paused.map(({ name, pausedAt, pauseReason }) => ({
        name,
        paused_at: isoTimeOrNull(pausedAt),
        pause_reason: pauseReason,
      })),
      pool_problems: pools,
      certificate_problems: deps
        .certificateTroubles()
        .slice(0, mostTroubles)
        .map(({ name, error, nextAt }) => ({
          name,
          error,
          next_attempt_at: isoTimeOrNull(nextAt),
        })),
      blacklists: blacklistsOf(deps.dnsbl),
      queue: {
        scheduled: queue.scheduled,
        queued: queue.queued,
        deferred: queue.deferred,
        sending: queue.sending,
        held: queue.held,
        oldest_due_at: isoTimeOrNull(queue.oldestDueAt),
      },
      store: {
        ...health.engine,
        schema_version: health.schemaVersion,
        free_bytes: health.freeBytes,
        writable: health.writable,
        full: health.full,
      },
      listeners: deps.listeners(),
      jobs: deps.jobs(),
      memory_bytes: process.memoryUsage.rss(),
    };
  };
}

/** How many addresses are looked up at how many blocklists, which list them, and which blocklists cannot be used. */
function blacklistsOf(dnsbl: StatusDeps["dnsbl"]): object {
  const { addresses, listed } = dnsbl.summary();
  const zones = dnsbl.zones();
  const zoneOf = new Map(zones.map(({ zone }) => [zone.zone, zone]));
  return {
    ip_addresses: addresses,
    zones: zones.length,
    listed: listed.map(({ address, zone, listedAt }) => ({
      ip_address: address,
      blacklist_name: zoneOf.get(zone)?.name ?? zone,
      blacklist_zone: zone,
      listed_at: isoTimeOrNull(listedAt),
      removal_url: zoneOf.get(zone)?.removalUrl ?? null,
    })),
    unusable_zones: zones.flatMap(({ zone, tested }) =>
      tested === null || tested.health.status === "ok"
        ? []
        : [{ zone: zone.zone, health: tested.health.status, detail: tested.health.detail }],
    ),
  };
}

/** A pool without addresses is a new one: it is a problem only when mail waits for it. */
async function poolProblems(store: StatusDeps["store"], problems: PoolProblem[]): Promise<object[]> {
  const shown: object[] = [];
  for (const problem of problems)
    if (problem.addresses.length > 0 || (await hasMail(store, problem)))
      shown.push(await poolProblemOf(store, problem));
  return shown;
}

async function hasMail(store: StatusDeps["store"], { accountKey, pool }: PoolProblem): Promise<boolean> {
  const ofPool = queuePrefixOf(accountKey, pool);
  const [next] = await store.scheduledQueues(ofPool, 1);
  return next?.queueName.startsWith(ofPool) === true;
}

async function poolProblemOf(store: StatusDeps["store"], problem: PoolProblem): Promise<object> {
  const account = (await store.accountByKey(problem.accountKey))?.name ?? defaultAccount;
  return {
    account,
    ip_pool: problem.pool,
    mail_waits: problem.waits !== null,
    problem: subjectOf(problem),
    effect: effectOf(problem),
    advice: adviceOf(problem, account),
    ips: problem.addresses.map(({ address, fault }) => ({ ip_address: address, status: fault })),
  };
}
