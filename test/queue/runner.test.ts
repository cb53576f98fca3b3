import { describe, expect, test } from "vitest";
import { untried, type Outcome } from "../../src/mail/outcome.ts";
import { queueNameOf } from "../../src/queue/queue-name.ts";
import { StoreUnavailable } from "../../src/store/store.ts";
import { deferredOutcome, makeJob, makeTrace } from "../support/jobs.ts";

import { bench, jobsOf } from "./runner-rig.ts";

describe("scheduledQueues", () => {
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

  test("a retry is routed anew, as the MX may have changed since", async () => {
    const routed: string[] = [];
    const { queue, clock, runner, begun, finish } = bench({
      hangs: ["slow.test"],
      routing: async (queueName) => void routed.push(queueName),
      groupOf: () => `mx${routed.length}.test`,
    });
    queue.add(makeJob(1, { domain: "slow.test" }), clock.now());
    await runner.start();
    await clock.advance(5);
    finish("slow.test", deferredOutcome());
    await clock.advance(61_000);
    finish("slow.test");
    await clock.advance(5);
    expect(begun).toHaveLength(2);
    expect(queue.settled.map(({ provider }) => provider)).toEqual(["mx1.test", "mx2.test"]);
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
  test("a destination that hangs uses its own slots only", async () => {
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

  test("other limits hold at once for what waits, and for what was due under another group", async () => {
    let group = "a.test";
    const { queue, clock, runner, begun, shaping } = bench({
      shaping: { groups: { "a.test": { connections: 2, per_second: 0.001 } } },
      groupOf: () => group,
    });
    for (const job of jobsOf("x.test", 1, 30)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(5_000);
    expect(begun).toHaveLength(1);
    group = "b.test";
    shaping.replace([]);
    runner.onShapingChanged();
    await clock.advance(1_000);
    expect(begun.length, "what was not claimed before goes by the other group").toBeGreaterThan(20);
    const before = begun.length;
    shaping.replace([
      {
        name: "a.test",
        connections: 5,
        perSecond: 100,
        messagesPerConnection: null,
        tls: null,
        updatedAt: 0,
      },
    ]);
    runner.onShapingChanged();
    await clock.advance(1_000);
    expect([before < 30, begun.length]).toEqual([true, 30]);
    const [state] = runner.limiters((of) => of === "a.test");
    expect(state).toMatchObject({ group: "a.test", address: null, taken: 0, factor: 1, limit: 5 });
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

  test("the scheduled queues of one group are served in turn", async () => {
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
  test("a scheduled queue that is not known yet gives no slot; one that was just served does", async () => {
    const { queue, clock, runner, begun } = bench();
    await runner.start();
    expect(runner.reserve("1.default/x.test")).toBeNull();
    queue.add(makeJob(1), clock.now());
    runner.note("1.default/x.test", clock.now());
    await clock.advance(10);
    const reservation = runner.reserve("1.default/x.test");
    expect(reservation?.leaseOwner).toBe("boot");
    if (reservation) runner.run(reservation, makeJob(2));
    await clock.advance(0);
    expect(begun.map(({ key }) => key)).toEqual([1, 2]);
  });

  test("reservations count as taken slots and come back when cancelled", async () => {
    const { queue, clock, runner } = bench();
    await runner.start();
    queue.add(makeJob(1), clock.now());
    runner.note("1.default/x.test", clock.now());
    await clock.advance(10);
    const held = Array.from({ length: 12 }, () => runner.reserve("1.default/x.test"));
    expect(held.filter((reservation) => reservation !== null)).toHaveLength(10);
    for (const reservation of held) if (reservation) runner.cancelReservation(reservation);
    expect(runner.reserve("1.default/x.test")).not.toBeNull();
  });

  test("no later job overtakes what waits", async () => {
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
    await clock.advance(90_000); // the scheduled queue was looked at meanwhile, and nothing waited in it
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

  test("a scheduled queue whose name server hangs does not delay the other scheduled queues of its group", async () => {
    let hung = false;
    const { queue, clock, runner, begun } = bench({
      groupOf: () => "provider.test",
      shaping: { groups: { "provider.test": { connections: 2, per_second: 1 } } },
      routing: (queueName) =>
        hung && queueName.endsWith("a.test") ? new Promise(() => undefined) : Promise.resolve(),
    });
    for (const job of jobsOf("a.test", 1, 40)) queue.add(job, clock.now());
    for (const job of jobsOf("b.test", 101, 20)) queue.add(job, clock.now());
    await runner.start();
    await clock.advance(1_000);
    hung = true;
    await clock.advance(120_000);
    expect(begun.filter(({ domain }) => domain === "b.test")).toHaveLength(20);
  });

  test("thousands of scheduled queues whose name servers hang delay neither a known destination nor another account's new one", async () => {
    let full = false;
    const { queue, clock, runner, begun } = bench({
      routing: (queueName) =>
        full && !queueName.startsWith("2.") ? new Promise(() => undefined) : Promise.resolve(),
    });
    const known = makeJob(1, { domain: "known.test" });
    queue.add(known, clock.now());
    await runner.start();
    await clock.advance(0);
    full = true;
    for (const { queueName } of Array.from({ length: 5_000 }, (_, i) =>
      makeJob(10 + i, { domain: `hangs${i}.test` }),
    ))
      runner.note(queueName, clock.now());
    await clock.advance(900);
    queue.add({ ...known, key: 2 }, clock.now());
    runner.note(known.queueName, clock.now());
    const fresh = makeJob(3, { domain: "fresh.test", queueName: queueNameOf(2, "default", "fresh.test") });
    queue.add(fresh, clock.now());
    runner.note(fresh.queueName, clock.now());
    await clock.advance(0);
    expect(begun.map(({ key }) => key)).toEqual([1, 2, 3]);
    expect(runner.reserve(known.queueName)).not.toBeNull();
    await runner.stop();
  });

  test("a recipient that was suppressed after acceptance is not attempted", async () => {
    const suppressed = { kind: "bounced", classification: "suppressed", trace: untried(0) } as Outcome;
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

test("an account all of whose receivers hang leaves slots to another's mail", async () => {
  const domains = Array.from({ length: 2_100 }, (_, i) => `tarpit-${i}.test`);
  const { queue, clock, runner, begun } = bench({
    hangs: domains,
    readyQueueOf: (queueName) => queueName,
    accountOf: (queueName) => Number(queueName.split(".")[0]),
  });
  domains.forEach((domain, i) => queue.add(makeJob(i, { domain, queueName: `1.a/${domain}` }), clock.now()));
  await runner.start();
  await clock.advance(1_000);
  expect(begun).toHaveLength(1_500);
  for (let i = 0; i < 20; i++) {
    const queueName = `2.a/fine-${i}.test`;
    queue.add(makeJob(5_000 + i, { domain: `fine-${i}.test`, queueName }), clock.now());
    runner.note(queueName, clock.now());
  }
  await clock.advance(1_000);
  expect(queue.settled).toHaveLength(20);
});

test("mail that found no slot goes as soon as acceptances that failed leave theirs", async () => {
  const domains = Array.from({ length: 800 }, (_, i) => `d${i}.test`);
  const { queue, clock, runner, begun } = bench();
  const scheduledQueues = domains.map((domain, i) => {
    const job = makeJob(1 + i, { domain });
    queue.add(job, clock.now());
    return job.queueName;
  });
  await runner.start();
  await clock.advance(100); // all are routed
  const taken = scheduledQueues
    .flatMap((queueName) => [runner.reserve(queueName), runner.reserve(queueName)])
    .filter((one) => one !== null);
  expect(taken.length).toBe(1500); // all that one account may have
  const [late] = jobsOf("d799.test", 5000, 1);
  if (!late) return;
  queue.add(late, clock.now());
  runner.note(late.queueName, clock.now());
  await clock.advance(100);
  expect(begun).not.toContain(late);
  for (const reservation of taken) runner.cancelReservation(reservation);
  await clock.advance(100);
  expect(begun).toContain(late);
});
