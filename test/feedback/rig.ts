// Feedback over the real store, with a DNS that is a table.
import type { DnsAnswer, Resolver } from "../../src/dns/resolver.ts";
import { createRecorder } from "../../src/events/record.ts";
import { createFeedback, type Feedback } from "../../src/feedback/feedback.ts";
import type { FeedbackDeps } from "../../src/feedback/mailbox.ts";
import { silentLog } from "../../src/log.ts";
import { createMessageTokens } from "../../src/mail/message-token.ts";
import { readNotice } from "../../src/mail/notice.ts";
import { readReturned } from "../../src/mail/returned.ts";
import { returnPathLocal } from "../../src/mail/return-path.ts";
import type { Job } from "../../src/model/queued-recipient.ts";
import { createUnsubscribes } from "../../src/tracking/unsubscribes.ts";
import { accept, mint, newDirectory, newMessage, openSqlite, settlementOf } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { removeFolder } from "../support/folders.ts";

/** Where reports come from unless a test says so; without a name in the DNS. */
export const stranger = "203.0.113.9";
/** The feedback loop of the tests: mx.loop.test, by its reverse name. */
export const loopPeer = "203.0.113.10";

/** Answers by `TYPE name`, in lower case; "failed" is a server that says nothing. */
export type Zone = Map<string, string[] | "failed">;

export function tableResolver(zone: Zone, asked: string[] = []): FeedbackDeps["resolver"] {
  const ask =
    (type: keyof Resolver) =>
    async (name: string): Promise<DnsAnswer<string>> => {
      const question = `${type} ${name.toLowerCase()}`;
      asked.push(question);
      const records = zone.get(question);
      if (records === "failed") return { kind: "failed", why: "no answer" };
      return records
        ? { kind: "found", records, ttlSeconds: 60, authenticated: false }
        : { kind: "nxdomain" };
    };
  return { txt: ask("txt"), ptr: ask("ptr"), a: ask("a"), aaaa: ask("aaaa") };
}

export async function feedbackRig() {
  const dataDir = newDirectory();
  const clock = new ManualClock();
  const store = await openSqlite(dataDir, clock);
  const secret = await store.secret("verp");
  const tokens = createMessageTokens(secret);
  const account = (await store.accountByName("default"))?.key ?? 0;
  const zone: Zone = new Map([
    [`ptr ${loopPeer}`, ["mx.loop.test."]],
    ["a mx.loop.test", [loopPeer]],
  ]);
  const asked: string[] = [];
  const recorder = createRecorder({ clock, mint });
  let count = 0;

  const feedbackWith = (over: Partial<FeedbackDeps> & { email?: string | null; loops?: string[] } = {}) =>
    createFeedback({
      store,
      recorder,
      verpSecret: secret,
      tokens,
      unsubscribes: createUnsubscribes({ store, recorder, clock, log: silentLog }),
      resolver: tableResolver(zone, asked),
      readReturned: async (mail, came) => readReturned(mail, came),
      readNotice: async (mail) => readNotice(mail),
      config: {
        hostname: "mail.test",
        operations: { email: over.email === undefined ? "ops@acme.test" : over.email, from: null },
        feedback: { loops: over.loops ?? ["loop.test"] },
      },
      notices: { notify: async () => true },
      clock,
      log: silentLog,
      ...over,
    });
  const feedback = feedbackWith();

  return {
    clock,
    store,
    secret,
    tokens,
    account,
    zone,
    asked,
    feedback,
    feedbackWith,
    async close() {
      await store.close();
      removeFolder(dataDir);
    },
    newDomain: () => `d${++count}.test`,
    /** A message delivered to each of these local parts at a domain of its own. */
    async delivered(...locals: string[]): Promise<Job[]> {
      const domain = `d${++count}.test`;
      const to = locals.map((local) => `${local}@${domain}`);
      const jobs = await accept(store, newMessage({ accountKey: account, to, at: clock.now(), lease: true }));
      for (const job of jobs) await store.settle(settlementOf(job, clock.now()));
      return jobs;
    },
    pathOf: (job: Job): string =>
      `${returnPathLocal(secret, job.message.key, job.key)}@${job.message.returnPathDomain}`,
    tokenOf: (job: Job): string => tokens.of(job.message.id),
    async arrive(to: string, mail: string, peer = stranger, at: Feedback = feedback): Promise<string> {
      const mailbox = await at.mailboxOf(to);
      if (!mailbox) throw new Error(`no mailbox for ${to}`);
      return at.take(Buffer.from(mail), [mailbox], { peer, nullSender: true });
    },
    /** But for its deliveries. */
    async eventsOf(job: Job): Promise<Record<string, unknown>[]> {
      const page = await store.listEvents(
        account,
        { messageId: job.message.id },
        { limit: 50, cursor: null },
      );
      return page.rows
        .map(({ body }) => JSON.parse(body) as { event: string; data: Record<string, unknown> })
        .map(({ event, data }) => ({ event, ...data }))
        .filter(({ event }) => event !== "message.delivered");
    },
    suppressed: (job: Job) => store.suppression(account, job.canonical, clock.now()),
    /** Complaints that the abuse guard counts. */
    async guarded(): Promise<number> {
      const range = { from: 0, to: clock.now() + 86_400_000, test: false };
      const { complained, complainedUnconfirmed } = await store.statsTotals(account, range);
      return complained - complainedUnconfirmed;
    },
  };
}

export type FeedbackRig = Awaited<ReturnType<typeof feedbackRig>>;
