// One memory budget of 64 MB for all request bodies under way. A body takes its announced size before it is read, or
// waits with its socket unread. Small and large bodies have their own parts, so that large ones never delay small
// ones. One account (all of its keys) holds at most half of the whole; the account with the least comes first when memory
// returns, so that no number of bodies of some accounts keeps another's out. While bodies wait, those that would not
// arrive within the request timeout are refused.
import type { Clock, Timer } from "../clock.ts";
import { Refusal } from "../errors.ts";

const megabyte = 1024 * 1024;

export interface BudgetRule {
  totalBytes: number;
  /** Of one account. A body larger than that has to be its account's only one. */
  shareBytes: number;
}

export const bodyMemoryRule = {
  small: { totalBytes: 24 * megabyte, shareBytes: 8 * megabyte },
  large: { totalBytes: 40 * megabyte, shareBytes: 24 * megabyte },
  /** The largest small body; what a chunked one takes, until it has grown beyond and takes a large share. */
  smallBytes: 256 * 1024,
  /** How many chunked bodies of one account may wait for more at a time. */
  growing: 8,
  /** How long a body waits for room. */
  waitMs: 45_000,
  /** How often slow bodies are looked for while others wait; what has this age and would take longer than `withinMs` is slow. */
  everyMs: 5000,
  graceMs: 10_000,
  withinMs: 60_000,
};

/** Memory that one body has taken. */
export interface BodyReservation {
  /** What has arrived of it; the reader counts here. */
  received: number;
  /** Set while the body is read: called when it is refused for its slowness. */
  tooSlow: ((error: Refusal) => void) | null;
  /** More than a small body. Rejects as `enter` does. */
  grow(): Promise<void>;
  /** Once; later calls do nothing. */
  release(): void;
}

export interface BodyMemory {
  /** At once where there is room. Rejects with service_overloaded after too long a wait. `bytes` null: not announced. */
  enter(account: number, bytes: number | null): BodyReservation | Promise<BodyReservation>;
  readonly used: number;
}

export function createBodyMemory(clock: Clock, rule = bodyMemoryRule): BodyMemory {
  const small = createBudget(clock, rule.small, rule);
  const large = createBudget(clock, rule.large, rule);
  const growing = new Map<number, number>();

  const grow = async (account: number): Promise<Reserved> => {
    const before = growing.get(account) ?? 0;
    if (before >= rule.growing) throw overloaded("Too many chunked bodies of this account are being read.");
    growing.set(account, before + 1);
    try {
      return await large.enter(account, rule.large.shareBytes);
    } finally {
      const left = (growing.get(account) ?? 1) - 1;
      if (left > 0) growing.set(account, left);
      else growing.delete(account);
    }
  };
  const roomOf = (account: number, taken: Reserved): BodyReservation => {
    let own: Reserved | null = taken;
    return {
      get received() {
        return own?.received ?? 0;
      },
      set received(bytes) {
        if (own) own.received = bytes;
      },
      get tooSlow() {
        return own?.tooSlow ?? null;
      },
      set tooSlow(refuse) {
        if (own) own.tooSlow = refuse;
      },
      async grow() {
        const more = await grow(account);
        if (!own) return more.release(); // the client has gone meanwhile
        more.tooSlow = own.tooSlow;
        own.release();
        own = more;
      },
      release() {
        own?.release();
        own = null;
      },
    };
  };

  return {
    enter(account, announced) {
      const bytes = announced ?? rule.smallBytes;
      const entered = (bytes > rule.smallBytes ? large : small).enter(account, bytes);
      if (entered instanceof Promise) return entered.then((taken) => roomOf(account, taken));
      return announced === null ? roomOf(account, entered) : entered;
    },
    get used() {
      return small.used + large.used;
    },
  };
}

interface Reserved extends BodyReservation {
  readonly bytes: number;
  readonly since: number;
}

interface Waiter {
  bytes: number;
  admit(): void;
}

interface Holder {
  used: number;
  queue: Waiter[];
}

interface Budget {
  enter(account: number, bytes: number): Reserved | Promise<Reserved>;
  readonly used: number;
}

function createBudget(
  clock: Clock,
  { totalBytes, shareBytes }: BudgetRule,
  rule: typeof bodyMemoryRule,
): Budget {
  const holders = new Map<number, Holder>();
  /** Whose bodies wait. */
  const waiting = new Set<Holder>();
  /** Next in turn, but the total has no room for it. */
  let blocked: Holder | null = null;
  const all = new Set<Reserved>();
  let used = 0;
  let timer: Timer | null = null;

  const inShare = (holder: Holder, bytes: number): boolean =>
    holder.used === 0 || holder.used + bytes <= shareBytes;
  const inTotal = (bytes: number): boolean => used === 0 || used + bytes <= totalBytes;

  /** The account with the least is next; while the total has no room for it, no account with more takes what returns. */
  const admitWaiting = (): void => {
    for (;;) {
      let least: Holder | null = null;
      for (const holder of waiting) {
        if (least && holder.used >= least.used) continue;
        if (inShare(holder, holder.queue[0]?.bytes ?? 0)) least = holder;
      }
      const next = least?.queue[0];
      blocked = next && !inTotal(next.bytes) ? least : null;
      if (!least || !next || blocked) return;
      least.queue.shift();
      if (least.queue.length === 0) waiting.delete(least);
      next.admit();
    }
  };
  const refuseSlow = (): void => {
    timer = null;
    if (waiting.size === 0) return;
    const now = clock.monotonic();
    for (const { since, received, bytes, tooSlow } of all) {
      const age = now - since;
      if (!tooSlow || age < rule.graceMs || received >= (age / rule.withinMs) * bytes) continue;
      tooSlow(overloaded("The body arrived too slowly while others waited for the memory."));
    }
    timer = clock.after(rule.everyMs, refuseSlow);
  };
  const take = (account: number, holder: Holder, bytes: number): Reserved => {
    let done = false;
    const taken: Reserved = {
      bytes,
      since: clock.monotonic(),
      received: 0,
      tooSlow: null,
      grow: () => Promise.resolve(),
      release() {
        if (done) return;
        done = true;
        all.delete(taken);
        used -= bytes;
        holder.used -= bytes;
        if (waiting.size > 0) admitWaiting();
        if (holder.used === 0 && holder.queue.length === 0) holders.delete(account);
      },
    };
    used += bytes;
    holder.used += bytes;
    all.add(taken);
    return taken;
  };
  const wait = (account: number, holder: Holder, bytes: number): Promise<Reserved> =>
    new Promise((resolve, reject) => {
      const waiter: Waiter = {
        bytes,
        admit() {
          late.cancel();
          resolve(take(account, holder, bytes));
        },
      };
      const late = clock.after(rule.waitMs, () => {
        holder.queue = holder.queue.filter((other) => other !== waiter);
        if (holder.queue.length === 0) waiting.delete(holder);
        if (holder.used === 0 && holder.queue.length === 0) holders.delete(account);
        admitWaiting();
        reject(overloaded("Too many request bodies are being read."));
      });
      holder.queue.push(waiter);
      waiting.add(holder);
      timer ??= clock.after(rule.everyMs, refuseSlow);
      admitWaiting();
    });

  return {
    enter(account, bytes) {
      const holder = holders.get(account) ?? { used: 0, queue: [] };
      holders.set(account, holder);
      const first = holder.queue.length === 0 && (blocked === null || holder.used <= blocked.used);
      return first && inShare(holder, bytes) && inTotal(bytes)
        ? take(account, holder, bytes)
        : wait(account, holder, bytes);
    },
    get used() {
      return used;
    },
  };
}

function overloaded(detail: string): Refusal {
  return new Refusal("service_overloaded", detail, { retry_after_seconds: 5 });
}
