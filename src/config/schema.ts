// The JSON Schema of svc.yaml, for editors: `svc config schema`. It is made of the options and of what their kinds say of
// themselves (values.ts). The program's own parser decides: the schema takes all that it takes, and may take more.
import { z } from "zod";
import { optionNotes, optionPaths, options } from "./options.ts";

type Schema = Record<string, unknown>;

/** Draft 7, which the YAML language server and with it most editors read. */
export function configSchema(): Schema {
  const root: Schema = {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "svc.yaml",
    type: "object",
    additionalProperties: false,
    properties: {},
  };
  for (const path of optionPaths) {
    const sections = path.split(".");
    const name = sections.pop() ?? "";
    const section = sections.reduce(sectionOf, root);
    (section["properties"] as Schema)[name] = optionSchema(path);
  }
  return root;
}

/** A section may be empty: `limits:`. */
function sectionOf(parent: Schema, name: string): Schema {
  const properties = parent["properties"] as Record<string, Schema>;
  return (properties[name] ??= { type: ["object", "null"], additionalProperties: false, properties: {} });
}

/** An option without a value is as if it were not there. */
function optionSchema(path: (typeof optionPaths)[number]): Schema {
  const { $schema: _, ...found } = z.toJSONSchema(options[path], {
    io: "input",
    unrepresentable: "any",
    target: "draft-7",
  });
  const note = optionNotes.get(options[path]);
  const standard = note?.standard;
  const known = standard !== null && standard !== undefined && typeof standard !== "function";
  return {
    description: note?.about,
    anyOf: [...alternatives(withBareItems(found)), { type: "null" }],
    ...(known ? { default: standard } : {}),
  };
}

/** Without null, which every option takes. */
function alternatives(schema: Schema): Schema[] {
  const { anyOf, ...more } = schema;
  if (!Array.isArray(anyOf) || Object.keys(more).length > 0) return [schema];
  return (anyOf as Schema[]).filter(({ type }) => type !== "null").flatMap(alternatives);
}

/** A list of one may be written without its brackets. */
function withBareItems(schema: Schema): Schema {
  const inner = Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [name, within(value)]),
  ) as Schema;
  return inner["type"] === "array" ? { anyOf: [inner["items"], inner] } : inner;
}

function within(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(within);
  return value !== null && typeof value === "object" ? withBareItems(value as Schema) : value;
}
