// Holds answers against the API's own description: that the status is one that the operation can have, with a body of
// its content type and shape, the headers that it must carry and none that it may not. Any test that has an answer can
// ask; the HTTP harness asks of every answer of its suite.
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { IncomingHttpHeaders } from "node:http";

/** One request and what came back. */
export interface Exchanged {
  method: string;
  /** As it was asked for, with its query. */
  path: string;
  status: number;
  headers: IncomingHttpHeaders;
  /** The body as it came. */
  text: string;
}

export interface Conformance {
  /** What in the answer departs from the description, in words; empty where nothing does. */
  faultsOf(exchanged: Exchanged): string[];
}

interface Described {
  content?: Record<string, { schema: object }>;
  headers?: Record<string, { $ref: string }>;
}
interface Operation {
  responses: Record<string, Described | { $ref: string }>;
}
/** The parts of an OpenAPI document that are looked at. */
interface Description {
  paths: Record<string, Record<string, Operation>>;
  components: {
    schemas: Record<string, object>;
    responses: Record<string, Described>;
    headers: Record<string, { required: boolean; schema: { type?: string } }>;
  };
}

const methods = ["get", "post", "patch", "delete"];
/** What a request can meet before its path or method is known. */
const anywhere = [400, 401, 403, 404, 405, 429, 500, 503];

/** `document`: OpenAPI as it was served or made. */
export function createConformance(document: object): Conformance {
  const { components, paths } = document as Description;
  const ajv = new Ajv2020({
    allErrors: true,
    allowUnionTypes: true,
    strictTypes: false,
    strictRequired: false,
  });
  addFormats.default(ajv);
  for (const format of ["cidrv4", "cidrv6"]) ajv.addFormat(format, true);
  for (const [name, schema] of Object.entries(components.schemas)) {
    ajv.addSchema({ $id: idOf(name), ...(absolute(schema) as object) });
  }
  const compiled = new Map<object, ValidateFunction>();
  const validatorOf = (schema: object): ValidateFunction => {
    const validate = compiled.get(schema) ?? ajv.compile(absolute(schema) as object);
    compiled.set(schema, validate);
    return validate;
  };
  const isOf = (name: string, value: unknown): boolean => ajv.getSchema(idOf(name))?.(value) === true;

  const resolved = (response: Described | { $ref: string }): Described =>
    "$ref" in response
      ? (components.responses[response.$ref.replace("#/components/responses/", "")] ?? {})
      : response;

  const headerFaults = ({ headers = {} }: Described, given: IncomingHttpHeaders): string[] =>
    Object.entries(components.headers).flatMap(([name, header]) => {
      const value = given[name.toLowerCase()];
      if (!Object.hasOwn(headers, name))
        return value === undefined ? [] : [`${name} is not a header of this answer`];
      if (value === undefined) return header.required ? [`${name} is missing`] : [];
      const read = header.schema.type === "integer" ? Number(value) : value;
      return validatorOf(header.schema)(read) ? [] : [`${name} is ${String(value)}`];
    });

  const bodyFaults = ({ content = {} }: Described, { method, headers, text }: Exchanged): string[] => {
    const type = (headers["content-type"] ?? "").split(";", 1)[0]?.trim() ?? "";
    if (Object.keys(content).length === 0) return text === "" && type === "" ? [] : [`a body: ${text}`];
    const schema = content[type]?.schema;
    if (!schema) return [`its content type is ${type}`];
    if (method === "HEAD" || !type.endsWith("json")) return [];
    const validate = validatorOf(schema);
    const documents =
      type === "application/x-ndjson" ? text.split("\n").filter((line) => line !== "") : [text];
    return documents.flatMap((document) =>
      validate(JSON.parse(document)) ? [] : [ajv.errorsText(validate.errors, { dataVar: "body" }), document],
    );
  };

  /** A path or a method that is not there is refused in one of the two shapes of an error. */
  const strangerFaults = ({ method, status, headers, text }: Exchanged): string[] => {
    if (!anywhere.includes(status)) return [`${status} for what is not described`];
    if (method === "HEAD") return [];
    const shape = headers["content-type"] === "application/json" ? "ErrorEnvelope" : "Problem";
    return isOf(shape, JSON.parse(text)) ? [] : [`no ${shape}: ${text}`];
  };

  return {
    faultsOf(exchanged) {
      const item = paths[templateOf(Object.keys(paths), exchanged.path) ?? ""];
      const method = exchanged.method === "HEAD" ? "get" : exchanged.method.toLowerCase();
      const operation = methods.includes(method) ? item?.[method] : undefined;
      if (!operation) return strangerFaults(exchanged);
      const response = operation.responses[exchanged.status];
      if (!response) return [`its status is ${exchanged.status}: ${exchanged.text}`];
      const described = resolved(response);
      return [...headerFaults(described, exchanged.headers), ...bodyFaults(described, exchanged)];
    },
  };
}

/** The template that a path was made by; a literal word goes before a parameter. */
function templateOf(templates: readonly string[], path: string): string | undefined {
  const bare = (path.split("?", 1)[0] ?? "").replace(/\/$/, "");
  return templates
    .filter((template) => {
      const pattern = template.split(/\{\w+\}/).map((text) => text.replace(/[.]/g, "\\."));
      return new RegExp(`^${pattern.join("[^/]+")}$`).test(bare);
    })
    .toSorted((a, b) => a.split("{").length - b.split("{").length)[0];
}

function idOf(name: string): string {
  return `schemas:${name}`;
}

/** References by the components' own ids, so that each is compiled once. */
function absolute(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(absolute);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([member, inner]) =>
      member === "$ref" && typeof inner === "string"
        ? [member, idOf(inner.replace("#/components/schemas/", ""))]
        : [member, absolute(inner)],
    ),
  );
}
