// The connection pool: busy connections are counted, idle ones kept for the next message to the same host, address,
// port, TLS policy and source. An idle one is closed with QUIT after 10 s (receivers close at 300 s; a short idle time
// leaves their slots to others), after as many messages as its group allows, or when its group would pass its limit; one that the server closes
// or that receives an unsolicited reply is dropped at once.
import type { Clock, Timer } from "../clock.ts";
import type { Shape } from "../model/shaping.ts";
import type { Session } from "./session.ts";

const idleMs = 10_000;
/** Of all destinations together. */
const maxIdle = 500;
const quitGraceMs = 2_000;

export interface PoolDeps {
  clock: Clock;
  /** How many connections a group may have from one address, idle ones included, and how many messages each may carry. */
  limitsOf: (group: string) => Pick<Shape, "connections" | "messagesPerConnection">;
  /** False for an address of a pool that must no longer be used. */
  mayUse: (address: string) => boolean;
}

interface Idle {
  session: Session;
  since: number;
}

export class Pool {
  readonly #deps: PoolDeps;
  /** Idle sessions, longest idle first, by target key; a Map keeps the order of keys only, hence the lists. */
  readonly #idle = new Map<string, Idle[]>();
  /** Open connections, busy and idle, by group and by `group host`. */
  readonly #open = new Map<string, number>();
  readonly #leaving = new Set<Promise<void>>();
  #idleCount = 0;
  #sweep: Timer | null = null;
  #stopped = false;

  constructor(deps: PoolDeps) {
    this.#deps = deps;
  }

  /** The idle session of this target that was used last; it is the caller's until `put`. */
  take(key: string): Session | null {
    const session = this.#idle.get(key)?.pop()?.session;
    if (!session) return null;
    if (this.#idle.get(key)?.length === 0) this.#idle.delete(key);
    this.#idleCount--;
    session.channel.onIdleBreak = null;
    return session;
  }

  has(key: string): boolean {
    return this.#idle.has(key);
  }
  hasIdle(group: string, host: string): boolean {
    for (const [idle] of this.#idle.values()) {
      if (idle?.session.target.group === group && idle.session.target.host === host) return true;
    }
    return false;
  }
  /** Connections of a group that are open, or of one host of it. */
  count(group: string, host?: string): number {
    return this.#open.get(host === undefined ? group : `${group} ${host}`) ?? 0;
  }
  full(group: string): boolean {
    return this.count(group) >= this.#limitsOf(group).connections;
  }
  #limitsOf(share: string): ReturnType<PoolDeps["limitsOf"]> {
    return this.#deps.limitsOf(share.split(" ", 1)[0] ?? share);
  }

  /** Counts a connection that is about to be made; if the group is full, closes an idle one of it. */
  begin(group: string, host: string): void {
    if (this.full(group)) this.#retire(group);
    this.#add(group, host, 1);
  }
  /** The counterpart of `begin` for a connection that is gone. */
  ended(group: string, host: string): void {
    this.#add(group, host, -1);
  }

  /** Returns a session to the pool: kept if it can be used again, else closed. */
  put(session: Session, mayStay = true): void {
    const { channel, target } = session;
    if (channel.broken) return this.ended(target.group, target.host);
    const keep =
      mayStay &&
      this.#maySend(target) &&
      channel.quiet &&
      session.messages < this.#limitsOf(target.group).messagesPerConnection &&
      !this.#stopped;
    if (!keep || this.#idleCount >= maxIdle) return this.#quit(session);
    const idle: Idle = { session, since: this.#deps.clock.monotonic() };
    const list = this.#idle.get(target.key);
    if (list) list.push(idle);
    else this.#idle.set(target.key, [idle]);
    this.#idleCount++;
    channel.onIdleBreak = () => {
      this.#forget(idle);
      this.ended(target.group, target.host);
    };
    this.#sweep ??= this.#deps.clock.after(idleMs, () => this.#letOldGo());
  }

  /** Closes idle connections from addresses that must no longer be used. */
  reconsider(): void {
    for (const idle of [...this.#idle.values()].flat()) {
      if (this.#maySend(idle.session.target)) continue;
      this.#forget(idle);
      this.#quit(idle.session);
    }
  }

  #maySend({ pooled, source }: Session["target"]): boolean {
    return !pooled || source === null || this.#deps.mayUse(source);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#sweep?.cancel();
    for (const list of this.#idle.values()) for (const { session } of list) this.#quit(session);
    this.#idle.clear();
    await Promise.all(this.#leaving);
  }

  #add(group: string, host: string, by: number): void {
    for (const key of [group, `${group} ${host}`]) {
      const count = (this.#open.get(key) ?? 0) + by;
      if (count > 0) this.#open.set(key, count);
      else this.#open.delete(key);
    }
  }

  #quit(session: Session): void {
    this.ended(session.target.group, session.target.host);
    const leaving = session.channel.quit(quitGraceMs).finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
  }

  #forget(idle: Idle): void {
    const { key } = idle.session.target;
    const list = this.#idle.get(key)?.filter((other) => other !== idle) ?? [];
    if (list.length > 0) this.#idle.set(key, list);
    else this.#idle.delete(key);
    this.#idleCount--;
  }

  #letOldGo(): void {
    const now = this.#deps.clock.monotonic();
    let oldest = Infinity;
    for (const list of this.#idle.values()) {
      for (const idle of list) {
        if (now - idle.since < idleMs) oldest = Math.min(oldest, idle.since);
        else {
          this.#forget(idle);
          this.#quit(idle.session);
        }
      }
    }
    this.#sweep =
      oldest === Infinity ? null : this.#deps.clock.after(oldest + idleMs - now, () => this.#letOldGo());
  }

  #retire(group: string): void {
    for (const list of this.#idle.values()) {
      const idle = list[0];
      if (idle?.session.target.group !== group) continue;
      this.#forget(idle);
      return this.#quit(idle.session);
    }
  }
}
