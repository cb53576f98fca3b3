// How hard a destination may be pushed. One table: limits for each group of MX hosts that
// share them (delivery's Route names the group). `outbound.shaping_file` overrides rows of it.
import { shapingFile } from "../config/shaping-file.ts";

export interface Shape {
  /** Connections at once, from one sending address. */
  connections: number;
  /** Messages that are begun in a second. */
  perSecond: number;
}

/** The group of answers that need no receiver. */
export const localGroup = "local";

/** The rows; `default` serves every group without one. Large providers ask for less than strangers stand. */
const table: Record<string, Shape> = {
  default: { connections: 10, perSecond: 100 },
  google: { connections: 10, perSecond: 50 },
  microsoft: { connections: 8, perSecond: 30 },
  yahoo: { connections: 5, perSecond: 20 },
  // A smart host is the operator's own and is not shaped unless a rule names it.
  "smart-host": { connections: 50, perSecond: Number.POSITIVE_INFINITY },
  // Mail of test keys and of --dev, which never leaves the machine.
  sandbox: { connections: 50, perSecond: Number.POSITIVE_INFINITY },
  // No such domain, null MX, a failed look-up.
  [localGroup]: { connections: 50, perSecond: Number.POSITIVE_INFINITY },
};

export type Shaping = (group: string) => Shape;

/** The table with the rows of a shaping file over it. Throws ZodError for a file of another form. */
export function createShaping(file: unknown): Shaping {
  const rows = new Map(Object.entries(table));
  for (const [group, row] of Object.entries(file === null ? {} : shapingFile.parse(file).groups)) {
    const base = rows.get(group) ?? table["default"];
    rows.set(group, {
      connections: row.connections ?? base?.connections ?? 1,
      perSecond: row.per_second ?? base?.perSecond ?? 1,
    });
  }
  const fallback = rows.get("default") ?? { connections: 10, perSecond: 100 };
  return (group) => rows.get(group) ?? fallback;
}
