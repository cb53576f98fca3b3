// Backups of the running program: one at a time, by the operator or by the daily job (`backup.at`). What one is: directory.ts.
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import { Refusal } from "../errors.ts";
import type { Log } from "../log.ts";
import type { BackupContent } from "../model/backup.ts";
import type { HasJobs, Service } from "../service.ts";
import type { Store } from "../store/store.ts";
import { listBackups, makeBackup, removeOld, type Backup, type BackupPlan } from "./directory.ts";

export interface RunningBackup {
  to: string;
  content: BackupContent;
  startedAt: number;
  /** 0 to 1. */
  progress: number;
}

export interface LastBackup {
  endedAt: number;
  /** null: it failed. */
  backup: Backup | null;
  /** Why it failed. */
  error: string | null;
}

export interface Backups extends Service, HasJobs {
  /** Begins one. Throws Refusal where one is running. */
  begin(request: { to: string | null; content: BackupContent }): RunningBackup;
  running(): RunningBackup | null;
  /** The last one of this run of the program. */
  last(): LastBackup | null;
  /** When the newest one was begun, of those in `backup.to` at the start and those of this run; null: there is none. */
  newestAt(): number | null;
  /** Those in `backup.to`, the newest first, a hundred at most; while a backup runs, as they were when it began. */
  list(): Promise<Backup[]>;
}

export interface BackupDeps {
  store: Pick<Store, "copyInto">;
  config: Pick<Config, "dataDir" | "hostname" | "backup" | "files">;
  version: string;
  /** The daily one failed. */
  onFailed(error: string): void;
  clock: Clock;
  log: Log;
}

const mostListed = 100;

export function createBackups({ store, config, version, onFailed, clock, log }: BackupDeps): Backups {
  const { dataDir, hostname, backup: options, files: configFiles } = config;
  const parts = { copyInto: store.copyInto, dataDir, hostname, version, configFiles, log };
  let running: RunningBackup | null = null;
  let last: LastBackup | null = null;
  let newestAt: number | null = null;
  let listed: Backup[] = [];
  let listing: Promise<Backup[]> | null = null;
  const stopping = new AbortController();
  let over: Promise<unknown> = Promise.resolve();

  const make = async (plan: BackupPlan, state: RunningBackup): Promise<Backup> => {
    try {
      const onProgress = (share: number): void => void (state.progress = share);
      const backup = await makeBackup(parts, plan, state.startedAt, { onProgress, signal: stopping.signal });
      last = { endedAt: clock.now(), backup, error: null };
      newestAt = state.startedAt;
      if (plan.to === options.to) listed = [backup, ...listed].slice(0, mostListed);
      log.info({ path: backup.path, seconds: secondsOf(state, last) }, "made a backup");
      return backup;
    } catch (error) {
      const text = reasonOf(error, plan.to);
      last = { endedAt: clock.now(), backup: null, error: text };
      log.error({ to: plan.to, detail: text }, "the backup failed");
      throw error;
    } finally {
      running = null;
    }
  };

  const start = (plan: BackupPlan): { state: RunningBackup; made: Promise<Backup> } => {
    if (running) throw new Refusal("conflict", "A backup is running. Try again when it has ended.");
    const state = { to: plan.to, content: plan.content, startedAt: clock.now(), progress: 0 };
    running = state;
    const made = make(plan, state);
    over = made.catch(() => undefined);
    return { state, made };
  };

  /** The folder may be a slow one: it is read once for all who ask meanwhile, and not for those who wait for a backup. */
  const list = async (): Promise<Backup[]> => {
    if (running) return listed;
    listing ??= listBackups(options.to, mostListed).finally(() => (listing = null));
    const found = await listing;
    if (!running) listed = found;
    return listed;
  };

  const daily = async (): Promise<void> => {
    if (running) return log.warn({}, "no daily backup: one is running already");
    try {
      await start({ to: options.to, content: "all", scheduled: true }).made;
    } catch (error) {
      if (stopping.signal.aborted) return; // the stop ended it
      return onFailed(reasonOf(error, options.to)); // it is logged above
    }
    const removed = await removeOld(options.to, options.keep);
    if (removed.length > 0) log.info({ removed }, "removed old backups");
  };

  return {
    name: "backups",
    jobs: options.at === null ? [] : [{ name: "backup", cron: cronOf(options.at), run: daily }],
    begin: ({ to, content }) => start({ to: to ?? options.to, content, scheduled: false }).state,
    running: () => running,
    last: () => last,
    newestAt: () => newestAt,
    list,
    start() {
      // Not waited for: a folder that hangs must not keep the mail from going out.
      void list().then(([newest]) => {
        if (newest) newestAt ??= Date.parse(newest.created_at);
      });
      return Promise.resolve();
    },
    async stop() {
      stopping.abort();
      await over;
    },
  };
}

/** Why it failed; of a folder that the service may not write, what to do. */
function reasonOf(error: unknown, to: string): string {
  if (!(error instanceof Error)) return String(error);
  const code = "code" in error ? error.code : null;
  if (code !== "EACCES" && code !== "EROFS" && code !== "EPERM") return error.message;
  return `${error.message}; make it for the user of the service: install -d -o svc -g svc -m 0700 ${to} (and see ReadWritePaths= of the unit)`;
}

const secondsOf = ({ startedAt }: RunningBackup, { endedAt }: LastBackup): number =>
  Math.round((endedAt - startedAt) / 1000);

/** Of `03:30`. */
function cronOf(at: string): string {
  const [hour = "0", minute = "0"] = at.split(":").map(Number);
  return `${minute} ${hour} * * *`;
}
