// Mail from submission to its last event over a real store, with the HTTP server before it: what is counted is counted
// by the product's own ways.
import { createRecorder } from "../../src/events/record.ts";
import type { Failure } from "../../src/mail/failure.ts";
import type { Outcome } from "../../src/mail/outcome.ts";
import type { Job } from "../../src/model/queued-recipient.ts";
import type { Report } from "../../src/model/report.ts";
import { settlementOf } from "../../src/queue/settle.ts";
import type { Runner } from "../../src/queue/runner.ts";
import type { Store } from "../../src/store/store.ts";
import { createSubmission } from "../../src/submission/submit.ts";
import { startHttp, type Answer, type Ask, type Harness, type Json } from "../http/harness.ts";
import { mint, newDirectory, openSqlite } from "../store/fixtures.ts";
import { makeDomain, poolsNamed, tokens } from "../submission/rig.ts";
import { ManualClock } from "../support/clock.ts";
import { bouncedOutcome, deferredOutcome, deliveredOutcome, makeTrace } from "../support/jobs.ts";
import { removeFolder } from "../support/folders.ts";

const high = { burst: 1e9, perSecond: 1e9 };

export interface Traffic {
  http: Harness;
  store: Store;
  clock: ManualClock;
  accountKey: number;
  /** Sends through the API; the jobs are leased. */
  send(body: object, ask?: Partial<Ask>): Promise<Job[]>;
  post(body: object, ask?: Partial<Ask>): Promise<Answer>;
  /** What an SMTP RCPT meets. */
  rcpt(to: string): Promise<string | null>;
  end(job: Job, outcome: Outcome, group?: string): Promise<void>;
  report(job: Job, what: Partial<Failure> | "complaint"): Promise<void>;
  totals(query?: string): Promise<Json>;
  stats(pathAndQuery: string, ask?: Partial<Ask>): Promise<Answer>;
  stop(): Promise<void>;
}

export const outcomes = {
  delivered: (at: number, sendingIp: string | null = "192.0.2.1"): Outcome => ({
    ...deliveredOutcome(),
    trace: makeTrace({ startedAt: at, endedAt: at, sendingIp }),
  }),
  deferred: (at: number): Outcome => deferredOutcome({ trace: makeTrace({ startedAt: at, endedAt: at }) }),
  bounced: (at: number, over: Parameters<typeof bouncedOutcome>[0] = {}): Outcome =>
    bouncedOutcome({ trace: makeTrace({ startedAt: at, endedAt: at }), ...over }),
};

export async function startTraffic(startMs?: number): Promise<Traffic> {
  const dataDir = newDirectory();
  const clock = new ManualClock(startMs);
  const store = await openSqlite(dataDir, clock);
  const accountKey = (await store.accountByName("default"))?.key ?? 0;
  const runner: Pick<Runner, "reserve" | "cancelReservation" | "run" | "note"> = {
    reserve: () => null,
    cancelReservation: () => undefined,
    run: () => undefined,
    note: () => undefined,
  };
  const senderFor = async (_account: number, name: string) => ({
    ok: true as const,
    domain: makeDomain(name),
  });
  const config = { hostname: "mail.svc.test", dev: false, limits: { maxQueue: 0 } };
  const submission = createSubmission({
    store,
    domains: { senderFor },
    pools: poolsNamed("default"),
    runner,
    config,
    clock,
    mint,
    tokens,
  });
  const rates = Object.fromEntries(
    ["messages-write", "stats-read", "suppressions-write", "default", "account"].map((name) => [name, high]),
  );
  const http = await startHttp({ opened: { store, clock }, submission, config: { rates } });
  const recorder = createRecorder({ clock, mint });
  const settleDeps = {
    recorder,
    mint,
    schedule: { retryMs: [60_000], maxAgeMs: 48 * 3_600_000 },
    owner: "boot-1",
    random: () => 0,
    isCaught: () => false,
  };
  const post = (body: object, ask: Partial<Ask> = {}): Promise<Answer> =>
    http.ask({
      method: "POST",
      path: "/v1/messages",
      body: { from: "info@shop.example", subject: "x", text: "y", ...body },
      ...ask,
    });
  const claim = async (): Promise<Job[]> => {
    const jobs: Job[] = [];
    for (const { queueName } of await store.scheduledQueues(null, 1000)) {
      const found = await store.claimDue({
        owner: "boot-1",
        queueName,
        limit: 1000,
        now: clock.now(),
      });
      jobs.push(...found.jobs);
    }
    return jobs;
  };
  const stats: Traffic["stats"] = (path, ask = {}) => http.ask({ path: `/v1/stats${path}`, ...ask });
  return {
    http,
    store,
    clock,
    accountKey,
    post,
    async send(body, ask) {
      const answer = await post(body, ask);
      if (answer.status !== 202) throw new Error(answer.text);
      return claim();
    },
    async rcpt(to) {
      const [local = "", ascii = ""] = to.split("@");
      const address = { email: to, local, domain: ascii, ascii } as Parameters<
        typeof submission.refuseRecipient
      >[1];
      const refusal = await submission.refuseRecipient(
        { account: http.account, test: false, apiKey: null, quotas: [] },
        address,
      );
      return refusal?.code ?? null;
    },
    async end(job, outcome, group = "mx.test") {
      await store.settle(settlementOf(settleDeps, job, outcome, clock.now(), group));
    },
    async report(job, what) {
      const [sent] =
        (await store.sentMessage({ key: job.message.key }))?.filter((one) => one.job.key === job.key) ?? [];
      if (!sent) throw new Error("nothing was sent");
      await store.settleReports([reportOf(recorder, sent, what, clock.now())]);
    },
    stats,
    async totals(query = "") {
      const answer = await stats(query === "" ? "" : `?${query}`);
      if (answer.status !== 200) throw new Error(answer.text);
      return answer.json["totals"] as Json;
    },
    async stop() {
      await http.stop();
      removeFolder(dataDir);
    },
  };
}

type Sent = NonNullable<Awaited<ReturnType<Store["sentMessage"]>>>[number];

function reportOf(
  recorder: ReturnType<typeof createRecorder>,
  sent: Sent,
  what: Partial<Failure> | "complaint",
  at: number,
): Report {
  const { job } = sent;
  const base = { recipientKey: job.key, messageKey: job.message.key, at, suppression: null };
  const silent = { smtpCode: null, smtpStatus: null, smtpResponse: null };
  if (what === "complaint") {
    const complaint = {
      type: "abuse",
      feedbackType: "abuse",
      reportedAt: null,
      sendingIp: null,
    } as Parameters<typeof recorder.complained>[1];
    return {
      ...base,
      ...silent,
      kind: "complained",
      event: recorder.complained(job, complaint, sent, "x", { confirmed: true }),
    };
  }
  const failure = {
    recipients: [],
    code: null,
    status: null,
    text: "",
    mta: null,
    reportedAt: null,
    ...what,
  };
  const event = recorder.reported(job, failure, sent, { suppressed: false });
  return { ...base, ...silent, kind: "bounced", event };
}
