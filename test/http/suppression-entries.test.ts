// Suppressions over a real store: added, found by any spelling, filtered and removed.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ManualClock } from "../support/clock.ts";
import { list } from "./harness.ts";
import { alphabetical, fields, startStored, type Stored } from "./stored.ts";

let http: Stored;
let clock: ManualClock;
let ask: Stored["call"];

beforeAll(async () => {
  http = await startStored();
  ({ clock, call: ask } = http);
});
afterAll(() => http.stop());
beforeEach(() => http.clock.advance(1000));

describe("suppressions", () => {
  test("of an import are counted and not shown", async () => {
    const body = { source: "import", emails: ["one@import.test", "two@import.test"] };
    const first = await ask("POST", "/v1/suppressions", { ...body, reason: "unsubscribe" });
    expect([first.status, first.json]).toEqual([
      201,
      { added: 2, updated: 0, already_suppressed: 0, invalid: [], data: [] },
    ]);
    const suppressions = [
      { email: "One@import.test", reason: "complaint" },
      { email: "two@import.test" },
      { email: "three@import.test" },
    ];
    const more = await ask("POST", "/v1/suppressions", { source: "import", suppressions });
    expect([more.status, more.json]).toEqual([
      201,
      { added: 1, updated: 1, already_suppressed: 1, invalid: [], data: [] },
    ]);
    const found = await ask("GET", "/v1/suppressions/one@import.test");
    expect(found.json).toMatchObject({ email: "one@import.test", reason: "complaint", source: "import" });
  });

  test("are added in bulk, each address once, and found by any spelling", async () => {
    const emails = [
      "User+Tag@Example.Test",
      "user+tag@example.TEST",
      "a/b%25c@example.test",
      "x@b\u00fccher.example",
    ];
    const first = await ask("POST", "/v1/suppressions", {
      emails,
      reason: "complaint",
      description: "import",
    });
    expect([first.status, first.json]).toMatchObject([
      201,
      { added: 3, updated: 0, already_suppressed: 0, invalid: [] },
    ]);
    const again = await ask("POST", "/v1/suppressions", { emails: [emails[0]] });
    expect([again.status, again.json]).toMatchObject([200, { added: 0, updated: 0, already_suppressed: 1 }]);

    const found = await ask("GET", "/v1/suppressions/USER%2Btag%40example.test");
    expect(found.json).toEqual({
      email: "User+Tag@Example.Test",
      reason: "complaint",
      source: "api",
      message_id: null,
      event_id: null,
      smtp_code: null,
      smtp_status: null,
      description: "import",
      created_at: expect.any(String),
      updated_at: expect.any(String),
      expires_at: null,
    });
    expect((await ask("GET", "/v1/suppressions/user+tag@example.test")).status).toBe(200);
    expect((await ask("GET", "/v1/suppressions/a%2Fb%2525c@example.test")).status).toBe(200);
    expect((await ask("GET", "/v1/suppressions/a%2Fb%25c@example.test")).status).toBe(404);
    expect((await ask("GET", "/v1/suppressions/x@xn--bcher-kva.example")).status).toBe(200);
    expect((await ask("GET", "/v1/suppressions/nobody")).status).toBe(404);
    expect((await ask("DELETE", "/v1/suppressions/USER+TAG@EXAMPLE.TEST")).status).toBe(204);
    expect((await ask("DELETE", "/v1/suppressions/user+tag@example.test")).status).toBe(404);
  });

  test("with their own reasons, where a stronger one replaces a weaker", async () => {
    const entry = (reason: string) => ({
      suppressions: [{ email: "strong@s.test", reason, description: reason }],
    });
    expect((await ask("POST", "/v1/suppressions", entry("manual"))).json).toMatchObject({ added: 1 });
    expect(await ask("POST", "/v1/suppressions", entry("hard_bounce"))).toMatchObject({
      status: 201,
      json: { updated: 1 },
    });
    expect((await ask("POST", "/v1/suppressions", entry("unsubscribe"))).json).toMatchObject({
      updated: 0,
      already_suppressed: 1,
    });
    expect((await ask("GET", "/v1/suppressions/strong@s.test")).json["reason"]).toBe("hard_bounce");
  });

  test("keep their description where a stronger reason brings none", async () => {
    const add = (body: object) => ask("POST", "/v1/suppressions", { emails: ["told@s.test"], ...body });
    const described = async () => (await ask("GET", "/v1/suppressions/told@s.test")).json["description"];
    await add({ description: "asked on the phone" });
    await add({ reason: "unsubscribe" });
    expect(await described()).toBe("asked on the phone");
    await add({ reason: "complaint", description: "from the feedback loop" });
    expect(await described()).toBe("from the feedback loop");
  });

  test("that would have ended before they began are refused", async () => {
    const add = (at: number) =>
      ask("POST", "/v1/suppressions", {
        emails: ["late@s.test", "nobody"],
        expires_at: new Date(at).toISOString(),
      });
    for (const at of [0, clock.now()]) {
      const refused = await add(at);
      expect([refused.status, fields(refused)]).toEqual([422, ["emails[1]", "expires_at"]]);
    }
    expect(fields(await add(clock.now() + 60_000))).toEqual(["emails[1]"]);
    const wrong = await ask("POST", "/v1/suppressions", { emails: ["late@s.test"], expires_at: "soon" });
    expect(fields(wrong)).toEqual(["expires_at"]);
  });

  test("invalid addresses fail the whole, or are distinguished where they may be skipped", async () => {
    const emails = ["ok@skip.test", "nobody", "a@skip.test>\r\nRCPT TO:<b@x.test", "also@@skip.test"];
    const failed = await ask("POST", "/v1/suppressions", { emails });
    expect([failed.status, failed.json["code"], fields(failed)]).toEqual([
      422,
      "invalid_email_address",
      ["emails[1]", "emails[2]", "emails[3]"],
    ]);
    expect((await ask("GET", "/v1/suppressions/ok@skip.test")).status).toBe(404);
    const skipped = await ask("POST", "/v1/suppressions", { emails, on_invalid: "skip" });
    expect([
      skipped.status,
      skipped.json["added"],
      list(skipped.json["invalid"]).map((row) => row["email"]),
    ]).toEqual([201, 1, emails.slice(1)]);
  });

  test.each<[string, object, string[]]>([
    ["neither form", {}, ["emails"]],
    ["both forms", { emails: ["a@x.test"], suppressions: [{ email: "b@x.test" }] }, ["emails"]],
    ["nobody", { emails: [] }, ["emails"]],
    ["1,001 addresses", { emails: Array.from({ length: 1001 }, (_, i) => `a${i}@x.test`) }, ["emails"]],
    [
      "wrong types",
      { emails: [1, null, "a@x.test"], reason: "spite", expires_at: 7 },
      ["emails[0]", "emails[1]", "expires_at", "reason"],
    ],
    [
      "a misspelt field",
      { suppressions: [{ email: "a@x.test", raeson: "manual" }] },
      ["suppressions[0].raeson"],
    ],
  ])("%s is refused", async (_name, body, expected) => {
    const answer = await ask("POST", "/v1/suppressions", body);
    expect([answer.status, fields(answer).toSorted(alphabetical)]).toEqual([422, expected]);
  });

  test("are filtered, and the operator's are marked as such", async () => {
    await http.ask({
      method: "POST",
      path: "/v1/suppressions",
      admin: true,
      body: { emails: ["op@filter.test"], reason: "unsubscribe" },
    });
    const emails = async (query: string) =>
      list((await ask("GET", `/v1/suppressions?${query}`)).json["data"]).map((row) => row["email"]);
    expect(await emails("source=cli&domain=FILTER.test")).toEqual(["op@filter.test"]);
    expect(await emails("email_prefix=OP%40filter&reason=unsubscribe")).toEqual(["op@filter.test"]);
    expect(await emails("domain=filter.test&reason=complaint")).toEqual([]);
  });
});
