// Shapes as JSON Schema (2020-12, the dialect of OpenAPI 3.1). What has a name (`.meta({ id })`) stands once under
// components/schemas; everything else stands where it is used. A meta member `as` is what the description says in place
// of what the validator is made of: a number of the query comes in as text.
import { z } from "zod";

export type Json = Record<string, unknown>;

export interface Schemas {
  /** `input`: what is asked for; `output`: what is answered. */
  of(shape: z.ZodType, io: "input" | "output"): Json;
  /** The named ones met so far. Throws where one name stands for two things. */
  named(): Record<string, Json>;
}

/** Formats that say enough without the pattern that goes with them. */
const spoken = new Set(["date-time", "date", "ipv4", "ipv6", "uri", "email"]);

export function createSchemas(): Schemas {
  const named = new Map<string, Json>();
  const keep = (name: string, schema: Json): void => {
    const before = named.get(name);
    if (before && JSON.stringify(before) !== JSON.stringify(schema))
      throw new Error(`two shapes of the API are called ${name}`);
    named.set(name, schema);
  };
  const made = { input: new Map<z.ZodType, Json>(), output: new Map<z.ZodType, Json>() };
  return {
    of(shape, io) {
      const before = made[io].get(shape);
      if (before) return before;
      const {
        $schema: _dialect,
        $defs = {},
        ...own
      } = z.toJSONSchema(shape, {
        io,
        unrepresentable: "any",
        override: ({ jsonSchema }) => simplify(jsonSchema as Json),
      });
      for (const [name, schema] of Object.entries($defs)) keep(name, pointed(schema) as Json);
      const schema = pointed(own) as Json;
      made[io].set(shape, schema);
      return schema;
    },
    named: () => Object.fromEntries([...named].toSorted(([a], [b]) => (a < b ? -1 : 1))),
  };
}

/** Takes away what only the validator needs. */
function simplify(schema: Json): void {
  const { as } = schema;
  if (typeof as === "object" && as !== null) {
    const { description } = schema;
    for (const member of Object.keys(schema)) Reflect.deleteProperty(schema, member);
    Object.assign(schema, as, description === undefined ? {} : { description });
    return;
  }
  if (typeof schema["format"] === "string" && spoken.has(schema["format"])) delete schema["pattern"];
  if (schema["maximum"] === Number.MAX_SAFE_INTEGER) delete schema["maximum"];
  if (schema["minimum"] === Number.MIN_SAFE_INTEGER) delete schema["minimum"];
  if (JSON.stringify(schema["propertyNames"]) === '{"type":"string"}') delete schema["propertyNames"];
  delete schema["id"];
}

/** References to components, in place of those within one schema. */
function pointed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(pointed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([member, inner]) =>
      member === "$ref" && typeof inner === "string"
        ? [member, inner.replace("#/$defs/", "#/components/schemas/")]
        : [member, pointed(inner)],
    ),
  );
}
