// A domain that does not exist bounces at once, and suppresses only when a second look at least 15 minutes later agrees:
// one broken resolver must not eat the list. It is believed while it still finds what is known to exist: domains that
// took mail of ours lately, or where there are none the return path of the sender, which was seen when the sender's
// domain was verified. Who cannot be told of within two days is not suppressed.
import { hourMs, minuteMs, type Clock } from "../clock.ts";
import type { Resolver } from "../dns/resolver.ts";
import type { Log } from "../log.ts";
import type { Outcome } from "../mail/outcome.ts";
import type { Job } from "../model/queued-recipient.ts";
import type { SecondLook } from "../model/suppression.ts";
import type { Store } from "../store/store.ts";
import { bounceEntry, playsOutcomes, suppresses } from "./policy.ts";

const waitMs = 15 * minuteMs;
const giveUpMs = 48 * hourMs;
/** Looks of one round; the rest waits for the next. */
const looksARound = 500;
const looksAtOnce = 20;
const knownDomains = 5;

/** The look that a bounce for want of the domain asks for; null: this outcome asks for none. `at`: when it bounced. */
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
  /** Without a cache of its own: it is to be asked again. */
  resolver: Pick<Resolver, "mx">;
  clock: Clock;
  log: Log;
}

/** For jobs.ts: takes the looks that are due. */
export function createSecondLooks({ store, resolver, clock, log }: SecondLooksDeps): {
  run(): Promise<void>;
} {
  /** null: the DNS could not tell. */
  const exists = async (name: string): Promise<boolean | null> => {
    const { kind } = await resolver.mx(name, "suppressions");
    return kind === "failed" ? null : kind !== "nxdomain";
  };

  /** One round's questions, each asked once. */
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

  return {
    async run() {
      const now = clock.now();
      const due = await store.secondLooksDue(now, looksARound);
      if (due.length === 0) return;
      const judgements = await judge(due, now);
      await store.settleSecondLooks({ ...judgements, at: now, dueAt: now + waitMs });
      const [suppressed, dropped, postponed] = [judgements.suppress, judgements.drop, judgements.later].map(
        (looks) => looks.length,
      );
      log.info({ suppressed, dropped, postponed }, "looked again for domains that did not exist");
    },
  };
}

type Judgements = Record<"suppress" | "drop" | "later", SecondLook[]>;
