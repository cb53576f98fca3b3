// What a reload of the running program came to.

export const reloadedParts = ["certificates", "shaping_file", "configuration"] as const;
export type ReloadedPart = (typeof reloadedParts)[number];

export interface Reloaded {
  /** What could not be used, and why: what was read before stays. */
  failed: { part: ReloadedPart; faults: string[] }[];
  /** Options whose value is another one now, and holds from the next start. */
  restartFor: string[];
}
