// An answer of the API, made of its description: every member that it may have, texts with a sequence that a terminal
// would obey, numbers as small as they may be, and lists with one row.
import { z } from "zod";
import type { Answer } from "../../src/http/route.ts";

/** JSON Schema, as far as the API's description uses it. */
interface Schema {
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  prefixItems?: Schema[];
  minimum?: number;
  exclusiveMinimum?: number;
  minLength?: number;
  pattern?: string;
  format?: string;
  $ref?: string;
  $defs?: Record<string, Schema>;
  definitions?: Record<string, Schema>;
}

const hostile = "text \u001b[2J of others";

/** `accept`: the media type that is asked for, where the answer has several. */
export function sampleOf(answer: Answer, accept: string): { type: string | null; body: string } {
  if (answer === null) return { type: null, body: "" };
  if (answer instanceof z.ZodType) return { type: "application/json", body: jsonOf(answer) };
  const [type, schema] =
    Object.entries(answer).find(([name]) => name === accept) ?? Object.entries(answer)[0] ?? [];
  if (type === undefined || schema === undefined) return { type: null, body: "" };
  return { type, body: /json/.test(type) ? jsonOf(schema) : "Subject: x\r\n\r\nbody\r\n" };
}

function jsonOf(schema: z.ZodType): string {
  const described = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Schema;
  return JSON.stringify(valueOf(described, described));
}

function valueOf(schema: Schema, root: Schema): unknown {
  if (schema.$ref !== undefined) return valueOf(referred(schema.$ref, root), root);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  const choice = schema.anyOf?.[0] ?? schema.oneOf?.[0] ?? schema.allOf?.[0];
  if (choice) return valueOf(choice, root);
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  switch (type) {
    case "object":
      return objectOf(schema, root);
    case "array":
      return schema.items
        ? [valueOf(schema.items, root)]
        : (schema.prefixItems ?? []).map((one) => valueOf(one, root));
    case "boolean":
      return false;
    case "integer":
    case "number":
      return Math.max(0, schema.minimum ?? (schema.exclusiveMinimum ?? -1) + 1);
    case "null":
      return null;
    default:
      return textOf(schema);
  }
}

function objectOf({ properties, additionalProperties: others }: Schema, root: Schema): object {
  const known = Object.entries(properties ?? {}).map(([name, one]) => [name, valueOf(one, root)]);
  const more = typeof others === "object" ? [["other", valueOf(others, root)]] : [];
  const value = Object.fromEntries([...known, ...more]) as Record<string, unknown>;
  // A list with a next page would be asked for it without end.
  if (value["has_more"] === false && "next_cursor" in value) value["next_cursor"] = null;
  return value;
}

function textOf({ pattern, format, minLength = 0 }: Schema): string {
  const prefix = /^\^([a-z]+)_/.exec(pattern ?? "")?.[1];
  if (prefix !== undefined) return `${prefix}_${"01hzy0abcdefghjkmnpqrstvwx"}`;
  if (format === "date-time") return "2026-11-27T09:00:00.000Z";
  if (format === "ipv4") return "192.0.2.1";
  if (format === "email") return "a@x.example";
  return hostile.padEnd(minLength, "x");
}

function referred(ref: string, root: Schema): Schema {
  if (ref === "#") return root;
  const name = ref.split("/").at(-1) ?? "";
  const found = root.$defs?.[name] ?? root.definitions?.[name];
  if (!found) throw new Error(`no schema ${ref}`);
  return found;
}
