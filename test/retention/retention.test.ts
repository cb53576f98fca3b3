import { expect, test } from "vitest";
import { createRetention } from "../../src/retention/retention.ts";
import { silentLog } from "../../src/log.ts";
import { nothingPurged as nothing, type Purged, type PurgeRequest } from "../../src/model/retention.ts";
import { StoreUnavailable } from "../../src/store/store.ts";
import { ManualClock, settle } from "../support/clock.ts";

const day = 86_400_000;
const limits = { contentMs: 3 * day, messagesMs: 90 * day, eventsMs: 30 * day, auditMs: 90 * day };

/** A store that has `pieces` to delete, each of which takes `tookMs`. */
function makeRig(pieces: number, tookMs = 0) {
  const clock = new ManualClock();
  const asked: PurgeRequest[] = [];
  const rig = { clock, asked, tookMs, left: pieces, fails: false };
  const purge = async (request: PurgeRequest): Promise<Purged> => {
    asked.push(request);
    if (rig.fails) throw new StoreUnavailable("full", "no room");
    if (rig.tookMs > 0) await new Promise<void>((resolve) => clock.after(rig.tookMs, resolve));
    rig.left--;
    return { ...nothing, content: 1, more: rig.left > 0 };
  };
  const expired = (): never => {
    throw new Error("nobody asked for it");
  };
  const retention = createRetention({ store: { purge, expired }, retention: limits, clock, log: silentLog });
  return Object.assign(rig, { retention });
}

/** Moves time until the run has ended; returns how long that took. */
async function toEnd({ clock }: { clock: ManualClock }, run: Promise<void>): Promise<number> {
  const from = clock.monotonic();
  let ended = false;
  void run.then(() => (ended = true));
  for (await settle(); !ended;) await clock.advance(1);
  await run;
  return clock.monotonic() - from;
}

test("deletes by the cut-off times of now until nothing expired is left", async () => {
  const rig = makeRig(3);
  const now = rig.clock.now();
  await toEnd(rig, rig.retention.run());
  expect(rig.asked).toHaveLength(3);
  expect(rig.asked[0]).toMatchObject({
    now,
    contentBefore: now - 3 * day,
    messagesBefore: now - 90 * day,
    eventsBefore: now - 30 * day,
  });
});

test("fast pieces grow and slow ones shrink, within bounds", async () => {
  const rig = makeRig(12);
  await toEnd(rig, rig.retention.run());
  const grown = rig.asked.map(({ limit }) => limit);
  expect(grown.slice(0, 3)).toEqual([200, 400, 800]);
  expect(grown.at(-1)).toBe(2000);
  Object.assign(rig, { left: 12, tookMs: 50 });
  rig.asked.length = 0;
  await toEnd(rig, rig.retention.run());
  const shrunk = rig.asked.map(({ limit }) => limit);
  expect(shrunk.slice(0, 3)).toEqual([2000, 1000, 500]);
  expect(shrunk.at(-1)).toBe(20);
});

test("other writes have as much time between two pieces as a piece took", async () => {
  const rig = makeRig(4, 20);
  expect(await toEnd(rig, rig.retention.run())).toBeGreaterThanOrEqual(4 * 20 + 3 * 20);
});

test("a stop ends the run after the piece under way, and no run starts after it", async () => {
  const rig = makeRig(1000, 20);
  const run = rig.retention.run();
  await rig.clock.advance(30); // within the pause after the first
  const stopped = rig.retention.stop();
  await Promise.all([run, stopped]);
  expect(rig.asked).toHaveLength(1);
  await rig.retention.run();
  expect(rig.asked).toHaveLength(1);
  expect(rig.clock.pending).toBe(0);
});

test("a refused write fails the run and not the stop; the next run starts over", async () => {
  const rig = makeRig(1);
  rig.fails = true;
  await expect(rig.retention.run()).rejects.toBeInstanceOf(StoreUnavailable);
  rig.fails = false;
  await toEnd(rig, rig.retention.run());
  expect(rig.left).toBe(0);
  rig.fails = true;
  const failing = rig.retention.run();
  await Promise.all([rig.retention.stop(), expect(failing).rejects.toBeInstanceOf(StoreUnavailable)]);
});

test("a run that is asked for waits for the job's, returns free space, and is one at a time", async () => {
  const rig = makeRig(3, 20);
  const job = rig.retention.run();
  rig.retention.begin();
  expect(() => rig.retention.begin()).toThrow("Try again when that has ended");
  expect(rig.asked.map(({ returnAll }) => returnAll)).toEqual([undefined]);
  await toEnd(rig, job);
  rig.left = 2;
  expect(rig.retention.running()).toMatchObject({ deleted: { content: 0 } });
  await toEnd(rig, rig.retention.run()); // the job's next time: it is the same run
  expect(rig.asked.map(({ returnAll }) => returnAll).slice(3)).toEqual([true, true]);
  expect(rig.retention.last()).toMatchObject({ error: null, deleted: { content: 2 } });
  expect(rig.retention.running()).toBe(null);
});

test("of a run that the store refuses, the reason is kept, and the next one may begin", async () => {
  const rig = makeRig(1);
  rig.fails = true;
  rig.retention.begin();
  await settle();
  expect(rig.retention.last()).toMatchObject({ error: "no room" });
  rig.fails = false;
  rig.retention.begin();
  await settle();
  expect(rig.retention.last()).toMatchObject({ error: null });
});
