// The pieces that query and body schemas are made of: each turns text from outside into the value that
// the rooms below take, or says what is wrong with it. `as` is what the API's description says of it (openapi/schemas.ts).
import { z } from "zod";
import { parseNetwork } from "../access/networks.ts";
import type { Problem } from "../errors.ts";
import { shapeWords } from "../errors/zod-messages.ts";
import { canonicalAddress, parseAddress, parseDomain } from "../mail/address.ts";
import { shortName } from "../submission/shape.ts";

const digits = /^[0-9]{1,9}$/;

export function pageFields(standard = 50, most = 200) {
  const limit = z
    .string()
    .regex(digits, `is a whole number from 1 to ${most}`)
    .transform(Number)
    .pipe(z.number().min(1, "is at least 1").max(most, `is at most ${most}`));
  const as = { type: "integer", minimum: 1, maximum: most, default: standard };
  return {
    limit: limit.default(standard).meta({ as }),
    cursor: z.string().max(1000).optional().describe("The next_cursor of the page before."),
  };
}

/** A filter that is compared as text. */
export const textFilter = z.string().max(998).optional();

/** `a,b` → the words, each one of `known`; a repeated parameter comes in joined the same way. */
export function wordList<Word extends string>(known: readonly Word[]) {
  const words = z.string().transform((text, context) => {
    const given = text.split(",").map((word) => word.trim());
    const found = given.flatMap((word) => known.find((one) => one === word) ?? []);
    const unknown = given.find((word) => !known.some((one) => one === word));
    if (unknown === undefined) return found;
    const message = shapeWords({ code: "invalid_value", input: unknown, values: [...known] });
    context.addIssue({ code: "custom", message: message ?? "is unknown" });
    return z.NEVER;
  });
  return words.meta({ as: { type: "array", items: { type: "string", enum: known }, minItems: 1 } });
}

/** ISO 8601 with a zone, or a date (its start in UTC) → milliseconds. */
export const time = z
  .union([z.iso.datetime({ offset: true }), z.iso.date()], {
    error: "is not an ISO 8601 time, like 2026-11-27T09:15:22Z",
  })
  .transform((text) => Date.parse(text));

/** An email address → the form that the suppression list compares. */
export const canonicalEmail = z
  .string()
  .max(1000)
  .transform((text, context) => {
    const address = parseAddress(text);
    if (address.ok) return canonicalAddress(address.value);
    context.addIssue({ code: "custom", message: address.issue });
    return z.NEVER;
  });

/** A domain name → A-label, lower case. */
export const domainName = z
  .string()
  .max(1000)
  .transform((text, context) => {
    const domain = parseDomain(text);
    if (domain.ok) return domain.value;
    context.addIssue({ code: "custom", message: domain.issue });
    return z.NEVER;
  });

/** The operator's filters: text in which an asterisk stands for any text. */
export const pattern = z
  .string()
  .min(1, "is empty")
  .max(200, "is longer than 200 characters")
  .transform((text) => text.toLowerCase());

/** Who writes an asterisk means a pattern, though one may stand in an address. */
const wild = pattern.refine((text) => text.includes("*"));
export const emailOrPattern = z.union([wild, canonicalEmail], {
  error: "is neither an address nor a pattern with *",
});
export const domainOrPattern = z.union([wild, domainName], {
  error: "is neither a domain nor a pattern with *",
});

/** The parameters that lists of messages and events have on the operator's socket beside their own. */
export const patternFields = {
  to: emailOrPattern.optional(),
  from: pattern.optional(),
  tag: textFilter,
  domain: domainOrPattern.optional(),
  ip: pattern.optional(),
  pool: pattern.optional(),
  type: pattern.optional(),
  code: pattern.optional(),
  enhanced: pattern.optional(),
  key: pattern.optional(),
};

/** What of them is for the store to match, and what it looks up. */
export function patternsOf(query: z.output<z.ZodObject<typeof patternFields>>) {
  const { to, from, tag, domain, ip, pool, type, code, enhanced, key } = query;
  const like = (text: string | undefined) => (text?.includes("*") === true ? text : undefined);
  const exact = (text: string | undefined) => (like(text) === undefined ? text : undefined);
  return present({
    to: exact(to),
    toLike: like(to),
    fromLike: from,
    tag: exact(tag),
    tagLike: like(tag)?.toLowerCase(),
    domain,
    ip,
    pool,
    type,
    code,
    enhanced,
    key,
  });
}

/** A name that a person gives to a thing. */
export const label = z.string().trim().min(1, "is empty").max(100, "is longer than 100 characters");

export const network = z
  .string()
  .refine((text) => parseNetwork(text) !== null, "is not an address or a CIDR network");

/** Rows of `errors` for what a schema found. */
export function problemsOf(error: z.ZodError): Problem[] {
  return error.issues.flatMap((issue): Problem[] => {
    const field = z.core.toDotPath(issue.path);
    if (issue.code !== "unrecognized_keys")
      return [{ field, code: "validation_failed", issue: issue.message }];
    return issue.keys.map((key) => ({
      field: z.core.toDotPath([...issue.path, shortName(key)]),
      code: "validation_failed",
      issue: "is not a field of this request",
    }));
  });
}

/** The same object without the members that are undefined. */
export function present<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
