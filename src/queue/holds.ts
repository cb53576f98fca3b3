// Accounts whose sending is paused, and what becomes of their mail: the store puts on hold what a claim comes upon, the
// runner gives back what it has not begun, and once the account is resumed the held mail is put back in line, a piece
// at a time, while sending begins. Which accounts are paused is read from the store at the start and kept here, so that
// an attempt asks nobody. Why an account is paused is the guard's (care/guard.ts).
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import type { GuardBaseline } from "../model/account.ts";
import type { AuditEntry } from "../model/audit.ts";
import type { Service } from "../service.ts";
import type { Store } from "../store/store.ts";

export interface Holds extends Service {
  isPaused(accountKey: number): boolean;
  /** `audit` is written with it. False: it is paused already. */
  pause(accountKey: number, reason: string, audit?: AuditEntry): Promise<boolean>;
  /** Sending goes on: what is on hold follows by and by. False: the account is not paused. */
  resume(accountKey: number, guarded: GuardBaseline | null): Promise<boolean>;
  /** Puts in line what is on hold of accounts that are not paused. */
  release(): Promise<void>;
}

export interface HoldsDeps {
  store: Pick<Store, "pauseAccount" | "resumeAccount" | "pausedAccounts" | "accountsOnHold" | "releaseHeld">;
  /** Recipients of `lane` wait in the store. */
  note(lane: string, dueAt: number): void;
  clock: Clock;
  log: Log;
}

/** Some milliseconds of the writer's. */
const pieceSize = 500;

export function createHolds({ store, note, clock, log }: HoldsDeps): Holds {
  const paused = new Set<number>();
  let releasing: Promise<void> | null = null;
  let stopping = false;

  const releaseAll = async (): Promise<void> => {
    for (const accountKey of await store.accountsOnHold()) {
      let total = 0;
      for (let more = true; more && !stopping && !paused.has(accountKey);) {
        const { released, lanes } = await store.releaseHeld(accountKey, clock.now(), pieceSize);
        for (const { lane, dueAt } of lanes) note(lane, dueAt);
        total += released;
        more = released === pieceSize;
      }
      if (total > 0) log.info({ account: accountKey, recipients: total }, "mail on hold is in line again");
    }
  };
  const release = (): Promise<void> => (releasing ??= releaseAll().finally(() => (releasing = null)));

  return {
    name: "holds",
    async start() {
      for (const { key } of await store.pausedAccounts()) paused.add(key);
    },
    async stop() {
      stopping = true;
      await releasing?.catch(() => undefined); // told where it was asked for
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
        log.warn({ err: error }, "mail on hold was not put in line; it is tried again within a minute"),
      );
      return changed;
    },
    release,
  };
}
