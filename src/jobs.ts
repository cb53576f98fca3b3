// Everything the clock drives: one line a job. Run by node-cron, shown by `svc status`.
import { schedule, type ScheduledTask } from "node-cron";
import { isoTime, type Clock } from "./clock.ts";
import type { Log } from "./log.ts";
import type { Service } from "./service.ts";

export interface Job {
  name: string;
  /** Cron expression, in UTC. */
  cron: string;
  run(): Promise<void>;
}

export interface JobState {
  name: string;
  cron: string;
  last_run_at: string | null;
  next_run_at: string | null;
}

/** The jobs of this program. */
export function jobList(work: {
  recheckDomains(): Promise<void>;
  renewCertificates(): Promise<void>;
  secondLooks(): Promise<void>;
  prune(): Promise<void>;
  foldStats(): Promise<void>;
  guard(): Promise<void>;
  releaseHeld(): Promise<void>;
  lookAtAddresses(): Promise<void>;
}): Job[] {
  return [
    { name: "recheck-domains", cron: "*/10 * * * *", run: work.recheckDomains },
    { name: "renew-certificates", cron: "17 4 * * *", run: work.renewCertificates },
    { name: "second-looks", cron: "* * * * *", run: work.secondLooks },
    { name: "prune", cron: "* * * * *", run: work.prune },
    { name: "fold-stats", cron: "*/10 * * * * *", run: work.foldStats },
    { name: "guard", cron: "* * * * *", run: work.guard },
    { name: "release-held", cron: "* * * * *", run: work.releaseHeld },
    { name: "look-at-addresses", cron: "* * * * *", run: work.lookAtAddresses },
  ];
}

export function createJobs(jobs: Job[], clock: Clock, log: Log): Service & { states(): JobState[] } {
  const tasks = new Map<Job, ScheduledTask>();
  const lastRuns = new Map<Job, string>();
  return {
    name: "jobs",
    async start() {
      for (const job of jobs) {
        const run = async (): Promise<void> => {
          try {
            await job.run();
          } catch (error) {
            log.error({ job: job.name, err: error }, "a job failed; it runs again at its next time");
          }
          lastRuns.set(job, isoTime(clock.now()));
        };
        tasks.set(job, schedule(job.cron, run, { name: job.name, timezone: "UTC", noOverlap: true }));
      }
    },
    async stop() {
      for (const task of tasks.values()) await task.destroy();
    },
    states: () =>
      jobs.map((job) => ({
        name: job.name,
        cron: job.cron,
        last_run_at: lastRuns.get(job) ?? null,
        next_run_at: tasks.get(job)?.getNextRun()?.toISOString() ?? null,
      })),
  };
}
