// What a shaping rule may say, and the form of `outbound.shaping_file`, a file of them. It is judged here with the rest of
// the configuration, so that `serve --check` reports its faults too; what the limits do is queue/shaping.ts.
import { z } from "zod";
import { parseDomain } from "../mail/address.ts";
import { providers } from "../mail/providers.ts";
import { outboundTlsModes } from "../model/tls.ts";
import { shown } from "./layers.ts";

/** The rule of what has none of its own, and the rule of a smart host. */
export const defaultRule = "default";
export const smartHostRule = "smart-host";

const ruleForm = "limits such as {connections: 5, per_second: 20}";
const fileForm = "groups with limits, such as groups: {google: {connections: 5, per_second: 20}}";
const connections = "a whole number from 1 to 1000";
const perSecond = "a number above 0, to 100000";
const messages = "a whole number from 1 to 100000";
const tls = `one of ${outboundTlsModes.join(", ")}`;

/** The fields of a rule, by the names that the file and the API have for them. */
export const ruleFields = {
  connections: z.int(connections).min(1, connections).max(1000, connections),
  per_second: z.number(perSecond).positive(perSecond).max(100_000, perSecond),
  messages_per_connection: z.int(messages).min(1, messages).max(100_000, messages),
  tls: z.enum(outboundTlsModes, tls),
};

const named: readonly string[] = [...providers.map(({ name }) => name), defaultRule, smartHostRule];
const nameForm = `a domain, or one of ${named.join(", ")}`;

/** What a rule is for: a provider, `default`, `smart-host`, or a domain, which becomes its A-label form. */
export const ruleName = z.string().transform((text, context) => {
  const name = text.toLowerCase();
  if (named.includes(name)) return name;
  const domain = parseDomain(name);
  if (domain.ok) return domain.value;
  context.addIssue({ code: "custom", message: nameForm });
  return z.NEVER;
});

/** Where TLS of these is decided instead. */
const tlsElsewhere = new Map([
  [defaultRule, "no tls here: outbound.tls is for all"],
  [smartHostRule, "no tls here: outbound.smart_host.tls is for the smart host"],
]);

/** Why a rule of this name has no `tls`; null: it may have. */
export const tlsRefusal = (name: string): string | null => tlsElsewhere.get(name) ?? null;

export const shapingFile = z.strictObject(
  {
    groups: z
      .record(ruleName, z.strictObject(ruleFields, ruleForm).partial(), fileForm)
      .superRefine((rules, context) => {
        for (const [name, rule] of Object.entries(rules)) {
          const message = tlsRefusal(name);
          if (rule.tls !== undefined && message !== null)
            context.addIssue({ code: "custom", path: [name, "tls"], message });
        }
      }),
  },
  fileForm,
);

/** What is wrong with the content of a shaping file: found where, and what would be right. */
export function shapingFaults(content: unknown): { found: string; expected: string }[] {
  return (shapingFile.safeParse(content).error?.issues ?? []).map((issue) => {
    const path = issue.path.map(String);
    if (issue.code === "invalid_key")
      return { found: `the name ${shown(path.pop())} at ${path.join(".")}`, expected: nameForm };
    const at = path.length === 0 ? "" : ` at ${path.join(".")}`;
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
