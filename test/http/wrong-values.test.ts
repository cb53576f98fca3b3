// What a value of the wrong shape is answered, and that none makes an internal error.
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Endpoint } from "../../src/model/webhook.ts";
import { list, text } from "./harness.ts";
import { addDomain, checkUrl, startStored, type Stored } from "./stored.ts";

let http: Stored;
let ask: Stored["call"];

beforeAll(async () => {
  http = await startStored((opened) => ({
    webhooks: {
      retryNow: () => undefined,
      checkUrl,
      test: (endpoint: Endpoint) =>
        Promise.resolve({
          delivered: false,
          status: 500,
          durationMs: 12,
          failure: null,
          eventId: endpoint.id.replace("whk", "evt"),
        }),
    },
    domains: { add: addDomain(opened) },
  }));
  ({ call: ask } = http);
});
afterAll(() => http.stop());
beforeEach(() => http.clock.advance(1000));

describe("a value of the wrong shape", () => {
  const told = async (method: string, path: string, body?: unknown): Promise<string[]> => {
    const { status, json } = await ask(method, path, body);
    expect([400, 422]).toContain(status);
    return list(json["errors"]).map((row) => `${text(row["field"])} ${text(row["issue"])}`);
  };

  test("in a body is described in words: what was expected, and what was found", async () => {
    expect(await told("POST", "/v1/domains", {})).toEqual(["name is required: a string"]);
    expect(await told("POST", "/v1/webhooks", { url: 5, active: "no", events: ["message.lost"] })).toEqual([
      "url expected a string, found 5",
      expect.stringMatching(/^events\[0\] expected one of message\.delivered, .*; found "message\.lost"$/),
      'active expected true or false, found "no"',
    ]);
    expect(await told("POST", "/v1/suppressions", { emails: "a@x.test", on_invalid: "drop" })).toEqual([
      'emails expected an array, found "a@x.test"',
      'on_invalid expected one of fail, skip; found "drop"',
    ]);
  });

  test("in a query too, at the parameter's own name", async () => {
    expect(await told("GET", "/v1/messages?status=lost")).toEqual([
      'status expected one of scheduled, queued, sending, delivered, deferred, bounced, canceled, partially_delivered, processing; found "lost"',
    ]);
    expect(await told("GET", "/v1/events?event=message.delivered,foo&order=up")).toEqual([
      expect.stringMatching(/^event expected one of message\.delivered, .*; found "foo"$/),
      'order expected one of asc, desc; found "up"',
    ]);
    expect(await told("GET", `/v1/messages?tag=${"x".repeat(999)}`)).toEqual([
      expect.stringMatching(/^tag expected at most 998 characters, found "x{60}…"$/),
    ]);
  });
});

test("whatever the JSON, no route answers with a 5xx", async () => {
  const { json: hook } = await ask("POST", "/v1/webhooks", { url: "https://fuzz.example/" });
  const hookPath = `/v1/webhooks/${text(hook["id"])}`;
  const names = [
    "url",
    "events",
    "active",
    "description",
    "backlog",
    "event",
    "name",
    "scope",
    "emails",
    "suppressions",
    "reason",
    "expires_at",
    "on_invalid",
    "__proto__",
    "toString",
  ];
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.string({ unit: "binary" }),
    fc.constantFrom(
      "https://x.example/",
      "a@x.test",
      "message.bounced",
      "send",
      "skip",
      "\ud800",
      "a\r\nb",
      "\0",
      "2026-11-27T00:00:00Z",
      "+275760-09-13T00:00:00.001Z",
    ),
    fc.array(fc.oneof(fc.string(), fc.constant("a@x.test"), fc.record({ email: fc.string() })), {
      maxLength: 4,
    }),
  );
  const body = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 6 }),
  );
  const targets: [string, string, boolean][] = [
    ["POST", "/v1/webhooks", false],
    ["PATCH", hookPath, false],
    ["POST", `${hookPath}/test`, false],
    ["POST", "/v1/domains", false],
    ["POST", "/v1/suppressions", false],
    ["POST", "/v1/keys", true],
    ["POST", "/v1/smtp_credentials", true],
  ];
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...targets), body, async ([method, path, admin], content) => {
      const { status, text } = await ask(method, path, content, { admin });
      if (status >= 500) throw new Error(`${method} ${path}: ${status} ${text}`);
    }),
    { numRuns: 400 },
  );
});

test("whatever the path and query, no route answers with a 5xx", async () => {
  const paths = [
    "/v1/messages",
    "/v1/messages/{}",
    "/v1/messages/{}/attempts",
    "/v1/messages/{}/content",
    "/v1/events",
    "/v1/suppressions",
    "/v1/suppressions/{}",
    "/v1/domains/{}",
    "/v1/webhooks/{}",
  ];
  const parameters = [
    "limit",
    "cursor",
    "to",
    "status",
    "event",
    "created_after",
    "occurred_before",
    "email_prefix",
    "domain",
    "subject",
    "tag",
  ];
  const value = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom("\0", "%", "a@x.test", "..", "2026-11-27", "-1", "1e9", "\u202e"),
  );
  const encode = (text: string): string => encodeURIComponent(text.toWellFormed());
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...paths),
      value,
      fc.dictionary(fc.constantFrom(...parameters), value, { maxKeys: 3 }),
      async (path, part, query) => {
        const search = Object.entries(query).map(([name, text]) => `${name}=${encode(text)}`);
        const { status, text } = await ask("GET", `${path.replace("{}", encode(part))}?${search.join("&")}`);
        if (status >= 500) throw new Error(`${path}: ${status} ${text}`);
      },
    ),
    { numRuns: 400 },
  );
});
