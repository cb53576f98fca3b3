import { describe, expect, it } from "vitest";
import { createJobs, readSchedule } from "../src/jobs.ts";
import { silentLog, type Log } from "../src/log.ts";
import type { PeriodicJob } from "../src/service.ts";
import { ManualClock } from "./support/clock.ts";

const hour = 3_600_000;
const day = 24 * hour;
const start = Date.parse("2026-11-27T09:00:05.000Z");

/** Counts how often the wall clock is read and how many timers are set: the work that a jump costs. */
class CountingClock extends ManualClock {
  reads = 0;
  timers = 0;
  override now(): number {
    this.reads += 1;
    return super.now();
  }
  override after(delayMs: number, run: () => void) {
    this.timers += 1;
    return super.after(delayMs, run);
  }
}

function world(jobs: Partial<PeriodicJob>[], startMs = start) {
  const clock = new CountingClock(startMs);
  const lines: [level: string, text: string, fields: unknown][] = [];
  const line = (level: string) => (fields: unknown, text: string) => void lines.push([level, text, fields]);
  const log: Log = { ...silentLog, info: line("info"), warn: line("warn"), error: line("error") };
  const runs: string[] = [];
  const made = jobs.map((job, i): PeriodicJob => {
    const name = job.name ?? `job ${i}`;
    return { name, cron: "* * * * *", run: async () => void runs.push(name), ...job };
  });
  return { clock, lines, runs, jobs: createJobs([{ jobs: made }], clock, log) };
}

/** As far as the longest time until something is looked at again. */
const oneLook = 60_000;

describe("jobs", () => {
  it("run at the times that their patterns name", async () => {
    const { clock, runs, jobs } = world([{ name: "minutely" }, { name: "tens", cron: "*/10 * * * * *" }]);
    await jobs.start();
    await clock.advance(54_999);
    expect(runs).toEqual(["tens", "tens", "tens", "tens", "tens"]);
    await clock.advance(1);
    expect(runs.slice(5)).toEqual(["minutely", "tens"]);
    await clock.advance(2 * oneLook);
    expect(runs.filter((name) => name === "minutely")).toHaveLength(3);
    await jobs.stop();
    expect(clock.pending).toBe(0);
  });

  it("say when they ran and when they run next, and nothing of a next time while they are stopped", async () => {
    const { clock, jobs } = world([{ name: "minutely" }]);
    expect(jobs.states()[0]?.next_run_at).toBeNull();
    await jobs.start();
    await clock.advance(oneLook);
    expect(jobs.states()).toEqual([
      {
        name: "minutely",
        cron: "* * * * *",
        last_run_at: "2026-11-27T09:01:00.000Z",
        next_run_at: "2026-11-27T09:02:00.000Z",
      },
    ]);
    await jobs.stop();
    expect(jobs.states()[0]?.next_run_at).toBeNull();
  });

  it("that fail are logged and run again at their next time", async () => {
    const { clock, lines, jobs } = world([{ name: "bad", run: () => Promise.reject(new Error("no")) }]);
    await jobs.start();
    await clock.advance(2 * oneLook);
    expect(lines.map(([level, , fields]) => [level, (fields as { job: string }).job])).toEqual([
      ["error", "bad"],
      ["error", "bad"],
    ]);
  });

  it("that still run are not started a second time, and nothing is logged for it", async () => {
    let began = 0;
    const long = Promise.withResolvers<void>();
    const { clock, lines, jobs } = world([{ run: () => (began++, long.promise) }]);
    await jobs.start();
    await clock.advance(5 * oneLook);
    expect(began).toBe(1);
    long.resolve();
    await clock.advance(oneLook);
    expect(began).toBe(2);
    expect(lines).toEqual([]);
  });

  it.each([
    ["+2 h", 2 * hour],
    ["+25 h", 25 * hour],
    ["+29 days", 29 * day],
    ["from 1970", 0],
  ])("that a jump of the clock left out (%s) are one run, for the work of a look", async (_, jumpMs) => {
    const list = [
      { name: "daily", cron: "17 4 * * *" },
      { name: "every ten minutes", cron: "*/10 * * * *" },
      { name: "every ten seconds", cron: "*/10 * * * * *" },
      ...Array.from({ length: 5 }, (_, n) => ({ name: `minutely ${n}`, cron: "* * * * *" })),
    ];
    const boot = jumpMs === 0 ? 5000 : start;
    const cost = async (jump: number) => {
      const { clock, lines, runs, jobs } = world(list, boot);
      await jobs.start();
      await clock.advance(1000);
      clock.jump(jump);
      [clock.reads, clock.timers] = [0, 0];
      await clock.advance(oneLook);
      await jobs.stop();
      return { work: clock.reads + clock.timers, lines, runs };
    };
    const without = await cost(0);
    const after = await cost(jumpMs === 0 ? start - boot : jumpMs);
    expect(after.work).toBeLessThanOrEqual(without.work + 20);
    for (const { name, cron } of list) {
      const times = after.runs.filter((run) => run === name).length;
      const most = cron === "*/10 * * * * *" ? 7 : 2; // its missed run, and those of the minute
      expect([name, times >= 1 || cron === "17 4 * * *", times <= most]).toEqual([name, true, true]);
    }
    expect(after.lines).toHaveLength(1);
    expect(after.lines[0]?.[1]).toBe("the system clock was set; jobs are scheduled from the new time");
  });

  it("of once a day run once when the clock jumps over their time", async () => {
    const { clock, runs, jobs } = world([{ name: "daily", cron: "17 4 * * *" }]);
    await jobs.start();
    clock.jump(29 * day);
    await clock.advance(oneLook);
    expect(runs).toEqual(["daily"]);
    await clock.advance(hour);
    expect(runs).toEqual(["daily"]);
  });

  it("go on within a minute when the clock jumps back by 25 hours", async () => {
    const { clock, lines, runs, jobs } = world([{ name: "minutely" }, { name: "daily", cron: "17 4 * * *" }]);
    await jobs.start();
    await clock.advance(5000);
    clock.jump(-25 * hour);
    await clock.advance(2 * oneLook);
    expect(runs).toContain("minutely");
    expect(jobs.states()[1]?.next_run_at).toBe("2026-11-27T04:17:00.000Z");
    await clock.advance(21 * hour);
    expect(runs.filter((name) => name === "daily")).toHaveLength(1);
    expect(lines).toHaveLength(1);
  });

  it("hear nothing of a clock that drifts", async () => {
    const { clock, lines, jobs } = world([{}]);
    await jobs.start();
    for (let i = 0; i < 5; i++) {
      clock.jump(i % 2 === 0 ? 900 : -900);
      await clock.advance(oneLook);
    }
    expect(lines).toEqual([]);
  });
});

describe("a cron pattern", () => {
  it.each([
    ["* * * * *", "2026-11-27T09:00:00.000Z", "2026-11-27T09:01:00.000Z"],
    ["*/10 * * * * *", "2026-11-27T09:00:05.001Z", "2026-11-27T09:00:10.000Z"],
    ["*/10 * * * *", "2026-11-27T23:55:00.000Z", "2026-11-28T00:00:00.000Z"],
    ["17 4 * * *", "2026-12-31T04:17:00.000Z", "2027-01-01T04:17:00.000Z"],
    ["0 0 29 2 *", "2097-03-01T00:00:00.000Z", "2104-02-29T00:00:00.000Z"],
    ["30 12 * * 1", "2026-11-27T09:00:00.000Z", "2026-11-30T12:30:00.000Z"],
    ["0 6 1 */3 *", "2026-11-27T09:00:00.000Z", "2027-01-01T06:00:00.000Z"],
    ["* * * * *", "1970-01-01T00:00:00.000Z", "1970-01-01T00:01:00.000Z"],
  ])("%s after %s comes at %s", (cron, after, next) => {
    expect(new Date(readSchedule(cron)(Date.parse(after))).toISOString()).toBe(next);
  });

  it("that is none is refused", () => {
    expect(() => readSchedule("61 * * * *")).toThrow();
    expect(() => readSchedule("0 0 30 2 *")).toThrow();
  });
});
