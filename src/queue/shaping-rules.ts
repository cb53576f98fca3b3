// What `svc limits` shows and changes: the limits that hold for a provider or a domain, where each comes from, and what
// the addresses may do there now. The rules that are set are the store's (`shaping_rules`); they hold from the moment that
// they are written, also for mail that waits.
import type { Log } from "../log.ts";
import type { ShapingOrigin } from "../model/shaping.ts";
import type { Store } from "../store/store.ts";
import type { LimiterState } from "./egress.ts";
import { ruleNamesOf, type Explained, type Shaping } from "./shaping.ts";
import { defaultRule, smartHostRule } from "../config/shaping-file.ts";

/** The limits of a name. `slowed`: how many addresses a receiver has slowed down there. */
export interface RuleState {
  name: string;
  limits: Explained;
  slowed: number;
}

/** An address at a group. `open`: connections, idle ones included. */
export interface LimiterNow extends LimiterState {
  open: number;
}

/** `mxGroup`: of a domain, the group of its MX hosts; null: not known. */
export interface RuleNow extends RuleState {
  mxGroup: string | null;
  /** The slowed ones first, then the busiest; a hundred at most. */
  now: LimiterNow[];
}

export interface ShapingRules {
  list(): RuleState[];
  show(name: string): Promise<RuleNow>;
  /** Reads the rules that are set, and goes by them: at the start, and after each write. */
  reload(): Promise<void>;
  /** Reads the shaping file again. The faults of one are logged and returned, and the rules of the one before stay. */
  reloadFile(): string[];
}

export interface ShapingRulesDeps {
  store: Pick<Store, "shapingRules">;
  shaping: Shaping;
  limiters(of: (group: string) => boolean): LimiterState[];
  /** Open connections to a group from an address. */
  connections(group: string, address: string | null): number;
  /** The group of a domain's MX hosts; null: it has none, or the DNS does not say. */
  mxGroupOf(domain: string): Promise<string | null>;
  onChange(): void;
  /** null: none is named. */
  readFile(): { content: unknown } | { faults: string[] } | null;
  log: Log;
}

const shownMost = 100;

export function createShapingRules(deps: ShapingRulesDeps): ShapingRules {
  const { store, shaping, limiters, log } = deps;
  /** The rule that a group goes by: its most particular one. */
  const ruleFor = (names: ReadonlySet<string>) => (group: string) =>
    ruleNamesOf(group).find((name) => names.has(name)) ?? defaultRule;

  return {
    list() {
      const names = shaping.names();
      const ruleOf = ruleFor(new Set(names));
      const slowed = new Map<string, number>();
      for (const { group, slowed: since } of limiters(() => true))
        if (since) slowed.set(ruleOf(group), (slowed.get(ruleOf(group)) ?? 0) + 1);
      return names.map((name) => ({
        name,
        limits: shaping.explain(name),
        slowed: slowed.get(name) ?? 0,
      }));
    },
    async show(name) {
      const mxGroup = name.includes(".") ? await deps.mxGroupOf(name) : null;
      const own = mxGroup === null ? null : shaping.groupFor(name, mxGroup);
      const ruleOf = ruleFor(new Set(shaping.names()));
      const states = limiters(
        (group) => group === own || ruleOf(group) === name || ruleNamesOf(group).includes(name),
      );
      return {
        name,
        mxGroup: mxGroup === null ? null : (ruleNamesOf(mxGroup).at(-1) ?? mxGroup),
        // A smart host takes the mail of every domain, within its own limits.
        limits: own === smartHostRule ? shaping.explain(own) : shaping.explain(name, mxGroup ?? name),
        slowed: states.filter(({ slowed }) => slowed).length,
        now: states
          .toSorted((a, b) => a.factor - b.factor || b.taken - a.taken)
          .slice(0, shownMost)
          .map((state) => ({ ...state, open: deps.connections(state.group, state.address) })),
      };
    },
    async reload() {
      shaping.replace(await store.shapingRules());
      deps.onChange();
    },
    reloadFile() {
      const read = deps.readFile();
      if (read === null) return [];
      if ("faults" in read) {
        log.error({ faults: read.faults }, "the shaping file is unusable; the rules of the one before stay");
        return read.faults;
      }
      shaping.replaceFile(read.content);
      deps.onChange();
      log.info({}, "reloaded the shaping file");
      return [];
    },
  };
}

/** The strongest of where the fields of a name's own rule come from; null: it has no rule. */
export function originOf(name: string, limits: Explained): ShapingOrigin | null {
  const origins = Object.values(limits).flatMap(({ rule, value, origin }) =>
    rule === name && value !== null ? [origin] : [],
  );
  return origins.includes("set")
    ? "set"
    : origins.includes("shaping_file")
      ? "shaping_file"
      : (origins[0] ?? null);
}
