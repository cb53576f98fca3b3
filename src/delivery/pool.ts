// The connection pool: busy connections are counted, idle ones kept for the next message to the same host, address,
// port, TLS policy and source. An idle one is closed with QUIT after 10 s (receivers close at 300 s; a short idle time
// leaves their slots to others), after as many messages as its group allows, or when its group would pass its limit; one that the server closes
// or that receives an unsolicited reply is dropped at once.
import type { Clock, Timer } from "../clock.ts";
import type { Shape } from "../model/shaping.ts";
import { IdleSessions, type Idle } from "./idle-sessions.ts";
import type { Session } from "./session.ts";

const idleMs = 10_000;
/** Those that have been idle for long enough are closed once in so many milliseconds. */
const sweepMs = 1_000;
const quitGraceMs = 2_000;

export interface PoolDeps {
  clock: Clock;
  /** How many connections a group may have from one address, idle ones included, and how many messages each may carry. */
  limitsOf: (group: string) => Pick<Shape, "connections" | "messagesPerConnection">;
  /** False for an address of a pool that must no longer be used. */
  mayUse: (address: string) => boolean;
  /** How many idle connections are kept, of all destinations together. */
  mostIdle: number;
}

export class Pool {
  readonly #deps: PoolDeps;
  readonly #idle: IdleSessions;
  /** Open connections, busy and idle, by group and by `group host`. */
  readonly #open = new Map<string, number>();
  #total = 0;
  readonly #leaving = new Set<Promise<void>>();
  #sweep: Timer | null = null;
  #stopped = false;

  constructor(deps: PoolDeps) {
    this.#deps = deps;
    this.#idle = new IdleSessions(deps.mostIdle);
  }

  /** The idle session of this target that was used last; it is the caller's until `put`. */
  take(key: string): Session | null {
    const session = this.#idle.take(key);
    if (session) session.channel.onIdleBreak = null;
    return session;
  }

  has(key: string): boolean {
    return this.#idle.has(key);
  }
  hasIdle(group: string, host: string): boolean {
    return this.#idle.hasHost(group, host);
  }
  /** Connections of a group that are open, or of one host of it. */
  count(group: string, host?: string): number {
    return this.#open.get(host === undefined ? group : `${group} ${host}`) ?? 0;
  }
  /** All connections that are open. */
  get total(): number {
    return this.#total;
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
    if (!keep) return this.#quit(session);
    const { idle, leaves } = this.#idle.add(session, this.#deps.clock.monotonic());
    channel.onIdleBreak = () => {
      this.#idle.remove(idle);
      this.ended(target.group, target.host);
    };
    if (leaves) this.#quit(leaves);
    this.#sweep ??= this.#deps.clock.after(idleMs, () => this.#letOldGo());
  }

  /** Closes idle connections from addresses that must no longer be used. */
  reconsider(): void {
    for (const idle of this.#idle) if (!this.#maySend(idle.session.target)) this.#close(idle);
  }

  #maySend({ pooled, source }: Session["target"]): boolean {
    return !pooled || source === null || this.#deps.mayUse(source);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#sweep?.cancel();
    for (const idle of this.#idle) this.#close(idle);
    await Promise.all(this.#leaving);
  }

  #add(group: string, host: string, by: number): void {
    this.#total += by;
    for (const key of [group, `${group} ${host}`]) {
      const count = (this.#open.get(key) ?? 0) + by;
      if (count > 0) this.#open.set(key, count);
      else this.#open.delete(key);
    }
  }

  #quit(session: Session): void {
    session.channel.onIdleBreak = null;
    this.ended(session.target.group, session.target.host);
    const leaving = session.channel.quit(quitGraceMs).finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
  }

  #close(idle: Idle): void {
    this.#idle.remove(idle);
    this.#quit(idle.session);
  }

  #letOldGo(): void {
    const before = this.#deps.clock.monotonic() - idleMs;
    let oldest = this.#idle.longest();
    for (; oldest && oldest.since <= before; oldest = this.#idle.longest()) this.#close(oldest);
    this.#sweep =
      oldest && this.#deps.clock.after(Math.max(oldest.since - before, sweepMs), () => this.#letOldGo());
  }

  #retire(group: string): void {
    const idle = this.#idle.longest(group);
    if (idle) this.#close(idle);
  }
}
