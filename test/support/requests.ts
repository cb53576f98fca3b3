// Requests to every route, made of the routes' own schemas: sound ones, sound ones with a fault, and noise. A path, a
// query or a cursor is what the server gave before, as often as it is made up. Which values a field name wants where its
// schema does not say (`from`, `url`) stands in `fitting`.
import fc from "fast-check";
import { z } from "zod";
import type { Route } from "../../src/http/route.ts";
import type { ProgramRequest, ProgramResponse } from "./program.ts";
import { asRecord, parsed } from "./judge.ts";

/** JSON Schema, as far as the routes' schemas need it. */
interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  items?: Schema;
  minItems?: number;
  minimum?: number;
  maximum?: number;
  format?: string;
  pattern?: string;
}

/** The JSON Schema of a request's body; null where the route has none. */
export function bodySchema(route: Route): Schema | null {
  const schema = route.requestSchema ?? route.body;
  return schema ? schemaOf(schema) : null;
}

function schemaOf(type: z.ZodType): Schema {
  const whole = z.toJSONSchema(type, { io: "input", unrepresentable: "any" }) as Schema;
  const text = JSON.stringify(whole, (name, member: unknown) => {
    const ref = asRecord(member)["$ref"];
    if (name === "$defs") return undefined;
    return typeof ref === "string" ? whole.$defs?.[ref.replace("#/$defs/", "")] : member; // none refers to itself
  });
  return JSON.parse(text) as Schema;
}

const hour = 3_600_000;
const times = [
  "2026-11-27T09:15:22.123Z",
  "2026-01-01",
  "2031-01-01T00:00:00+01:00",
  new Date(Date.now() + hour).toISOString(),
  new Date(Date.now() - hour).toISOString(),
];
const senders = ["a@ok.test", "A <a@ok.test>", { email: "ä@ok.test", name: "Ä" }];
const mailboxes = [
  ...senders,
  { email: "r@one.test", name: "Ä, B" },
  "r@simulator.svc",
  "bounce@simulator.svc",
  "jürgen@ok.test",
];
const addresses = ["r@one.test", "R@ONE.test", "x@bücher.test", "s@two.test"];
const names = ["mail.ok.test", "new.test", "bücher.test", "default", "pool-1", "p_2"];

/** Values that are likely right for a field of this name. */
const fitting: Record<string, unknown[]> = {
  from: senders,
  code: ["invalid_request", "maintenance"],
  to: [...mailboxes, addresses, ["delivered@simulator.svc"]],
  cc: mailboxes,
  bcc: mailboxes,
  reply_to: mailboxes,
  email: addresses,
  emails: [addresses, ["one@x.test"]],
  email_prefix: ["r", "x@"],
  url: ["https://hook.test/a", "https://hook.test/b?c=d", "https://10.0.0.1/"],
  name: names,
  domain: names,
  to_domain: names,
  ip_pool: names,
  ip_address: ["127.0.0.1", "192.0.2.7", "2001:db8::1"],
  send_at: [times[3], times[2], times[1]],
  expires_at: times,
  since: times,
  until: times,
  created_after: times,
  created_before: times,
  occurred_after: times,
  occurred_before: times,
  subject: ["Hello", "Grüße 🎉"],
  text: ["Hi"],
  html: ["<p>Hi <a href='https://x.test/'>there</a></p>"],
  headers: [{ "X-A": "b" }, {}],
  attachments: [[{ filename: "a.txt", content: "aGk=" }], [{ filename: "a.exe", content: "aGk=" }]],
  metadata: [{ order: "1" }, {}],
  tags: [["a"], []],
  limit: ["1", "2", "50"],
  allow_ips: [[], ["10.0.0.0/8", "::1"]],
  timezone: ["UTC", "Europe/Berlin", "Asia/Kolkata"],
  event_ids: [["evt_00000000000000000000000000"]],
  messages: [
    [{ from: "a@ok.test", to: "r@one.test", subject: "x", text: "y" }, {}],
    [1, null],
  ],
};

const oddText = fc.constantFrom(
  "",
  " ",
  "\0",
  "a\r\nb",
  "\ud800",
  "__proto__",
  "%2F",
  "../..",
  "ﷺ".repeat(300),
  "x".repeat(1100),
  "2026-13-45T99:00:00Z",
  "https://user:pw@127.0.0.1/#f",
  "a@b@c",
  "\u202e",
  "1e400",
  "NaN",
);
const text = fc.oneof(fc.string({ maxLength: 20 }), fc.string({ unit: "binary", maxLength: 20 }), oddText);
const oddNumber = fc.constantFrom(-0, 2 ** 53 + 1, -1, 1e308, 0.1, 4_294_967_296);

/** Any JSON, also with the keys that JavaScript trips over. */
const anyJson = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  text,
  oddNumber,
  fc.dictionary(
    fc.constantFrom("__proto__", "constructor", "toString", "a", "email", "0"),
    fc.jsonValue({ maxDepth: 1 }),
    {
      noNullPrototype: false,
    },
  ),
  fc.array(text, { maxLength: 260 }),
);

/** Values of the schema, by its type and the field's name. */
function valueOf(schema: Schema, name: string): fc.Arbitrary<unknown> {
  const likely = schema.format ? undefined : fitting[name];
  const own = shapedValueOf(schema, name);
  return likely ? fc.oneof({ weight: 12, arbitrary: fc.constantFrom(...likely) }, own) : own;
}

function shapedValueOf(schema: Schema, name: string): fc.Arbitrary<unknown> {
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives && schema.properties) {
    const ways = alternatives.map((one): Schema => ({
      type: "object",
      properties: { ...schema.properties, ...one.properties },
      required: [...(schema.required ?? []), ...(one.required ?? [])],
    }));
    return fc.oneof(...ways.map(objectOf));
  }
  if (alternatives) return fc.oneof(...alternatives.map((one) => valueOf(one, name)));
  const [first] = schema.allOf ?? [];
  if (first) return valueOf({ ...first, ...schema, allOf: schema.allOf?.slice(1) ?? [] }, name);
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  const own = typedValueOf(schema, name);
  const likely = fitting[name];
  return likely && !schema.format ? fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...likely) }, own) : own;
}

function typedValueOf(schema: Schema, name: string): fc.Arbitrary<unknown> {
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === "object" || schema.properties) return objectOf(schema);
  if (type === "array")
    return fc.array(valueOf(schema.items ?? {}, singular(name)), {
      minLength: schema.minItems ?? 0,
      maxLength: 3,
    });
  if (type === "boolean") return fc.boolean();
  if (type === "null") return fc.constant(null);
  if (type === "integer" || type === "number") {
    const [min, max] = [schema.minimum ?? -10, schema.maximum ?? 1_000_000];
    return fc.integer({ min: Math.max(min, -(2 ** 31)), max: Math.min(max, 2 ** 31 - 1) });
  }
  if (schema.format === "date-time" || schema.format === "date") return fc.constantFrom(...times);
  return type === "string" ? text : anyJson;
}

function singular(name: string): string {
  return name === "emails" ? "email" : name;
}

function objectOf(schema: Schema): fc.Arbitrary<unknown> {
  const { properties = {}, required = [], additionalProperties } = schema;
  const optional = Object.keys(properties).filter((name) => !required.includes(name));
  // A few of those that need not be there: with more, one of them is wrong nearly always.
  const fields = fc.subarray(optional, { maxLength: Math.min(3, optional.length) }).chain((chosen) => {
    const shown = [...required, ...chosen].map(
      (name) => [name, valueOf(properties[name] ?? {}, name)] as const,
    );
    return fc.record(Object.fromEntries(shown), { noNullPrototype: true });
  });
  if (typeof additionalProperties !== "object") return fields;
  return fc.dictionary(text, valueOf(additionalProperties, ""), { maxKeys: 3, noNullPrototype: true });
}

/** A body with one thing in it that is not as it was. */
function withFault(body: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.tuple(body, fc.nat(), fc.nat(2), anyJson).map(([sound, which, how, value]) => {
    if (typeof sound !== "object" || sound === null) return value;
    const copy: Record<string, unknown> = { ...sound };
    const keys = Object.keys(copy);
    const key = keys[which % Math.max(1, keys.length)];
    if (how === 0 || key === undefined) return { ...copy, [`unknown_${which % 3}`]: value };
    if (how === 1) delete copy[key];
    else copy[key] = value;
    return copy;
  });
}

/** What the server has told so far, by the name under which it was told. */
export interface Memory {
  learn(told: ProgramResponse): void;
  /** Something that was called so, or `otherwise`. */
  recall(name: string, which: number): string | undefined;
}

const mostRemembered = 60;

/** `spared` is never told again, so that no request takes away what the others stand on. */
export function createMemory(spared: ReadonlySet<string>): Memory {
  const known = new Map<string, string[]>();
  const note = (name: string, value: string): void => {
    const all = known.get(name) ?? [];
    known.set(name, all);
    if (!all.includes(value) && !spared.has(value)) all.push(value);
    if (all.length > mostRemembered) all.shift();
  };
  const learnFrom = (value: unknown, depth: number): void => {
    if (depth > 4 || typeof value !== "object" || value === null) return;
    const { id, status } = asRecord(value);
    if (status === "scheduled" && typeof id === "string") note("scheduled", id);
    for (const [name, member] of Object.entries(value)) {
      if (typeof member === "string" && member.length < 300) {
        const prefix = /^([a-z]+)_[0-9a-z]{26}$/.exec(member)?.[1];
        if (name !== "name") note(prefix ?? name, member); // names of all kinds of things
      }
      learnFrom(member, depth + 1);
    }
  };
  return {
    learn: ({ status, text: body }) => void (status < 300 && learnFrom(parsed(body), 0)),
    recall(name, which) {
      const all = known.get(name) ?? [];
      return all[which % Math.max(1, all.length)];
    },
  };
}

/** Under what name the memory has the ids of /v1/<resource>/{id}. */
const prefixes: Record<string, string> = {
  messages: "msg",
  webhooks: "whk",
  suppressions: "email",
  keys: "key",
  smtp_credentials: "cred",
};

function pathOf(route: Route, which: number[], made: string[], memory: Memory): string {
  const resource = route.path.split("/")[2] ?? "";
  const id = route.path.endsWith("/cancel") ? "scheduled" : prefixes[resource];
  let n = 0;
  return route.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const index = which[n] ?? 0;
    const up = (made[n] ?? "").replace(/^\.{1,2}$/, "dots"); // as segments they would name another path
    n++;
    const standard = (fitting[name] ?? []).filter((one) => typeof one === "string");
    const known =
      memory.recall(name === "ip" ? "ip_address" : (id ?? name), index) ??
      standard[index % Math.max(1, standard.length)];
    return index % 5 === 0 || known === undefined
      ? encodeURIComponent(up.toWellFormed())
      : encodeURIComponent(known);
  });
}

/** One request, given what is known once its turn comes. */
export type Plan = (memory: Memory) => ProgramRequest & { route: Route };

export interface PlanOptions {
  /** Values for Authorization; `null` is none. */
  credentials: readonly (string | null)[];
}

/** Requests to a route: sound, with a fault, and noise. */
export function planOf(route: Route, { credentials }: PlanOptions): fc.Arbitrary<Plan> {
  const schema = bodySchema(route);
  const sound = schema ? valueOf(schema, "") : fc.constant(undefined);
  const body = schema
    ? fc.oneof(
        { weight: 5, arbitrary: sound },
        { weight: 4, arbitrary: withFault(sound) },
        { weight: 1, arbitrary: anyJson },
      )
    : fc.option(fc.constant({}), { nil: undefined, freq: 9 });
  const querySchema = schemaOf(route.query);
  const names = Object.keys(querySchema.properties ?? {});
  const query = fc.record(
    Object.fromEntries(
      names.map((name) => [
        name,
        fc.oneof({ weight: 3, arbitrary: valueOf(querySchema.properties?.[name] ?? {}, name) }, text),
      ]),
    ),
    { requiredKeys: [], noNullPrototype: true },
  );
  return fc
    .record({
      body,
      query: fc.oneof({ weight: 1, arbitrary: fc.constant({}) }, { weight: 2, arbitrary: query }),
      which: fc.array(fc.nat(), { minLength: 2, maxLength: 2 }),
      made: fc.array(text, { minLength: 2, maxLength: 2 }),
      credential: fc.constantFrom(...credentials),
      headers: oddHeaders,
    })
    .map(({ body: json, query: given, which, made, credential, headers }) => (memory) => {
      const search = new URLSearchParams();
      for (const [name, value] of Object.entries(given as Record<string, unknown>)) {
        const known = name === "cursor" ? memory.recall("next_cursor", which[0] ?? 0) : undefined;
        search.append(
          name,
          (known ?? (typeof value === "string" ? value : JSON.stringify(value))).toWellFormed(),
        );
      }
      const target = pathOf(route, which, made, memory);
      return {
        route,
        method: route.method,
        target: search.size > 0 ? `${target}?${search.toString()}` : target,
        headers: {
          ...(credential === null ? {} : { authorization: `Bearer ${credential}` }),
          ...(json === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(json === undefined ? {} : { body: JSON.stringify(json) ?? "null" }),
      };
    });
}

const headerText = fc
  .string({ unit: fc.constantFrom(...Array.from('abc019-_.;=/*"\\, \t')), maxLength: 30 })
  .map((some) => some.trim());
const headerPairs: Record<string, fc.Arbitrary<string>> = {
  accept: fc.oneof(
    fc.constantFrom(
      "application/problem+json",
      "text/csv",
      "message/rfc822",
      "*/*",
      "application/json;q=0, text/html",
    ),
    headerText,
  ),
  "idempotency-key": fc.oneof(fc.constantFrom("one", "two", "three"), fc.uuid(), headerText),
  "x-api-version": fc.constantFrom("2026-11", "2026-11", "2025-01", ""),
  "if-modified-since": fc.constantFrom(
    "Sat, 28 Nov 2026 02:00:00 GMT",
    "Thu, 01 Jan 2037 00:00:00 GMT",
    "yesterday",
    "",
  ),
  "content-type": fc.constantFrom("application/json; charset=utf-8", "text/plain", "application/json;;", ""),
  "content-encoding": fc.constantFrom("identity", "gzip"),
  "x-forwarded-for": fc.constantFrom("192.0.2.9", "not an address", "::1, 10.0.0.1", ","),
  "x-svc-account": fc.constantFrom("default", "operations", "nobody"),
  range: fc.constant("bytes=0-5"),
  cookie: headerText,
  "x-anything": headerText,
};
const oddHeaders = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  { weight: 2, arbitrary: fc.record(headerPairs, { requiredKeys: [] }).map((all) => few(all)) },
);

/** Two of them: with more, none would get past the first refusal. */
function few(all: Partial<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(all).slice(-2)) as Record<string, string>;
}

/** JSON types that a property's schema takes; null where it takes anything. */
export function typesOf(schema: Schema): Set<string> | null {
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives) {
    const each = alternatives.map(typesOf);
    return each.includes(null) ? null : new Set(each.flatMap((types) => [...(types ?? [])]));
  }
  if (schema.enum) return new Set(schema.enum.map((value) => (value === null ? "null" : typeof value)));
  if (schema.const !== undefined) return new Set([typeof schema.const]);
  if (schema.type === undefined) return null;
  return new Set([schema.type].flat());
}

export type { Schema };
