// The form of `outbound.shaping_file`: limits for groups of receiving servers. It is judged here with the rest of
// the configuration, so that `serve --check` reports its faults too; what the limits do is queue/shaping.ts.
import { z } from "zod";
import { shown } from "./layers.ts";

const rowForm = "limits such as {connections: 5, per_second: 20}";
const fileForm = "groups with limits, such as groups: {google: {connections: 5, per_second: 20}}";
const connections = "a whole number from 1 to 1000";
const perSecond = "a number above 0, to 100000";

export const shapingFile = z.strictObject(
  {
    groups: z.record(
      z.string(),
      z.strictObject(
        {
          connections: z.int(connections).min(1, connections).max(1000, connections).optional(),
          per_second: z.number(perSecond).positive(perSecond).max(100_000, perSecond).optional(),
        },
        rowForm,
      ),
      fileForm,
    ),
  },
  fileForm,
);

/** What is wrong with the content of a shaping file: found where, and what would be right. */
export function shapingFaults(content: unknown): { found: string; expected: string }[] {
  return (shapingFile.safeParse(content).error?.issues ?? []).map((issue) => {
    const at = issue.path.length === 0 ? "" : ` at ${issue.path.map(String).join(".")}`;
    const found =
      issue.code === "unrecognized_keys"
        ? `the unknown key ${issue.keys.join(", ")}`
        : shown(issue.path.reduce<unknown>(inside, content));
    return { found: `${found}${at}`, expected: issue.message };
  });
}

function inside(value: unknown, key: PropertyKey): unknown {
  return value !== null && typeof value === "object" ? Reflect.get(value, key) : undefined;
}
