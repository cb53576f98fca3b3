// The configuration as the program sees it, computed from the options: `outbound.max_age`, a span, is
// `outbound.maxAgeMs`. A new option is one entry of options.ts.
import { optionPaths, options, type OptionPath, type OptionValues } from "./options.ts";

type Camel<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<Camel<Rest>>}`
  : Name;
/** `{ outbound: { maxAgeMs: number } }` of `outbound.max_age`. */
type Branch<Path extends string, Value, Unit extends string> = Path extends `${infer Section}.${infer Rest}`
  ? { [Name in Camel<Section>]: Branch<Rest, Value, Unit> }
  : { [Name in `${Camel<Path>}${Unit}`]: Value };
type Branches = {
  [Path in OptionPath]: Branch<Path, OptionValues[Path], (typeof options)[Path]["unit"]>;
}[OptionPath];
type Joined<All> = (All extends unknown ? (one: All) => void : never) extends (one: infer Whole) => void
  ? Whole
  : never;

export type Derived = Joined<Branches>;

export function derive(values: OptionValues): Derived {
  const root: Record<string, unknown> = {};
  for (const path of optionPaths) {
    const sections = path.split(".").map(camel);
    const name = `${sections.pop() ?? ""}${options[path].unit}`;
    let at = root;
    for (const section of sections) at = (at[section] ??= {}) as Record<string, unknown>;
    at[name] = values[path];
  }
  return root as Derived;
}

const camel = (name: string): string =>
  name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
