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
import type { SecondLook } from "../model/suppression.ts";
import type { HasJobs } from "../service.ts";
import type { Store } from "../store/store.ts";
import { bounceEntry, playsOutcomes, suppresses } from "./policy.ts";

const waitMs = 15 * minuteMs;
const giveUpMs = 48 * hourMs;
/** Look-ups of one run; the rest waits for the next. */
const looksARound = 500;
const looksAtOnce = 20;
const knownDomains = 5;

/** The recheck of a bounce because of NXDOMAIN; null: this outcome needs none. `at`: when it bounced. */
export function secondLookFor(job: Job, outcome: Outcome, eventId: string, at: number): SecondLook | null {
  if (outcome.kind !== "bounced" || outcome.classification !== "invalid_domain") return null;
  if (playsOutcomes(job) || suppresses(job, outcome)) return null;
  return {
    domain: job.domain,
    knownName: job.message.returnPathDomain,
    since: at,
    dueAt: at + waitMs,
    entry: bounceEntry(job, outcome.reply, eventId),
  };
}

export interface SecondLooksDeps {
  store: Pick<Store, "secondLooksDue" | "settleSecondLooks" | "domainsDelivered">;
  /** Without a cache: a recheck must query the DNS again. */
  resolver: Pick<Resolver, "mx">;
  clock: Clock;
  log: Log;
}

/** `run` rechecks the domains that are due. */
export function createSecondLooks({ store, resolver, clock, log }: SecondLooksDeps): HasJobs & {
  run(): Promise<void>;
} {
  /** null: the look-up failed. */
  const exists = async (name: string): Promise<boolean | null> => {
    const { kind } = await resolver.mx(name, "suppressions");
    return kind === "failed" ? null : kind !== "nxdomain";
  };

  /** Looks up each domain of one run once. */
  const judge = async (due: SecondLook[], now: number): Promise<Judgements> => {
    const answers = new Map<string, Promise<boolean | null>>();
    const asked = (name: string): Promise<boolean | null> => {
      const answer = answers.get(name) ?? exists(name);
      answers.set(name, answer);
      return answer;
    };
    const delivered = await store.domainsDelivered(knownDomains);
    const believed = async ({ domain, knownName }: SecondLook): Promise<boolean> => {
      const others = delivered.filter((name) => name !== domain);
      const found = await Promise.all((others.length > 0 ? others : [knownName]).map(asked));
      return found.includes(true);
    };
    const judgements: Judgements = { suppress: [], drop: [], later: [] };
    const waiting = [...due];
    const work = async (): Promise<void> => {
      for (let look = waiting.shift(); look; look = waiting.shift()) {
        const found = (await believed(look)) ? await asked(look.domain) : null;
        if (found === false) judgements.suppress.push(look);
        else if (found === true || now - look.since >= giveUpMs) judgements.drop.push(look);
        else judgements.later.push(look);
      }
    };
    await Promise.all(Array.from({ length: looksAtOnce }, work));
    return judgements;
  };

  const run = async (): Promise<void> => {
    const now = clock.now();
    const due = await store.secondLooksDue(now, looksARound);
    if (due.length === 0) return;
    const judgements = await judge(due, now);
    await store.settleSecondLooks({ ...judgements, at: now, dueAt: now + waitMs });
    const [suppressed, dropped, postponed] = [judgements.suppress, judgements.drop, judgements.later].map(
      (looks) => looks.length,
    );
    log.info({ suppressed, dropped, postponed }, "NXDOMAIN recheck");
  };

  return { run, jobs: [{ name: "second-looks", cron: "* * * * *", run }] };
}

type Judgements = Record<"suppress" | "drop" | "later", SecondLook[]>;
