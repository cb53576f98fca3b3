// The abuse guard protects the reputation of the server's addresses from a stolen key or a bad list: it pauses an
// account when, within a day, more than a share of its recipients bounced hard or complained, and the operator gets a
// mail (onPaused). It checks only accounts that have events since the last check. What was counted before an account was
// resumed does not count again. What a pause does: sending-pause.ts.
import { dayMs, type Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Log } from "../log.ts";
import { operationsAccount, type Account, type GuardBaseline } from "../model/account.ts";
import type { AuditEntry } from "../model/audit.ts";
import { quarterMs } from "../model/statistics.ts";
import type { HasJobs } from "../service.ts";
import type { Store } from "../store/store.ts";
import type { SendingPause } from "./sending-pause.ts";

type Figures = Omit<GuardBaseline, "from">;

export interface AbuseGuard extends HasJobs {
  /** Pauses the accounts that are above a share. */
  check(): Promise<void>;
  /** Ends an account's pause; what was counted until now no longer counts. False: the account is not paused. */
  resume(account: Account): Promise<boolean>;
}

export interface AbuseGuardDeps {
  store: Pick<Store, "accountByKey" | "accountsWithEvents" | "statsTotals">;
  pauses: Pick<SendingPause, "pause" | "resume">;
  /** After the pause is written; `at`: when it began. */
  onPaused(account: Account, reason: string, at: number): Promise<void>;
  /** null: the guard is off. */
  shares: Config["guard"];
  clock: Clock;
  log: Log;
}

const quarterOf = (at: number): number => Math.floor(at / quarterMs) * quarterMs;
/** A share of fewer recipients is not evidence. */
const leastEnded = 200;
const leastDelivered = 1000;

export function createAbuseGuard({
  store,
  pauses,
  onPaused,
  shares,
  clock,
  log,
}: AbuseGuardDeps): AbuseGuard {
  /** The last event that was checked; 0 after a start, so that every account with events is. */
  let seen = 0;

  /** Live mail only: test traffic has its own counters. Complaints without proof do not count, since anybody can send them. */
  const figuresOf = async (accountKey: number, from: number): Promise<Figures> => {
    const range = { from, to: clock.now() + 1, test: false };
    const totals = await store.statsTotals(accountKey, range);
    const { delivered, bounced, bouncedHard, complained, complainedUnconfirmed } = totals;
    return { delivered, bounced, bouncedHard, complained: complained - complainedUnconfirmed };
  };

  /** Of the last day, or since the account was resumed if that was later. */
  const recent = async ({ key, guarded }: Account): Promise<Figures> => {
    // A whole quarter of an hour, as the counters are kept, so that the range contains all of the baseline.
    const dayAgo = quarterOf(clock.now() - dayMs);
    if (!guarded || guarded.from < dayAgo) return figuresOf(key, dayAgo);
    const now = await figuresOf(key, guarded.from);
    return {
      delivered: now.delivered - guarded.delivered,
      bounced: now.bounced - guarded.bounced,
      bouncedHard: now.bouncedHard - guarded.bouncedHard,
      complained: now.complained - guarded.complained,
    };
  };

  const checkAccount = async (accountKey: number): Promise<void> => {
    const account = await store.accountByKey(accountKey);
    if (!shares || !account || account.pausedAt !== null || account.name === operationsAccount) return;
    const reason = reasonToPause(await recent(account), shares);
    const at = clock.now();
    if (reason === null || !(await pauses.pause(accountKey, reason, pauseEntry(account, reason, at)))) return;
    log.warn({ account: account.id, reason }, "abuse guard paused an account");
    await onPaused(account, reason, at);
  };

  const check = async (): Promise<void> => {
    if (!shares) return;
    const { accounts, lastSeq } = await store.accountsWithEvents(seen);
    for (const accountKey of accounts) await checkAccount(accountKey);
    seen = lastSeq;
  };

  return {
    jobs: [{ name: "guard", cron: "* * * * *", run: check }],
    check,
    async resume(account) {
      const from = quarterOf(clock.now());
      const resumed = await pauses.resume(account.key, { from, ...(await figuresOf(account.key, from)) });
      if (resumed) log.info({ account: account.id }, "resumed a paused account");
      return resumed;
    },
  };
}

/** Why the account is to be paused, in the words of the operator's mail and of the refusals; null: it is not. */
function reasonToPause(figures: Figures, shares: NonNullable<Config["guard"]>): string | null {
  const { delivered, bounced, bouncedHard, complained } = figures;
  const ended = delivered + bounced;
  if (ended >= leastEnded && bouncedHard > shares.hardBounceShare * ended)
    return `${percent(bouncedHard, ended)} of ${ended} recipients within a day bounced hard, more than ${percent(shares.hardBounceShare, 1)}`;
  if (delivered >= leastDelivered && complained > shares.complaintShare * delivered)
    return `${percent(complained, delivered)} of ${delivered} recipients within a day complained, more than ${percent(shares.complaintShare, 1)}`;
  return null;
}

function pauseEntry({ key, name }: Account, reason: string, at: number): AuditEntry {
  return {
    at,
    accountKey: key,
    actorKind: "system",
    actor: null,
    sourceIp: null,
    requestId: null,
    action: "accounts.pause",
    target: name,
    times: 1,
    detail: { reason },
  };
}

function percent(part: number, whole: number): string {
  return `${Number(((part / whole) * 100).toFixed(2))} %`;
}
