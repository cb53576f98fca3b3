// The guard against a stolen key or a rotten list: an account of whose recipients too many bounced hard, or too many
// complained, within a day is paused for sending, and the operator is told. What a pause does to its mail is the
// queue's (queue/holds.ts), what a send meets then the doors' (access/paused.ts). Only accounts to whose mail something
// happened since the last look are looked at; what had been counted when an account was resumed does not count again.
import { dayMs, type Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Log } from "../log.ts";
import { operationsAccount, type Account, type GuardBaseline } from "../model/account.ts";
import type { AuditEntry } from "../model/audit.ts";
import { quarterMs } from "../model/statistics.ts";
import type { Holds } from "../queue/holds.ts";
import type { Store } from "../store/store.ts";
import type { Notices } from "./notices.ts";

type Figures = Omit<GuardBaseline, "from">;

export interface Guard {
  /** Pauses whoever has passed a share. */
  check(): Promise<void>;
  /** Ends an account's pause; what was counted until now is forgiven. False: it is not paused. */
  resume(account: Account): Promise<boolean>;
}

export interface GuardDeps {
  store: Pick<Store, "accountByKey" | "accountsWithEvents" | "statsTotals">;
  holds: Pick<Holds, "pause" | "resume">;
  notices: Notices;
  shares: Config["guard"];
  clock: Clock;
  log: Log;
}

const quarterOf = (at: number): number => Math.floor(at / quarterMs) * quarterMs;
/** Fewer say nothing. */
const leastEnded = 200;
const leastDelivered = 1000;

export function createGuard({ store, holds, notices, shares, clock, log }: GuardDeps): Guard {
  /** The last event that was looked at; none: after a start every account is. */
  let seen = 0;

  /** Live mail alone: test traffic has counters of its own. Complaints that anybody could have sent do not count. */
  const figuresOf = async (accountKey: number, from: number): Promise<Figures> => {
    const range = { from, to: clock.now() + 1, test: false };
    const totals = await store.statsTotals(accountKey, range);
    const { delivered, bounced, bouncedHard, complained, complainedUnconfirmed } = totals;
    return { delivered, bounced, bouncedHard, complained: complained - complainedUnconfirmed };
  };

  /** Of the last day, or since the account was resumed. */
  const recent = async ({ key, guarded }: Account): Promise<Figures> => {
    const dayAgo = quarterOf(clock.now() - dayMs); // as it is counted: what was forgiven has to be within whole
    if (!guarded || guarded.from < dayAgo) return figuresOf(key, dayAgo);
    const now = await figuresOf(key, guarded.from);
    return {
      delivered: now.delivered - guarded.delivered,
      bounced: now.bounced - guarded.bounced,
      bouncedHard: now.bouncedHard - guarded.bouncedHard,
      complained: now.complained - guarded.complained,
    };
  };

  const look = async (accountKey: number): Promise<void> => {
    const account = await store.accountByKey(accountKey);
    if (!shares || !account || account.pausedAt !== null || account.name === operationsAccount) return;
    const reason = whatIsWrong(await recent(account), shares);
    const at = clock.now();
    if (reason === null || !(await holds.pause(accountKey, reason, pauseEntry(account, reason, at)))) return;
    log.warn({ account: account.id, reason }, "paused the sending of an account");
    await notices.notify(
      `account_paused:${account.id}:${at}`, // each pause waits for the operator
      `sending of the account ${account.name} is paused`,
      noticeText(account.name, reason),
    );
  };

  return {
    async check() {
      if (!shares) return;
      const { accounts, lastSeq } = await store.accountsWithEvents(seen);
      for (const accountKey of accounts) await look(accountKey);
      seen = lastSeq;
    },
    async resume(account) {
      const from = quarterOf(clock.now());
      const resumed = await holds.resume(account.key, { from, ...(await figuresOf(account.key, from)) });
      if (resumed) log.info({ account: account.id }, "resumed the sending of an account");
      return resumed;
    },
  };
}

/** Why the account is to be paused, as the operator and the account's clients are told it; null: nothing is wrong. */
function whatIsWrong(figures: Figures, shares: NonNullable<Config["guard"]>): string | null {
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

function noticeText(name: string, reason: string): string {
  return (
    `Sending of the account ${name} is paused: ${reason}.\n\n` +
    `Its queued mail is on hold: it is not sent, and it does not expire. A send is refused with 403 account_paused, ` +
    `by SMTP with 451 4.7.1. Other accounts are not touched.\n\n` +
    `What to do: look at what bounced with: svc events list --account ${name} --event message.bounced\n` +
    `If a key was stolen: svc keys revoke, svc smtp-credentials revoke. What must not go out: svc messages cancel\n` +
    `Once it is mended: svc accounts resume ${name}\n`
  );
}
