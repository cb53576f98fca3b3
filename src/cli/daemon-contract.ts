// What the command line asks of daemon.ts, which stands above it and is handed in by bin/svc.ts:
// the composition of every module, loaded only by `serve`, `init`, `restore`, `migrate` and what is done --offline.
import type { Backup } from "../backup/directory.ts";
import type { RestoredBackup } from "../backup/restore.ts";
import type { Config } from "../config.ts";
import type { Result, Wanted } from "../doctor/doctor.ts";
import type { Log, LogLines } from "../log.ts";
import type { BackupContent } from "../model/backup.ts";
import type { StoreCheck } from "../model/store-check.ts";
import type { SenderDomain } from "../model/domain.ts";

export interface RunningDaemon {
  /** Listeners as they really are: `http`, `smtp` (STARTTLS), `smtps`, `admin`, each with `127.0.0.1:8443` or a path. */
  addresses(): { name: string; address: string }[];
  /** A send key and an SMTP login made for this run of --dev. */
  devCredentials(): Promise<{ key: string; smtpUsername: string; smtpPassword: string }>;
  /** Reads certificates and the shaping file again; unusable ones are logged and the old ones stay. */
  reload(): Promise<unknown>;
  /** Finishes work in flight and releases everything. */
  stop(): Promise<void>;
  /** Resolves once everything has stopped; rejects where a fault stopped it. */
  readonly finished: Promise<void>;
}

export interface Initialised {
  adminKey: string;
  smtp: { username: string; password: string };
  domain: SenderDomain | null;
  /** What of the host name's DNS records is to be mended. */
  remarks: string[];
}

export interface DaemonModule {
  /**
   * `changes`: options that have another value now than `config` has, or the faults of the configuration as it is now.
   * `env`: of the process; what it says of the service manager is obeyed.
   */
  serve(options: {
    config: Config;
    log: Log;
    /** What of the log `svc logs` shows. */
    logLines?: LogLines;
    changes?: () => { changed: string[] } | { faults: string[] };
    env: Readonly<Record<string, string | undefined>>;
  }): Promise<RunningDaemon>;
  /** Makes the database, the first admin key and SMTP login, and a sender domain where one is named. */
  initialise(options: {
    config: Config;
    log: Log;
    domain: string | null;
    checkNetwork: boolean;
  }): Promise<Initialised>;
  /** A backup of a stopped service. Throws StoreLocked where it runs. */
  backupOffline(options: {
    config: Config;
    log: Log;
    to: string;
    content: BackupContent;
    onProgress(share: number): void;
  }): Promise<Backup>;
  /** Checks the store of a stopped service. Throws StoreLocked where it runs. */
  checkOffline(options: { config: Config; log: Log }): Promise<StoreCheck & { sound: boolean }>;
  /** What the doctor can see of a stopped service. Throws StoreLocked where it runs. */
  doctorOffline(options: { config: Config; log: Log; wanted: Wanted }): Promise<Result[]>;
  /** Brings the database of a stopped service to this program's schema. Throws StoreLocked where it runs. */
  migrate(options: {
    dataDir: string;
    dryRun: boolean;
  }): Promise<{ from: number; to: number; copy: string | null }>;
  /** Puts a backup in the place of the data directory of a stopped service. Throws StoreLocked, BackupUnusable. */
  restore(options: {
    from: string;
    dataDir: string;
    isConfigFile(path: string): boolean;
  }): Promise<RestoredBackup>;
}
