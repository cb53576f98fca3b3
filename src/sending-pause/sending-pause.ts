// Accounts whose sending is paused, and their held mail. While an account is paused, the store holds its mail when a
// claim finds it, and the queue requeues what it has claimed and not begun. After the resume, held mail is
// released a piece at a time while sending begins. The paused accounts are read from the store at the start and kept in
// memory, so that an attempt needs no look-up. What pauses an account: abuse-guard.ts; what its sends are answered:
// refusals.ts.
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import type { GuardBaseline } from "../model/account.ts";
import type { AuditEntry } from "../model/audit.ts";
import type { HasJobs, Service } from "../service.ts";
import type { Store } from "../store/store.ts";

export interface SendingPause extends Service, HasJobs {
  isPaused(accountKey: number): boolean;
  /** `audit` is written in the same transaction. False: the account is paused already. */
  pause(accountKey: number, reason: string, audit?: AuditEntry): Promise<boolean>;
  /** New mail is sent at once, held mail as it is released. False: the account is not paused. */
  resume(accountKey: number, guarded: GuardBaseline | null): Promise<boolean>;
  /** Releases the held mail of accounts that are not paused. */
  release(): Promise<void>;
  /** Called for each scheduled queue of which recipients were released, with the time when the first is due. */
  onReleased(listener: (queueName: string, dueAt: number) => void): void;
}

export interface SendingPauseDeps {
  store: Pick<Store, "pauseAccount" | "resumeAccount" | "pausedAccounts" | "accountsOnHold" | "releaseHeld">;
  clock: Clock;
  log: Log;
}

/** Recipients released in one write: some milliseconds of the writer thread. */
const pieceSize = 500;

export function createSendingPause({ store, clock, log }: SendingPauseDeps): SendingPause {
  const paused = new Set<number>();
  const listeners: ((queueName: string, dueAt: number) => void)[] = [];
  let releasing: Promise<void> | null = null;
  let stopping = false;

  const releaseAll = async (): Promise<void> => {
    for (const accountKey of await store.accountsOnHold()) {
      let total = 0;
      for (let more = true; more && !stopping && !paused.has(accountKey);) {
        const { released, scheduledQueues } = await store.releaseHeld(accountKey, clock.now(), pieceSize);
        for (const { queueName, dueAt } of scheduledQueues)
          for (const listener of listeners) listener(queueName, dueAt);
        total += released;
        more = released === pieceSize;
      }
      if (total > 0) log.info({ account: accountKey, recipients: total }, "released held mail");
    }
  };
  const release = (): Promise<void> => (releasing ??= releaseAll().finally(() => (releasing = null)));

  return {
    name: "sending-pause",
    jobs: [{ name: "release-held", cron: "* * * * *", run: release }],
    async start() {
      for (const { key } of await store.pausedAccounts()) paused.add(key);
    },
    async stop() {
      stopping = true;
      await releasing?.catch(() => undefined); // logged where the release was started
    },
    isPaused: (accountKey) => paused.has(accountKey),
    async pause(accountKey, reason, audit) {
      const changed = await store.pauseAccount(accountKey, clock.now(), reason, audit);
      paused.add(accountKey);
      return changed;
    },
    async resume(accountKey, guarded) {
      const changed = await store.resumeAccount(accountKey, guarded);
      paused.delete(accountKey);
      void release().catch((error: unknown) =>
        log.warn({ err: error }, "held mail could not be released; retried within a minute"),
      );
      return changed;
    },
    release,
    onReleased: (listener) => void listeners.push(listener),
  };
}
