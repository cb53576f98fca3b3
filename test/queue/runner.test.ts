import { describe, expect, test } from "vitest";
import { silentLog } from "../../src/log.ts";
import type { Outcome } from "../../src/mail/outcome.ts";
import type { Job } from "../../src/model/queued-recipient.ts";
import type { Settlement } from "../../src/model/settlement.ts";
import { laneOf } from "../../src/queue/lane.ts";
import type { Destination } from "../../src/queue/routing.ts";
import { createRunner, type Runner, type RunnerDeps } from "../../src/queue/runner.ts";
import { createShaping } from "../../src/queue/shaping.ts";
import { StoreUnavailable } from "../../src/store/store.ts";
import { systemSources, type Source } from "../../src/pools/sources.ts";
import { ManualClock } from "../support/clock.ts";
import { deferredOutcome, deliveredOutcome, makeJob, makeTrace } from "../support/jobs.ts";

/** A queue in memory with the store's meaning: waiting jobs by lane, leases, outcomes. */
class FakeQueue {
  waiting: { job: Job; dueAt: number }[] = [];
  leased = new Map<number, Job>();
  settled: Settlement[] = [];
  released: number[] = [];
  claims: { lane: string; limit: number }[] = [];
  /** Thrown by every call that writes. */
  refuse: Error | null = null;
  refuseSettle: Error | null = null;

  add(job: Job, dueAt: number): void {
    this.waiting.push({ job, dueAt });
  }
  store(): RunnerDeps["store"] {
    return {
      lanes: async (after) => {
        const lanes = new Map<string, number>();
        for (const { job, dueAt } of this.waiting)
          lanes.set(job.lane, Math.min(dueAt, lanes.get(job.lane) ?? Infinity));
        return [...lanes]
          .filter(([lane]) => after === null || lane > after)
          .map(([lane, dueAt]) => ({ lane, dueAt }));
      },
      claimDue: async ({ lane, limit, now }) => {
        if (this.refuse) throw this.refuse;
        this.claims.push({ lane, limit });
        const due = this.waiting
          .filter((entry) => entry.job.lane === lane && entry.dueAt <= now)
          .slice(0, limit);
        this.waiting = this.waiting.filter((entry) => !due.includes(entry));
        for (const { job } of due) this.leased.set(job.key, job);
        const left = this.waiting.filter((entry) => entry.job.lane === lane).map((entry) => entry.dueAt);
        return { jobs: due.map(({ job }) => job), nextDueAt: left.length > 0 ? Math.min(...left) : null };
      },
      renewLeases: async () => {
        if (this.refuse) throw this.refuse;
        return this.leased.size;
      },
      release: async (_owner, keys, dueAt) => {
        if (this.refuse) throw this.refuse;
        this.released.push(...keys);
        for (const key of keys) {
          const job = this.leased.get(key);
          if (job) this.add(job, dueAt);
          this.leased.delete(key);
        }
      },
      takeBackLeases: async () => 0,
      settle: async (settlement) => {
        const refusal = this.refuse ?? this.refuseSettle;
        if (refusal) throw refusal;
        this.settled.push(settlement);
        const job = this.leased.get(settlement.recipientKey);
        this.leased.delete(settlement.recipientKey);
        if (job && settlement.nextAttemptAt !== null)
          this.add({ ...job, attempt: job.attempt + 1 }, settlement.nextAttemptAt);
        return true;
      },
    };
  }
}

interface Bench {
  queue: FakeQueue;
  clock: ManualClock;
  runner: Runner;
  /** Attempts that were begun, in order. */
  begun: Job[];
  /** The same, with the address that each left from. */
  left: { job: Job; source: Source }[];
  /** Ends the oldest attempt at a domain. */
  finish(domain: string, outcome?: Outcome): void;
  running(domain: string): number;
}

const system = systemSources.usable(null);
const from = (address: string, weight = 1): Source => ({ address, hostname: null, weight });

function bench(
  options: {
    hangs?: string[];
    shaping?: unknown;
    suppressed?: (job: Job) => Outcome | null;
    paused?: Set<number>;
    /** Runs before a lane is routed. */
    routing?: (lane: string) => Promise<void>;
    /** Runs before an outcome is turned into a settlement. */
    settling?: (job: Job) => void;
    groupOf?: (lane: string) => string;
    lineOf?: (lane: string) => string;
    accountOf?: (lane: string) => number;
    sources?: (lane: string) => readonly Source[];
    unsent?: (source: Source) => boolean;
    random?: () => number;
    /** Gets the lanes whose mail waits for an address. */
    noSource?: string[];
  } = {},
): Bench {
  const queue = new FakeQueue();
  const clock = new ManualClock();
  const begun: Job[] = [];
  const left: { job: Job; source: Source }[] = [];
  const open: { job: Job; end: (outcome: Outcome) => void }[] = [];
  const groupOf = (lane: string) => options.groupOf?.(lane) ?? lane.split("/")[1] ?? lane;
  const destination = (lane: string): Destination => ({
    group: groupOf(lane),
    account: options.accountOf?.(lane) ?? 1,
    line: options.lineOf?.(lane) ?? groupOf(lane),
    sources: () => options.sources?.(lane) ?? system,
    prepare: () => undefined,
    attempt: (job, _mayFinish, source) => {
      begun.push(job);
      left.push({ job, source });
      if (options.unsent?.(source)) return Promise.resolve({ kind: "unsent", why: "no such address" });
      if (!options.hangs?.includes(job.domain)) return Promise.resolve(deliveredOutcome());
      return new Promise((end) => open.push({ job, end }));
    },
  });
  const runner = createRunner({
    store: queue.store(),
    destinationOf: async (lane) => {
      await options.routing?.(lane);
      return destination(lane);
    },
    suppressedSince: async (job) => options.suppressed?.(job) ?? null,
    isPaused: (accountKey) => options.paused?.has(accountKey) ?? false,
    onNoSource: (lane) => void options.noSource?.push(lane),
    settlementOf: (job, outcome, now) => {
      options.settling?.(job);
      return {
        recipientKey: job.key,
        outcome: outcome.kind,
        nextAttemptAt: outcome.kind === "deferred" ? now + 60_000 : null,
      } as Settlement;
    },
    shaping: createShaping(options.shaping ?? null),
    random: options.random ?? Math.random,
    owner: "boot",
    clock,
    log: silentLog,
  });
  return {
    queue,
    clock,
    runner,
    begun,
    left,
    finish(domain, outcome = deliveredOutcome()) {
      const at = open.findIndex(({ job }) => job.domain === domain);
      open.splice(at, 1)[0]?.end(outcome);
    },
    running: (domain) => open.filter(({ job }) => job.domain === domain).length,
  };
}

const jobsOf = (domain: string, from: number, count: number): Job[] =>
  Array.from({ length: count }, (_, i) => makeJob(from + i, { domain }));

describe("lanes", () => {
  test("delivers what waited when the program starts", async () => {
    const { queue, clock, runner } = bench();
    for (const job of jobsOf("x.test", 1, 3)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(10);
    expect(queue.settled.map(({ recipientKey }) => recipientKey)).toEqual([1, 2, 3]);
    expect(queue.leased.size).toBe(0);
  });

  test("leaves what is not yet due and takes it at its time", async () => {
    const { queue, clock, runner } = bench();
    queue.add(makeJob(1), clock.now() + 3_600_000);
    await runner.start();
    await clock.advance(3_599_000);
    expect(queue.settled).toHaveLength(0);
    await clock.advance(2_000);
    expect(queue.settled).toHaveLength(1);
  });

  test("tries a deferred recipient again when its time has come", async () => {
    const { queue, clock, runner, begun, finish } = bench({ hangs: ["slow.test"] });
    queue.add(makeJob(1, { domain: "slow.test" }), clock.now());
    await runner.start();
    await clock.advance(5);
    finish("slow.test", deferredOutcome());
    await clock.advance(59_000);
    expect(begun).toHaveLength(1);
    await clock.advance(2_000);
    expect(begun.map(({ attempt }) => attempt)).toEqual([1, 2]);
  });

  test("a wall clock that is set back two hours delays no retry", async () => {
    const { queue, clock, runner, begun, finish } = bench({ hangs: ["slow.test"] });
    queue.add(makeJob(1, { domain: "slow.test" }), clock.now());
    await runner.start();
    await clock.advance(5);
    finish("slow.test", deferredOutcome());
    await clock.advance(5);
    clock.jump(-7_200_000);
    await clock.advance(61_000);
    expect(begun).toHaveLength(2);
  });
});

describe("slots", () => {
  test("a destination that hangs holds its own slots and nobody else's", async () => {
    const { queue, clock, runner, running } = bench({ hangs: ["dead.test"] });
    for (const job of jobsOf("dead.test", 1, 500)) queue.add(job, clock.now());
    for (const job of jobsOf("fine.test", 1001, 40)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(1_000);
    expect(running("dead.test")).toBe(10);
    expect(queue.settled.filter(({ recipientKey }) => recipientKey > 1000)).toHaveLength(40);
  });

  test("claims only what a destination can soon use", async () => {
    const { queue, clock, runner } = bench({ hangs: ["dead.test"] });
    for (const job of jobsOf("dead.test", 1, 500)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(1_000);
    expect(queue.leased.size).toBeLessThanOrEqual(30);
  });

  test("a slot that becomes free is used at once", async () => {
    const { queue, clock, runner, running, finish, begun } = bench({ hangs: ["slow.test"] });
    for (const job of jobsOf("slow.test", 1, 50)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(100);
    for (let i = 0; i < 5; i++) finish("slow.test");
    await clock.advance(0);
    expect(running("slow.test")).toBe(10);
    expect(begun).toHaveLength(15);
  });

  test("begins no more in a second than the shaping allows", async () => {
    const shaping = { groups: { "x.test": { connections: 50, per_second: 20 } } };
    const { queue, clock, runner, begun } = bench({ shaping });
    for (const job of jobsOf("x.test", 1, 100)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(1_000);
    expect(begun.length).toBeGreaterThanOrEqual(38);
    expect(begun.length).toBeLessThanOrEqual(41);
    await clock.advance(4_000);
    expect(begun).toHaveLength(100);
  });

  test("the lanes of one group are served in turn", async () => {
    const { queue, clock, runner, begun, finish } = bench({
      hangs: ["a.test", "b.test"],
      shaping: { groups: { default: { connections: 2 } } },
    });
    for (const job of jobsOf("a.test", 1, 30)) queue.add(job, clock.now());
    for (const job of jobsOf("b.test", 101, 3)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(10);
    for (let i = 0; i < 3; i++) {
      finish("a.test");
      finish("b.test");
      await clock.advance(10);
    }
    expect(begun.filter(({ domain }) => domain === "b.test")).toHaveLength(3);
  });
});

describe("acceptance", () => {
  test("a lane that is not known yet gives no slot; one that was just served does", async () => {
    const { queue, clock, runner, begun } = bench();
    await runner.start();
    expect(runner.reserve("1.default/x.test")).toBeNull();
    queue.add(makeJob(1), clock.now());
    runner.note("1.default/x.test", clock.now());
    await clock.advance(10);
    const reservation = runner.reserve("1.default/x.test");
    expect(reservation?.lease.owner).toBe("boot");
    if (reservation) runner.run(reservation, makeJob(2));
    await clock.advance(0);
    expect(begun.map(({ key }) => key)).toEqual([1, 2]);
  });

  test("reservations count as taken slots and come back when forgone", async () => {
    const { queue, clock, runner } = bench();
    await runner.start();
    queue.add(makeJob(1), clock.now());
    runner.note("1.default/x.test", clock.now());
    await clock.advance(10);
    const held = Array.from({ length: 12 }, () => runner.reserve("1.default/x.test"));
    expect(held.filter((reservation) => reservation !== null)).toHaveLength(10);
    for (const reservation of held) if (reservation) runner.forgo(reservation);
    expect(runner.reserve("1.default/x.test")).not.toBeNull();
  });

  test("nobody overtakes what waits", async () => {
    const { queue, clock, runner } = bench({ hangs: ["slow.test"] });
    for (const job of jobsOf("slow.test", 1, 30)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(10);
    expect(runner.reserve("1.default/slow.test")).toBeNull();
  });
});

describe("faults", () => {
  test("outcomes that the store refuses are kept, nothing new is claimed, and all goes on when it takes writes again", async () => {
    const { queue, clock, runner, begun, finish } = bench({ hangs: ["slow.test"] });
    for (const job of jobsOf("slow.test", 1, 40)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(10);
    const claimsBefore = queue.claims.length;
    queue.refuse = new StoreUnavailable("full", "no room");
    for (let i = 0; i < 10; i++) finish("slow.test");
    await clock.advance(30_000);
    expect(queue.settled).toHaveLength(0);
    expect(queue.claims.length).toBeLessThanOrEqual(claimsBefore + 1);
    expect(runner.counts().unwritten).toBeGreaterThanOrEqual(10);
    queue.refuse = null;
    await clock.advance(2_000);
    expect(queue.settled).toHaveLength(10);
    expect(begun.length).toBeGreaterThan(10);
  });

  test("an outcome that is a fault of ours is tried again later and does not stop the others", async () => {
    const { queue, clock, runner } = bench();
    queue.add(makeJob(1), clock.now());
    await runner.start();
    queue.refuse = new TypeError("a bug");
    await clock.advance(1);
    queue.refuse = null;
    queue.add(makeJob(2), clock.now());
    runner.note("1.default/x.test", clock.now());
    await clock.advance(62_000);
    expect(queue.settled.map(({ recipientKey }) => recipientKey).toSorted((a, b) => a - b)).toEqual([1, 2]);
  });

  test("a fault of ours is a deferral, written when the store takes writes again and tried by the schedule", async () => {
    let broken = true;
    const { queue, clock, runner } = bench({
      suppressed: () => {
        if (!broken) return null;
        queue.refuse = new StoreUnavailable("failed", "disk I/O error");
        throw new Error("disk I/O error");
      },
    });
    queue.add(makeJob(1), clock.now());
    await runner.start();
    await clock.advance(10_000);
    expect(queue.leased.size).toBe(1);
    broken = false;
    queue.refuse = null;
    await clock.advance(70_000);
    expect(queue.leased.size).toBe(0);
    expect(queue.settled.map(({ outcome }) => outcome)).toEqual(["deferred", "delivered"]);
  });

  test("a deferral that could be written only after its next attempt was due is tried again at once", async () => {
    const { queue, clock, runner, begun, finish } = bench({ hangs: ["slow.test"] });
    queue.add(makeJob(1, { domain: "slow.test" }), clock.now());
    await runner.start();
    await clock.advance(5);
    queue.refuseSettle = new TypeError("a bug"); // kept aside and tried each minute; nothing else waits for it
    finish("slow.test", deferredOutcome());
    await clock.advance(90_000); // the lane was looked at meanwhile, and nothing waited in it
    queue.refuseSettle = null;
    await clock.advance(31_000);
    expect(queue.settled).toHaveLength(1);
    expect(begun).toHaveLength(2);
  });

  test("an outcome that cannot be turned into a settlement is a fault of ours that ends nothing", async () => {
    let broken = true;
    const { queue, clock, runner, begun } = bench({
      settling: (job) => {
        if (broken && job.key === 1) throw new RangeError("Invalid time value");
      },
    });
    for (const job of jobsOf("x.test", 1, 2)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(10);
    expect(queue.settled.map(({ recipientKey }) => recipientKey)).toEqual([2]);
    broken = false;
    await clock.advance(61_000);
    expect(queue.settled.map(({ recipientKey }) => recipientKey)).toEqual([2, 1]);
    expect(begun, "nothing is sent a second time").toHaveLength(2);
  });

  test("a lane whose name server hangs does not hold the other lanes of its group", async () => {
    let hung = false;
    const { queue, clock, runner, begun } = bench({
      groupOf: () => "provider",
      shaping: { groups: { provider: { connections: 2, per_second: 1 } } },
      routing: (lane) => (hung && lane.endsWith("a.test") ? new Promise(() => undefined) : Promise.resolve()),
    });
    for (const job of jobsOf("a.test", 1, 40)) queue.add(job, clock.now());
    for (const job of jobsOf("b.test", 101, 20)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(1_000);
    hung = true;
    await clock.advance(120_000);
    expect(begun.filter(({ domain }) => domain === "b.test")).toHaveLength(20);
  });

  test("thousands of lanes whose name servers hang delay neither a known destination nor another account's new one", async () => {
    let full = false;
    const { queue, clock, runner, begun } = bench({
      routing: (lane) => (full && !lane.startsWith("2.") ? new Promise(() => undefined) : Promise.resolve()),
    });
    const known = makeJob(1, { domain: "known.test" });
    queue.add(known, clock.now());
    await runner.start();
    await clock.advance(0);
    full = true;
    for (const { lane } of Array.from({ length: 5_000 }, (_, i) =>
      makeJob(10 + i, { domain: `hangs${i}.test` }),
    ))
      runner.note(lane, clock.now());
    await clock.advance(900);
    queue.add({ ...known, key: 2 }, clock.now());
    runner.note(known.lane, clock.now());
    const fresh = makeJob(3, { domain: "fresh.test", lane: laneOf(2, "default", "fresh.test") });
    queue.add(fresh, clock.now());
    runner.note(fresh.lane, clock.now());
    await clock.advance(0);
    expect(begun.map(({ key }) => key)).toEqual([1, 2, 3]);
    expect(runner.reserve(known.lane)).not.toBeNull();
    await runner.stop();
  });

  test("a recipient that was suppressed after acceptance is not attempted", async () => {
    const suppressed = { kind: "bounced", classification: "suppressed" } as Outcome;
    const { queue, clock, runner, begun } = bench({ suppressed: () => suppressed });
    queue.add(makeJob(1), clock.now());
    await runner.start();
    await clock.advance(10);
    expect(begun).toHaveLength(0);
    expect(queue.settled).toHaveLength(1);
  });

  test("stopping gives back what was claimed and not begun, and waits for what runs", async () => {
    const { queue, clock, runner, finish } = bench({ hangs: ["slow.test"] });
    for (const job of jobsOf("slow.test", 1, 40)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(10);
    let stopped = false;
    const done = runner.stop().then(() => (stopped = true));
    await clock.advance(10);
    expect(stopped).toBe(false);
    expect(queue.leased.size).toBe(10);
    for (let i = 0; i < 10; i++) finish("slow.test");
    await done;
    expect(queue.settled).toHaveLength(10);
    expect(queue.leased.size).toBe(0);
    expect(queue.waiting).toHaveLength(30);
  });

  test("while stopping, what ends without a server's word is given back and costs no attempt", async () => {
    const { queue, clock, runner, finish } = bench({ hangs: ["slow.test"] });
    for (const job of jobsOf("slow.test", 1, 3)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(10);
    const done = runner.stop();
    const reply = { code: 421, status: "4.4.1", text: "[local] lost mx.x.test: this program is stopping" };
    finish("slow.test", deferredOutcome({ reply }));
    finish("slow.test", deferredOutcome({ reply, trace: makeTrace({ ambiguous: true }) }));
    finish("slow.test", deferredOutcome());
    await done;
    expect(queue.settled.map(({ recipientKey }) => recipientKey)).toEqual([2, 3]);
    expect(queue.waiting.filter(({ job }) => job.key === 1)).toEqual([
      { job: expect.anything(), dueAt: clock.now() },
    ]);
  });
});

describe("a pool's addresses", () => {
  const [one, two] = [from("192.0.2.1", 9), from("192.0.2.2")];

  test("have the limits of a group each for itself, and are full at once where much waits", async () => {
    const { queue, clock, runner, left } = bench({ hangs: ["x.test"], sources: () => pool });
    const pool = [one, two];
    for (const job of jobsOf("x.test", 1, 100)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(1000);
    const of = (source: Source): number => left.filter((entry) => entry.source === source).length;
    expect([of(one), of(two)]).toEqual([10, 10]);
  });

  test("share the mail by their weights", async () => {
    const pool = [one, two];
    const { queue, clock, runner, left } = bench({
      sources: () => pool,
      shaping: { groups: { "x.test": { connections: 1000, per_second: 100_000 } } },
    });
    for (const job of jobsOf("x.test", 1, 1000)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(10_000);
    expect(left).toHaveLength(1000);
    const share = left.filter(({ source }) => source === one).length;
    expect(share).toBeGreaterThan(850); // 900 are expected, five standard deviations are 47
    expect(share).toBeLessThan(950);
  });

  test("slow down each for itself when a receiver says that we are too fast", async () => {
    const pool = [one, two];
    const { queue, clock, runner, left, finish } = bench({ hangs: ["x.test"], sources: () => pool });
    for (const job of jobsOf("x.test", 1, 100)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(1000);
    const [first] = left;
    if (!first) throw new Error("nothing began");
    finish("x.test", deferredOutcome({ classification: "rate_limited" }));
    for (let i = 0; i < 19; i++) finish("x.test");
    await clock.advance(2000);
    const after = left.slice(20);
    expect(after.filter(({ source }) => source === first.source)).toHaveLength(5);
    expect(after.filter(({ source }) => source !== first.source)).toHaveLength(10);
  });

  test("that none of can be used hold the mail untried, until one can", async () => {
    let pool: Source[] = [];
    const noSource: string[] = [];
    const { queue, clock, runner, left } = bench({ sources: () => pool, noSource });
    await runner.start();
    runner.reconsider();
    expect(noSource).toEqual([]); // no mail waits for it
    for (const job of jobsOf("x.test", 1, 5)) queue.add(job, clock.now());
    runner.note("1.default/x.test", clock.now());
    await clock.advance(3 * 86_400_000);
    expect([left.length, queue.claims.length, queue.settled.length]).toEqual([0, 0, 0]);
    expect(new Set(noSource)).toEqual(new Set(["1.default/x.test"]));
    expect(runner.reserve("1.default/x.test")).toBeNull();
    pool = [two];
    runner.reconsider();
    await clock.advance(100);
    expect(queue.settled).toHaveLength(5);
    expect(left.every(({ source }) => source === two)).toBe(true);
  });

  test("that came or went are routed by at once, not by what was known of the destination before", async () => {
    let routed = 0;
    const { clock, runner } = bench({
      routing: async () => {
        routed += 1;
      },
    });
    await runner.start();
    const due = async (): Promise<void> => {
      runner.note("1.default/x.test", clock.now());
      await clock.advance(100);
    };
    await due();
    await due();
    expect(routed).toBe(1);
    runner.reconsider();
    expect(runner.reserve("1.default/x.test")).toBeNull();
    await due();
    expect(routed).toBe(2);
  });

  test("that are paused while mail is claimed take none of it; what was claimed goes back untried", async () => {
    let pool = [one];
    const { queue, clock, runner, left, finish } = bench({ hangs: ["x.test"], sources: () => pool });
    for (const job of jobsOf("x.test", 1, 50)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(100);
    expect(left).toHaveLength(10);
    pool = [];
    runner.reconsider();
    for (let i = 0; i < 10; i++) finish("x.test");
    await clock.advance(60_000);
    expect([left.length, queue.settled.length, queue.leased.size]).toEqual([10, 10, 0]);
    pool = [two];
    runner.reconsider();
    await clock.advance(100);
    expect(left.slice(10).every(({ source, job }) => source === two && job.attempt === 1)).toBe(true);
    expect(left).toHaveLength(20);
  });

  test("that turn out to be gone cost the mail no attempt, and it is tried again soon", async () => {
    let gone = true;
    const pool = [one];
    const { queue, clock, runner, left } = bench({ sources: () => pool, unsent: () => gone });
    queue.add(makeJob(1), clock.now());
    await runner.start();
    await clock.advance(9_000);
    expect([left.length, queue.settled.length]).toEqual([1, 0]);
    gone = false;
    await clock.advance(2_000);
    expect([left.length, queue.settled.length]).toEqual([2, 1]);
    expect(left[1]?.job.attempt).toBe(1);
  });

  test("never send another pool's mail, whatever is paused and resumed meanwhile", async () => {
    const pools: Record<string, Source[]> = { a: [one], b: [two], c: [...system] };
    const random = lcg(7);
    const { queue, clock, runner, left } = bench({
      lineOf: (lane) => lane,
      groupOf: () => "x.test",
      sources: (lane) => pools[lane.slice(2, 3)] ?? [],
      random,
    });
    for (let i = 0; i < 300; i++) {
      const name = "abc".charAt(Math.floor(random() * 3));
      queue.add(makeJob(i, { lane: `1.${name}/x.test` }), clock.now() + Math.floor(random() * 20_000));
    }
    await runner.start();
    const own: Record<string, Source[]> = { a: [one], b: [two] };
    for (let i = 0; i < 100; i++) {
      const name = random() < 0.5 ? "a" : "b";
      pools[name] = random() < 0.5 ? [] : [...(own[name] ?? [])];
      runner.reconsider();
      await clock.advance(250);
    }
    Object.assign(pools, own);
    runner.reconsider();
    await clock.advance(60_000);
    expect(queue.settled).toHaveLength(300);
    for (const { job, source } of left)
      expect(source.address).toBe({ a: one.address, b: two.address, c: null }[job.lane.slice(2, 3)]);
  });

  test("of one gate let two pools' lines in by turns", async () => {
    const { queue, clock, runner, left, finish } = bench({
      hangs: ["x.test"],
      lineOf: (lane) => lane,
      groupOf: () => "x.test",
    });
    for (let i = 0; i < 60; i++) queue.add(makeJob(i, { lane: "1.a/x.test" }), clock.now());
    for (let i = 100; i < 160; i++) queue.add(makeJob(i, { lane: "2.a/x.test" }), clock.now());
    await runner.start();
    await clock.advance(100);
    for (let i = 0; i < 40; i++) {
      finish("x.test");
      await clock.advance(50);
    }
    const second = left.filter(({ job }) => job.lane === "2.a/x.test").length;
    expect(left).toHaveLength(50);
    expect(second).toBeGreaterThanOrEqual(15);
  });
});

test("an account all of whose receivers hang leaves slots to another's mail", async () => {
  const domains = Array.from({ length: 2_100 }, (_, i) => `tarpit-${i}.test`);
  const { queue, clock, runner, begun } = bench({
    hangs: domains,
    lineOf: (lane) => lane,
    accountOf: (lane) => Number(lane.split(".")[0]),
  });
  domains.forEach((domain, i) => queue.add(makeJob(i, { domain, lane: `1.a/${domain}` }), clock.now()));
  await runner.start();
  await clock.advance(1_000);
  expect(begun).toHaveLength(1_500);
  for (let i = 0; i < 20; i++) {
    const lane = `2.a/fine-${i}.test`;
    queue.add(makeJob(5_000 + i, { domain: `fine-${i}.test`, lane }), clock.now());
    runner.note(lane, clock.now());
  }
  await clock.advance(1_000);
  expect(queue.settled).toHaveLength(20);
});

/** Numbers that are the same at each run. */
function lcg(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647;
}

test("mail that found no slot goes as soon as acceptances that failed leave theirs", async () => {
  const domains = Array.from({ length: 800 }, (_, i) => `d${i}.test`);
  const { queue, clock, runner, begun } = bench();
  const lanes = domains.map((domain, i) => {
    const job = makeJob(1 + i, { domain });
    queue.add(job, clock.now());
    return job.lane;
  });
  await runner.start();
  await clock.advance(100); // all are routed
  const taken = lanes
    .flatMap((lane) => [runner.reserve(lane), runner.reserve(lane)])
    .filter((one) => one !== null);
  expect(taken.length).toBe(1500); // all that one account may have
  const [late] = jobsOf("d799.test", 5000, 1);
  if (!late) return;
  queue.add(late, clock.now());
  runner.note(late.lane, clock.now());
  await clock.advance(100);
  expect(begun).not.toContain(late);
  for (const reservation of taken) runner.forgo(reservation);
  await clock.advance(100);
  expect(begun).toContain(late);
});
