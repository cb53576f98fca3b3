// The calls of shaping rules that were set while the program ran: the whole appliance's, a few at most.
import type { SetShapingRule, ShapingRule } from "../../model/shaping.ts";

export interface ShapingStore {
  /** By name. */
  shapingRules(): Promise<SetShapingRule[]>;
  /** Changes these fields, null: the rule says nothing of it any more. A rule that says nothing is removed: null. */
  setShapingRule(name: string, change: Partial<ShapingRule>, at: number): Promise<SetShapingRule | null>;
  /** False where there is no such rule. */
  unsetShapingRule(name: string): Promise<boolean>;
}
