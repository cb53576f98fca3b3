// How hard a destination may be pushed: the limits of each group of MX hosts that share them (mail/providers.ts), and of
// each recipient domain that has limits of its own. A field comes from the rule that was set while the program ran
// (`svc limits set`), else from `outbound.shaping_file`, else from the table here; what a rule does not say comes from the
// group of the domain's MX hosts, and then from `default`, in the same order.
import { defaultRule, shapingFile, smartHostRule } from "../config/shaping-file.ts";
import { providers } from "../mail/providers.ts";
import type { SetShapingRule, Shape, ShapingOrigin, ShapingRule } from "../model/shaping.ts";
import type { OutboundTls } from "../model/tls.ts";

/** The group of answers that need no receiver. */
export const localGroup = "local";

const noRate = Number.POSITIVE_INFINITY;
const fallback: Shape = { connections: 10, perSecond: 100, messagesPerConnection: 100 };
const table: Record<string, Shape> = {
  [defaultRule]: fallback,
  ...Object.fromEntries(
    providers.map(({ name, connections, perSecond, messagesPerConnection }) => [
      name,
      { connections, perSecond, messagesPerConnection },
    ]),
  ),
  // A smart host is the operator's own and is not shaped unless a rule names it.
  [smartHostRule]: { ...fallback, connections: 50, perSecond: noRate },
};
/**
 * What never leaves the machine has no rule: mail of test keys and of --dev; no such domain, null MX, a failed look-up. It is
 * answered at once, so that a few at a time are thousands a second; with more, everybody's commits wait for its outcomes.
 */
const unshaped: ReadonlySet<string> = new Set(["sandbox", localGroup]);
const noLimits: Shape = { ...fallback, connections: 8, perSecond: noRate };

const knownMost = 10_000;

const limitFields = ["connections", "perSecond", "messagesPerConnection"] as const;
const ruleFields = [...limitFields, "tls"] as const;
type Field = (typeof ruleFields)[number];
type Rule = Partial<{ [F in Field]: ShapingRule[F] }>;

/** A field's value, and the rule that it comes from: its name and where that is written. `value` null: nothing says it. */
export type Explained = { [F in Field]: { value: ShapingRule[F]; rule: string; origin: ShapingOrigin } };

export interface Shaping {
  /** The limits of a group of `groupFor`. */
  limits(group: string): Shape;
  /** Whose limits mail to a domain counts towards: its own where a rule gives it some, else those of its MX group. */
  groupFor(domain: string, mxGroup: string): string;
  /** What the rule of a recipient domain asks for, else that of its MX group; undefined: outbound.tls holds. */
  tlsFor(domain: string, group?: string): OutboundTls | undefined;
  /** Every rule's name, those of the table first. */
  names(): string[];
  /** What holds for a name, and why. `mxGroup`: of a domain, where it is known. */
  explain(name: string, mxGroup?: string): Explained;
  /** The rules that are set while the program runs, in place of those before. */
  replace(rules: readonly SetShapingRule[]): void;
  /** The rules of the shaping file, in place of those before. Throws ZodError for a file of another form. */
  replaceFile(file: unknown): void;
}

/** `domain/group`: a domain with limits of its own, which still has its MX group's for what its rule does not say. */
const within = (domain: string, mxGroup: string): string =>
  ruleNamesOf(mxGroup)[0] === domain ? mxGroup : `${domain}/${mxGroup}`;

/** The rule names of a group, the most particular first. */
export const ruleNamesOf = (group: string): string[] => group.split("/");

/** `file`: the content of the shaping file; null: none. Throws ZodError for a file of another form. */
export function createShaping(file: unknown, set: readonly SetShapingRule[] = []): Shaping {
  let inFile = rulesOf(file);
  const builtIn = new Map<string, Rule>(Object.entries(table));
  let running = new Map<string, Rule>(set.map((rule) => [rule.name, rule]));

  const find = <F extends Field>(field: F, names: readonly string[]): Explained[F] => {
    const layers = [
      ["set", running],
      ["shaping_file", inFile],
      ["built_in", builtIn],
    ] as const;
    for (const rule of names)
      for (const [origin, rules] of layers) {
        const value = rules.get(rule)?.[field] ?? null;
        if (value !== null) return { value, rule, origin } as Explained[F];
      }
    return { value: null, rule: defaultRule, origin: "built_in" } as Explained[F];
  };
  const ruleOf = (name: string): Rule[] =>
    [running.get(name), inFile.get(name)].filter((rule) => rule !== undefined);

  const limitsOf = (group: string): Shape => {
    if (unshaped.has(group)) return noLimits;
    const names = [...ruleNamesOf(group), defaultRule];
    const of = <F extends keyof Shape>(field: F): number => find(field, names).value ?? fallback[field];
    return {
      connections: of("connections"),
      perSecond: of("perSecond"),
      messagesPerConnection: of("messagesPerConnection"),
    };
  };
  /** Asked for with each message. */
  const known = new Map<string, Shape>();

  return {
    limits(group) {
      const before = known.get(group);
      if (before) return before;
      if (known.size >= knownMost) known.clear();
      const limits = limitsOf(group);
      known.set(group, limits);
      return limits;
    },
    groupFor(domain, mxGroup) {
      if (mxGroup === smartHostRule) return mxGroup;
      const limited = ruleOf(domain).some((rule) => limitFields.some((field) => rule[field] != null));
      return limited ? within(domain, mxGroup) : mxGroup;
    },
    tlsFor: (domain, group = domain) => find("tls", [domain, ...ruleNamesOf(group)]).value ?? undefined,
    names: () => [...new Set([...builtIn.keys(), ...inFile.keys(), ...running.keys()])],
    explain(name, mxGroup = name) {
      const names = [...new Set([name, ...ruleNamesOf(mxGroup)])];
      const limits = [...names, defaultRule];
      return {
        connections: find("connections", limits),
        perSecond: find("perSecond", limits),
        messagesPerConnection: find("messagesPerConnection", limits),
        tls: find("tls", names),
      };
    },
    replace(rules) {
      running = new Map(rules.map((rule) => [rule.name, rule]));
      known.clear();
    },
    replaceFile(next) {
      inFile = rulesOf(next);
      known.clear();
    },
  };
}

function rulesOf(file: unknown): Map<string, Rule> {
  return new Map(
    Object.entries(file === null ? {} : shapingFile.parse(file).groups).map(([name, row]) => [
      name,
      {
        connections: row.connections ?? null,
        perSecond: row.per_second ?? null,
        messagesPerConnection: row.messages_per_connection ?? null,
        tls: row.tls ?? null,
      },
    ]),
  );
}

/** Of a domain that has limits of its own (`domain/group`) the group that it is counted with. */
export const providerOf = (group: string): string => group.slice(group.lastIndexOf("/") + 1);
