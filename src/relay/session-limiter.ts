// Limits SMTP sessions: in total, per source (IPv4 address, IPv6 /64), and, of the total, the unidentified ones (without a
// login, or all on port 25). If too many are unidentified, a new session evicts the oldest of the source that has most,
// so that a source with few sessions still gets one. With several accounts, one account gets at most half of what the
// sessions of the others leave.
import type { Clock } from "../clock.ts";
import { sourceOf } from "../model/ip-source.ts";

export interface Slot {
  /** The peer is identified: the session is no longer evicted. `account`: row id, null if it has none. */
  identify(account: number | null): void;
  /** The session is unidentified again and its grace period restarts: a login has ended, a mail was accepted. */
  renew(): void;
  /** Releases the slot; later calls do nothing. */
  leave(): void;
}

export interface SessionLimiter {
  /** null: a limit is reached. `evict` ends the connection when a new session takes its slot, which is free already. */
  enter(ip: string, evict: () => void): Slot | null;
  /** Counts a connection that only waits for its refusal to be read; null: there are too many of these. */
  refuse(): (() => void) | null;
  /** The sessions that the account may have while there are other accounts. */
  shareOf(account: number): { open: number; share: number };
}

export interface SessionLimits {
  total: number;
  perSource: number;
  /** Of the total: unidentified sessions. */
  unidentified: number;
  /** The same for the first session of a source, at least as many, so that a few sources cannot use up all of them. */
  unidentifiedFirst: number;
  /** How long (ms) a session may not be evicted: one of the source with most sessions, and any. */
  grace: { largest: number; any: number };
}

interface Entry {
  since: number;
  evict: () => void;
  leave: () => void;
}

interface Source {
  open: number;
  /** The oldest first. */
  unidentified: Set<Entry>;
}

/** Refused connections that are still open: each may take five seconds to read why. */
const mostRefused = 256;

/** The slots that peers without a login can have: a quarter is left to those who have one, half of it also to newcomers. */
export const sharesBeforeLogin = (
  total: number,
): Pick<SessionLimits, "unidentified" | "unidentifiedFirst"> => ({
  unidentified: Math.max(1, Math.floor((total * 3) / 4)),
  unidentifiedFirst: Math.max(1, Math.floor((total * 7) / 8)),
});

export function createSessionLimiter(limits: SessionLimits, clock: Pick<Clock, "monotonic">): SessionLimiter {
  const sources = new Map<string, Source>();
  const accounts = new Map<number, number>();
  let open = 0;
  let unidentified = 0;
  let ofAccounts = 0;
  let refused = 0;

  const countAccount = (account: number | null, change: 1 | -1): void => {
    if (account === null) return;
    ofAccounts += change;
    const left = (accounts.get(account) ?? 0) + change;
    if (left > 0) accounts.set(account, left);
    else accounts.delete(account);
  };

  /** Ends one session that has waited, if a source with `wanted` sessions may have its slot. */
  const makeRoom = (wanted: number): boolean => {
    const victim = victimFor(sources.values(), wanted, clock.monotonic(), limits.grace);
    if (!victim) return false;
    victim.leave();
    victim.evict();
    return true;
  };

  const occupy = (name: string, source: Source, evict: () => void): Slot => {
    let account: number | null = null;
    let left = false;
    const hide = (): void => void (source.unidentified.delete(entry) && unidentified--);
    const show = (): void => {
      hide();
      entry.since = clock.monotonic();
      source.unidentified.add(entry);
      unidentified++;
    };
    const setAccount = (next: number | null): void => {
      countAccount(account, -1);
      account = next;
      countAccount(account, 1);
    };
    const leave = (): void => {
      if (left) return;
      left = true;
      hide();
      setAccount(null);
      open--;
      source.open--;
      if (source.open === 0) sources.delete(name);
    };
    const entry: Entry = { since: 0, evict, leave };
    open++;
    source.open++;
    sources.set(name, source);
    show();
    return {
      identify(next) {
        if (left) return;
        hide();
        setAccount(next);
      },
      renew() {
        if (left) return;
        setAccount(null);
        show();
      },
      leave,
    };
  };

  return {
    enter(ip, evict) {
      const name = sourceOf(ip);
      const source = sources.get(name) ?? { open: 0, unidentified: new Set<Entry>() };
      if (source.open >= limits.perSource) return null;
      const most = source.open === 0 ? limits.unidentifiedFirst : limits.unidentified;
      const full = open >= limits.total || unidentified >= most;
      if (full && !makeRoom(source.unidentified.size + 1)) return null;
      return occupy(name, source, evict);
    },
    refuse() {
      if (refused >= mostRefused) return null;
      refused++;
      let counted = true;
      return () => {
        if (counted) refused--;
        counted = false;
      };
    },
    shareOf(account) {
      const own = accounts.get(account) ?? 0;
      return { open: own, share: Math.max(1, Math.ceil((limits.total - (ofAccounts - own)) / 2)) };
    },
  };
}

/** The oldest of the source that has most, if that source still has no fewer than the newcomer's; else the oldest of all. */
function victimFor(
  sources: Iterable<Source>,
  wanted: number,
  now: number,
  grace: SessionLimits["grace"],
): Entry | null {
  let largest: Source | null = null;
  let oldest: Entry | null = null;
  for (const source of sources) {
    if (source.unidentified.size > (largest?.unidentified.size ?? 0)) largest = source;
    const first = firstOf(source);
    if (first && (!oldest || first.since < oldest.since)) oldest = first;
  }
  const greedy = largest && largest.unidentified.size > wanted ? firstOf(largest) : null;
  if (greedy && now - greedy.since >= grace.largest) return greedy;
  return oldest && now - oldest.since >= grace.any ? oldest : null;
}

function firstOf({ unidentified }: Source): Entry | null {
  for (const entry of unidentified) return entry;
  return null;
}
