// The NXDOMAIN recheck. A recipient whose domain does not exist (NXDOMAIN) bounces at once, and is suppressed only when a
// second look-up, 15 minutes later or more, agrees: one broken resolver must not fill the suppression list. The resolver
// is trusted while it finds domains that are known to exist: those that accepted mail of ours lately or, where there are
// none, the sender's return path, which was found when the sender's domain was verified. Without an answer within two
// days the recipient is not suppressed.
import { hourMs, minuteMs, type Clock } from "../clock.ts";
import type { Resolver } from "../dns/resolver.ts";
import type { Log } from "../log.ts";
import type { Outcome } from "../mail/outcome.ts";
import type { Job } from "../model/queued-recipient.ts";
import type { NxdomainRecheck } from "../model/suppression.ts";
import type { HasJobs } from "../service.ts";
import type { Store } from "../store/store.ts";
import { bounceEntry, isSimulated, suppresses } from "./policy.ts";

const waitMs = 15 * minuteMs;
const giveUpMs = 48 * hourMs;
/** Look-ups of one run; the rest waits for the next. */
const mostPerRun = 500;
const mostAtOnce = 20;
const knownDomains = 5;

/** The recheck of a bounce because of NXDOMAIN; null: this outcome needs none. `at`: when it bounced. */
export function nxdomainRecheckFor(
  job: Job,
  outcome: Outcome,
  eventId: string,
  at: number,
): NxdomainRecheck | null {
  if (outcome.kind !== "bounced" || outcome.classification !== "invalid_domain") return null;
  if (isSimulated(job) || suppresses(job, outcome)) return null;
  return {
    domain: job.domain,
    knownName: job.message.returnPathDomain,
    since: at,
    dueAt: at + waitMs,
    entry: bounceEntry(job, outcome.reply, eventId),
  };
}

export interface NxdomainRecheckDeps {
  store: Pick<Store, "nxdomainRechecksDue" | "settleNxdomainRechecks" | "domainsDelivered">;
  /** Without a cache: a recheck must query the DNS again. */
  resolver: Pick<Resolver, "mx">;
  clock: Clock;
  log: Log;
}

/** `run` rechecks the domains that are due. */
export function createNxdomainRecheck({ store, resolver, clock, log }: NxdomainRecheckDeps): HasJobs & {
  run(): Promise<void>;
} {
  /** null: the look-up failed. */
  const exists = async (name: string): Promise<boolean | null> => {
    const { kind } = await resolver.mx(name, "suppressions");
    return kind === "failed" ? null : kind !== "nxdomain";
  };

  /** Looks up each domain of one run once. */
  const recheck = async (due: NxdomainRecheck[], now: number): Promise<Results> => {
    const answers = new Map<string, Promise<boolean | null>>();
    const lookUp = (name: string): Promise<boolean | null> => {
      const answer = answers.get(name) ?? exists(name);
      answers.set(name, answer);
      return answer;
    };
    const delivered = await store.domainsDelivered(knownDomains);
    const resolverTrusted = async ({ domain, knownName }: NxdomainRecheck): Promise<boolean> => {
      const others = delivered.filter((name) => name !== domain);
      const found = await Promise.all((others.length > 0 ? others : [knownName]).map(lookUp));
      return found.includes(true);
    };
    const results: Results = { suppress: [], drop: [], later: [] };
    const waiting = [...due];
    const work = async (): Promise<void> => {
      for (let look = waiting.shift(); look; look = waiting.shift()) {
        const found = (await resolverTrusted(look)) ? await lookUp(look.domain) : null;
        if (found === false) results.suppress.push(look);
        else if (found === true || now - look.since >= giveUpMs) results.drop.push(look);
        else results.later.push(look);
      }
    };
    await Promise.all(Array.from({ length: mostAtOnce }, work));
    return results;
  };

  const run = async (): Promise<void> => {
    const now = clock.now();
    const due = await store.nxdomainRechecksDue(now, mostPerRun);
    if (due.length === 0) return;
    const results = await recheck(due, now);
    await store.settleNxdomainRechecks({ ...results, at: now, dueAt: now + waitMs });
    const [suppressed, dropped, postponed] = [results.suppress, results.drop, results.later].map(
      (looks) => looks.length,
    );
    log.info({ suppressed, dropped, postponed }, "NXDOMAIN recheck");
  };

  return { run, jobs: [{ name: "nxdomain-recheck", cron: "* * * * *", run }] };
}

type Results = Record<"suppress" | "drop" | "later", NxdomainRecheck[]>;
