// When what an account is shown last changed, by kind: what Last-Modified is made of. What each write changes stands where
// it is declared; here is only the memory of it. Kept by the one process that writes: its start counts as a change, which
// costs a reader one answer that it had already.
// Times are whole seconds, as in HTTP. A change in a second in which somebody has asked counts as the next second's, so
// that a client that compares seconds never takes an old answer for the new one. A row's own time says more than its list's,
// but it was put down before the row was to be seen: it counts where both were within a second, and `late` says since when.
import { forwardTime, type Clock } from "../clock.ts";
import { resources, type LastChange, type Resource } from "../model/last-change.ts";

/** In place of an account: anybody's. */
export const everyone = 0;

/** In place of a time: rows that are gone say nothing wrong about themselves. */
export const removed = Infinity;

/** `writtenAt`: the time that the changed rows carry; left out where they carry none. */
export type Touch = (accountKey: number, resource: Resource, writtenAt?: number) => void;

/**
 * What each command of a table changes, by its argument and its result; of a write that was kept with its answer the
 * result is not known here.
 */
export type Touches<Table> = {
  readonly [K in keyof Table]: Table[K] extends (arg: infer Arg, ...rest: never[]) => infer Result
    ? (touch: Touch, arg: Arg, result: Result | undefined) => void
    : never;
};

/** Of a command that changes nothing that has a Last-Modified. */
export const nothing = (): void => undefined;

export interface Changes {
  /** A write was committed. Called before the one who waits for it is answered. */
  note(command: string, arg: unknown, result: unknown): void;
  /** To be asked before the rows are read, not after. */
  last(accountKey: number, of: readonly Resource[]): LastChange;
  /** Another number once a row was written of a kind that is cached (cache.ts). */
  revision(): number;
}

const cached: ReadonlySet<Resource> = new Set(["accounts", "domains", "keys", "smtp_credentials"]);

/** Seconds since 1970. */
interface Mark {
  changed: number;
  asked: number;
  late: number;
}

/** `touches`: what each command changes, by its name. */
export function createChanges(
  clock: Clock,
  touches: Record<string, (touch: Touch, arg: never, result: never) => void>,
): Changes {
  const now = forwardTime(clock);
  const started = Math.floor(now() / 1000) + 1; // whatever the process before did in this second
  const accounts = new Map<number, Record<Resource, Mark>>();

  const marksOf = (accountKey: number): Record<Resource, Mark> => {
    const known = accounts.get(accountKey);
    if (known) return known;
    const mark = (): Mark => ({ changed: started, asked: 0, late: started });
    const marks = Object.fromEntries(resources.map((name) => [name, mark()])) as Record<Resource, Mark>;
    accounts.set(accountKey, marks);
    return marks;
  };

  let revision = 0;
  let at = 0; // of the write that is noted: the clock is read once for it
  const touch: Touch = (accountKey, resource, writtenAt = 0) => {
    if (cached.has(resource)) revision++;
    const mark = marksOf(accountKey)[resource];
    const second = Math.floor(at / 1000);
    mark.changed = Math.max(mark.changed, mark.asked >= second ? mark.asked + 1 : second);
    if (at - writtenAt > 1000) mark.late = mark.changed;
  };

  return {
    revision: () => revision,
    note(command, arg, result) {
      at = now();
      touches[command]?.(touch, arg as never, result as never);
    },
    last(accountKey, of) {
      const second = Math.floor(now() / 1000);
      const [own, shared] = [marksOf(accountKey), marksOf(everyone)];
      let [changed, late] = [started, started];
      for (const name of of) {
        own[name].asked = shared[name].asked = second;
        changed = Math.max(changed, own[name].changed, shared[name].changed);
        late = Math.max(late, own[name].late, shared[name].late);
      }
      return { at: changed * 1000, late: late * 1000 };
    },
  };
}
