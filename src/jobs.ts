// Waits for the periodic jobs and runs them. A job is declared by the module whose code it runs (HasJobs, service.ts);
// this file knows none of them. node-cron reads the patterns; the waiting is ours, because node-cron walks through every
// time that a jump of the clock left out. Here the work does not grow with the jump: a job that missed any number of its
// times runs once, and each look costs the same.
import { createTask, parse } from "node-cron";
import { dayMs, isoTime, type Clock, type Timer } from "./clock.ts";
import type { Log } from "./log.ts";
import type { HasJobs, PeriodicJob, Service } from "./service.ts";

export interface JobState {
  name: string;
  cron: string;
  last_run_at: string | null;
  next_run_at: string | null;
}

/** No timer is longer, so that a job which a jump of the clock made due is found within a minute. */
const lookAgainMs = 60_000;
/** The wall clock and the monotonic one drift apart by less within a minute, unless the clock is set. */
const jumpMs = 30_000;

interface Planned {
  job: PeriodicJob;
  schedule: Schedule;
  /** Wall clock, milliseconds since 1970. */
  next: number;
  running: boolean;
  lastRun: string | null;
}

export interface Jobs extends Service {
  states(): JobState[];
}

/** The jobs of `modules`, shown in that order. */
export function createJobs(modules: readonly HasJobs[], clock: Clock, log: Log): Jobs {
  const all = modules.flatMap(({ jobs }) => jobs);
  const plans = all.map((job): Planned => ({
    job,
    schedule: readSchedule(job.cron),
    next: 0,
    running: false,
    lastRun: null,
  }));
  let timer: Timer | null = null;
  let started = false;
  /** The last look, by both clocks. */
  let looked = { wall: 0, steady: 0 };

  const run = async (plan: Planned): Promise<void> => {
    plan.running = true;
    try {
      await plan.job.run();
    } catch (error) {
      log.error({ job: plan.job.name, err: error }, "a job failed; it runs again at its next time");
    }
    plan.running = false;
    plan.lastRun = isoTime(clock.now());
  };

  const look = (): void => {
    const now = clock.now();
    const steady = clock.monotonic();
    const jump = now - looked.wall - (steady - looked.steady);
    looked = { wall: now, steady };
    const jumped = Math.abs(jump) > jumpMs;
    if (jumped)
      log.warn(
        { seconds: Math.round(jump / 1000) },
        "the system clock was set; jobs are scheduled from the new time",
      );
    for (const plan of plans) {
      const due = plan.next <= now;
      // After a jump backwards the time that was planned may be days away.
      if (due || jumped) plan.next = plan.schedule(now);
      if (due && !plan.running) void run(plan);
    }
    arm();
  };

  const arm = (): void => {
    const next = Math.min(...plans.map((plan) => plan.next));
    timer = clock.after(Math.min(Math.max(0, next - clock.now()), lookAgainMs), look);
  };

  return {
    name: "jobs",
    async start() {
      started = true;
      looked = { wall: clock.now(), steady: clock.monotonic() };
      for (const plan of plans) plan.next = plan.schedule(looked.wall);
      arm();
    },
    async stop() {
      started = false;
      timer?.cancel();
    },
    states: () =>
      plans.map(({ job, next, lastRun }) => ({
        name: job.name,
        cron: job.cron,
        last_run_at: lastRun,
        next_run_at: started ? isoTime(next) : null,
      })),
  };
}

/** The first time of a pattern after `after`. */
export type Schedule = (after: number) => number;

/** February 29 comes at least once in eight years. */
const daysLooked = 8 * 366;

/** Throws for a text that is not a cron pattern. Iterates over days, but not over times of the day. */
export function readSchedule(cron: string): Schedule {
  const fields = parse(cron);
  const task = createTask(cron, () => undefined, { timezone: "UTC" });
  void task.destroy(); // it is never started: it says which days match
  const sorted = (values: number[]): number[] => values.toSorted((a, b) => a - b);
  const [hours, minutes, seconds] = [sorted(fields.hour), sorted(fields.minute), sorted(fields.second)];

  /** Milliseconds of the day, at `from` or later. */
  const timeOfDay = (from: number): number | null => {
    for (const hour of hours)
      for (const minute of minutes) {
        if ((hour * 60 + minute + 1) * 60_000 <= from) continue;
        for (const second of seconds) {
          const at = ((hour * 60 + minute) * 60 + second) * 1000;
          if (at >= from) return at;
        }
      }
    return null;
  };

  return (after) => {
    const today = Math.floor(after / dayMs) * dayMs;
    for (let day = 0; day < daysLooked; day++) {
      const time = timeOfDay(day === 0 ? after + 1 - today : 0);
      const at = today + day * dayMs + (time ?? 0);
      if (time !== null && task.match(new Date(at))) return at;
    }
    throw new Error(`the cron pattern ${cron} has no next time`);
  };
}
