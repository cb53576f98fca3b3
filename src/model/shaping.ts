// How hard a destination is pushed, and whether its mail must go over TLS: what a rule of the operator's may say.
import type { OutboundTls } from "./tls.ts";

/** A destination's limits, from one sending address. */
export interface Shape {
  /** Connections at once. */
  connections: number;
  /** Messages that are begun in a second; Infinity: no limit. */
  perSecond: number;
  messagesPerConnection: number;
}

/** The fields of a rule; null: the rule says nothing of it. */
export type ShapingRule = { [Field in keyof Shape]: Shape[Field] | null } & { tls: OutboundTls | null };

/** A rule that was set while the program ran. `name`: a provider, `default`, `smart-host`, or a domain in A-label form. */
export interface SetShapingRule extends ShapingRule {
  name: string;
  updatedAt: number;
}

/** Where the value of a field comes from, the strongest first. */
export const shapingOrigins = ["set", "shaping_file", "built_in"] as const;
export type ShapingOrigin = (typeof shapingOrigins)[number];
