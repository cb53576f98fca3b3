// The connections that wait for a next message: found by target, by group and by age, each without a walk over all of
// them. There is a bound over all destinations; at the bound a destination that has none takes the place of another's
// second one, so that as many destinations as there are places keep a connection.
import type { Session } from "./session.ts";

export interface Idle {
  session: Session;
  /** Monotonic milliseconds. */
  since: number;
}

export class IdleSessions {
  readonly #most: number;
  /** Longest idle first. */
  readonly #all = new Set<Idle>();
  readonly #byTarget = new Map<string, Idle[]>();
  readonly #byGroup = new Map<string, Set<Idle>>();
  /** Keys of the targets that have more than one. */
  readonly #several = new Set<string>();

  /** `most`: 1 or more. */
  constructor(most: number) {
    this.#most = most;
  }

  /** The one of this target that was used last; it is the caller's. */
  take(key: string): Session | null {
    const idle = this.#byTarget.get(key)?.at(-1);
    if (!idle) return null;
    this.remove(idle);
    return idle.session;
  }

  has(key: string): boolean {
    return this.#byTarget.has(key);
  }
  hasHost(group: string, host: string): boolean {
    for (const { session } of this.#byGroup.get(group) ?? []) if (session.target.host === host) return true;
    return false;
  }
  [Symbol.iterator](): IterableIterator<Idle> {
    return this.#all.values();
  }
  /** Of a group, or of all; null: there is none. */
  longest(group?: string): Idle | null {
    const [first] = group === undefined ? this.#all : (this.#byGroup.get(group) ?? []);
    return first ?? null;
  }

  /** What has to leave for it: null where there was room, the session itself where no other has to make room. */
  add(session: Session, since: number): { idle: Idle; leaves: Session | null } {
    const { key, group } = session.target;
    const idle: Idle = { session, since };
    const displaced = this.#all.size < this.#most ? null : this.#displacedBy(key);
    if (displaced === "none") return { idle, leaves: session };
    if (displaced) this.remove(displaced);
    this.#all.add(idle);
    listed(this.#byGroup, group, () => new Set<Idle>()).add(idle);
    const own = listed(this.#byTarget, key, () => []);
    if (own.push(idle) === 2) this.#several.add(key);
    return { idle, leaves: displaced?.session ?? null };
  }

  remove(idle: Idle): void {
    if (!this.#all.delete(idle)) return;
    const { key, group } = idle.session.target;
    const ofGroup = this.#byGroup.get(group);
    ofGroup?.delete(idle);
    if (ofGroup?.size === 0) this.#byGroup.delete(group);
    const own = this.#byTarget.get(key) ?? [];
    own.splice(own.indexOf(idle), 1);
    if (own.length === 1) this.#several.delete(key);
    if (own.length === 0) this.#byTarget.delete(key);
  }

  #displacedBy(key: string): Idle | "none" {
    if (this.#byTarget.has(key)) return "none";
    const [several] = this.#several;
    return (several !== undefined && this.#byTarget.get(several)?.[0]) || "none";
  }
}

function listed<List>(lists: Map<string, List>, key: string, empty: () => List): List {
  const found = lists.get(key);
  if (found) return found;
  const made = empty();
  lists.set(key, made);
  return made;
}
