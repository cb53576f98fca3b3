// What runs for as long as the program does, and the work that the clock starts. daemon.ts starts the services in order
// and stops them in reverse; daemon/periodic-jobs.ts hands the periodic jobs of all modules to jobs.ts.
export interface Service {
  readonly name: string;
  start(): Promise<void>;
  /** Finishes work in flight and releases every handle. */
  stop(): Promise<void>;
}

/** Declared beside the code that it runs. */
export interface PeriodicJob {
  /** Shown by `svc status`. */
  name: string;
  /** Cron expression, in UTC, with seconds as an optional first field. */
  cron: string;
  /** A rejection is logged, and the job runs again at its next time. It is not started while it still runs. */
  run(): Promise<void>;
}

/** A module that has periodic jobs. */
export interface HasJobs {
  readonly jobs: readonly PeriodicJob[];
}
