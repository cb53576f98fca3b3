// /v1/suppressions over a real store: the list as a file, what is left of it by each filter, and addresses in every
// spelling. What an add answers is in suppression-entries.test.ts.
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { newSuppression } from "../store/fixtures.ts";
import type { ManualClock } from "../support/clock.ts";
import { list, startHttp, text, type Answer, type Ask } from "./harness.ts";
import { startStored, type Stored } from "./stored.ts";

let clock: ManualClock;
let store: Store;
let http: Stored;

beforeAll(async () => {
  http = await startStored();
  ({ store, clock } = http);
});
afterAll(() => http.stop());

const path = "/v1/suppressions";
function ask(method: string, rest = "", body?: unknown, more: Partial<Ask> = {}): Promise<Answer> {
  return http.ask({ method, path: `${path}${rest}`, ...(body === undefined ? {} : { body }), ...more });
}
const csv = (query = "", method = "GET"): Promise<Answer> =>
  ask(method, query, undefined, { headers: { accept: "text/csv" } });

/** RFC 4180, read by its letter. */
function cellsOf(file: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (const [, quoted, plain = "", end] of file.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === "\r\n") rows.push(row.splice(0));
  }
  row = [];
  return rows;
}

describe("as CSV", () => {
  test("the whole filtered list comes, in the order of addresses, under its column names", async () => {
    const entries = Array.from({ length: 2500 }, (_, i) =>
      newSuppression(http.account.key, `u${String(i).padStart(5, "0")}@big.test`),
    );
    for (let i = 0; i < entries.length; i += 1000)
      await store.addSuppressions(entries.slice(i, i + 1000), clock.now());
    await ask("POST", "", { emails: ["other@small.test"] });

    const answer = await csv("?domain=big.test&limit=10");
    expect(answer.status).toBe(200);
    expect(answer.headers["content-type"]).toBe("text/csv; charset=utf-8; header=present");
    expect(answer.headers["content-disposition"]).toBe('attachment; filename="suppressions.csv"');
    expect(answer.headers["x-ratelimit-bucket"]).toBe("suppressions-list");
    const [header, ...rows] = cellsOf(answer.text);
    expect(header).toEqual([
      "email",
      "reason",
      "source",
      "message_id",
      "event_id",
      "smtp_code",
      "smtp_status",
      "description",
      "created_at",
      "updated_at",
      "expires_at",
    ]);
    expect(rows).toHaveLength(2500);
    expect(rows.map(([email]) => email)).toEqual(entries.map(({ email }) => email));
  });

  test("an export holds a page of the list at a time, and stops when the client stops reading", async () => {
    const asked: (string | null)[] = [];
    const endless = await startHttp({
      store: {
        listSuppressions(accountKey, _filter, { limit, cursor }) {
          asked.push(cursor);
          const rows = Array.from({ length: limit }, (_, i) => ({
            ...newSuppression(accountKey, `${i}@x.test`, { description: "d".repeat(400) }),
            createdAt: 0,
            updatedAt: 0,
          }));
          return Promise.resolve({ rows, hasMore: true, next: `after ${asked.length}` });
        },
      },
    });
    const { value } = await endless.key("suppressions");
    const { request } = await import("node:http");
    const head = await endless.ask({
      method: "HEAD",
      path,
      key: value,
      headers: { accept: "text/csv" },
    });
    expect([head.status, head.text, asked]).toEqual([200, "", [null]]);

    await new Promise<void>((resolve, reject) => {
      const headers = { authorization: `Bearer ${value}`, accept: "text/csv" };
      const req = request({ host: "127.0.0.1", port: endless.port, path, headers, agent: false }, (res) => {
        res.once("data", () => {
          res.destroy();
          resolve();
        });
      });
      req.on("error", reject);
      req.end();
    });
    await endless.stop(); // resolves only when what was in flight is over
    expect(asked.length).toBeLessThan(1000);
    expect(asked.slice(0, 3)).toEqual([null, null, "after 2"]);
  });

  test("HEAD says what GET would, without the file", async () => {
    const [head, get] = [await csv("?domain=small.test", "HEAD"), await csv("?domain=small.test")];
    expect([head.status, head.text, head.headers["content-type"]]).toEqual([
      200,
      "",
      get.headers["content-type"],
    ]);
  });

  test.each([
    ["a wildcard", "*/*", "application/json"],
    ["JSON first", "application/json, text/csv;q=0.5", "application/json"],
    ["CSV first", "text/csv, application/json;q=0.5", "text/csv; charset=utf-8; header=present"],
    ["CSV not at all", "text/csv;q=0", "application/json"],
  ])("the Accept header decides: %s", async (_, accept, type) => {
    const answer = await ask("GET", "?domain=small.test", undefined, { headers: { accept } });
    expect(answer.headers["content-type"]).toBe(type);
  });

  test("a bad filter is a refusal and no half of a file", async () => {
    const refused = await csv("?reason=spite");
    expect([refused.status, refused.headers["content-type"], refused.json["field"]]).toEqual([
      400,
      "application/problem+json",
      "reason",
    ]);
  });

  test("what a spreadsheet would run is text, and every cell comes back as one", async () => {
    const words: [string, string][] = [
      ["=HYPERLINK(1)", "'=HYPERLINK(1)"],
      ["+1", "'+1"],
      ["-2+3", "'-2+3"],
      ["@SUM(A1)", "'@SUM(A1)"],
      ["\t=1", "'\t=1"],
      ["\r=1", "'\r=1"],
      ["＝1", "'＝1"],
      ['say "no", twice', 'say "no", twice'],
      ["two\r\nlines", "two\r\nlines"],
      ["a;=1", "a;=1"],
      [" spaced ", " spaced "],
      ["\u001b[2J", "\ufffd[2J"],
    ];
    await ask("POST", "", {
      suppressions: words.map(([description], i) => ({
        email: `${String.fromCharCode(97 + i)}@cell.test`,
        description,
      })),
    });
    await ask("POST", "", { emails: ["=cmd@cell2.test"] });
    const file = await csv("?domain=cell.test");
    expect(
      cellsOf(file.text)
        .slice(1)
        .map((row) => row[7]),
    ).toEqual(words.map(([, cell]) => cell));
    expect(file.text).toContain('"a;=1"');
    expect(cellsOf((await csv("?domain=cell2.test")).text)[1]?.[0]).toBe("'=cmd@cell2.test");
  });

  test("whatever a description holds, the file has as many cells as it should", async () => {
    let run = 0;
    const words = fc.string({
      unit: fc.constantFrom('"', ",", "\r", "\n", ";", "=", "a", " ", "\t", "é"),
      maxLength: 12,
    });
    await fc.assert(
      fc.asyncProperty(fc.array(words, { minLength: 1, maxLength: 8 }), async (descriptions) => {
        const domain = `p${++run}.test`;
        await ask("POST", "", {
          suppressions: descriptions.map((description, i) => ({ email: `${i}@${domain}`, description })),
        });
        const rows = cellsOf((await csv(`?domain=${domain}`)).text).slice(1);
        expect(rows.map((row) => row.length)).toEqual(descriptions.map(() => 11));
        expect(rows.map((row) => (row[7] ?? "").replace(/^'(?=[=\t\r\n])/, ""))).toEqual(descriptions);
      }),
      { numRuns: 30 },
    );
  });
});

test("each filter leaves what it says, and all of them hold together", async () => {
  const at = (minutes: number): string => new Date(clock.now() + minutes * 60_000).toISOString();
  const before = at(0);
  await ask("POST", "", { emails: ["ann@f.test"], reason: "complaint" });
  await clock.advance(60_000);
  await ask("POST", "", { emails: ["anton@f.test"], reason: "unsubscribe" }, { admin: true });
  await clock.advance(60_000);
  await ask("POST", "", { emails: ["berta@f.test", "ann@sub.f.test"], expires_at: at(10) });
  const emails = async (query: string): Promise<string[]> =>
    list((await ask("GET", `?${query}`)).json["data"]).map((row) => text(row["email"]));
  const f = "domain=f.test";
  expect(await emails(f)).toEqual(["ann@f.test", "anton@f.test", "berta@f.test"]);
  expect(await emails(`${f}&reason=complaint`)).toEqual(["ann@f.test"]);
  expect(await emails(`${f}&source=cli`)).toEqual(["anton@f.test"]);
  expect(await emails(`${f}&email_prefix=AN`)).toEqual(["ann@f.test", "anton@f.test"]);
  expect(await emails(`${f}&created_after=${at(-1)}`)).toEqual(["anton@f.test", "berta@f.test"]);
  expect(await emails(`${f}&created_before=${at(-1)}`)).toEqual(["ann@f.test"]);
  expect(await emails(`${f}&created_after=${before}&email_prefix=an&reason=unsubscribe`)).toEqual([
    "anton@f.test",
  ]);
  const page = await ask("GET", `?${f}&limit=2`);
  expect(page.json["has_more"]).toBe(true);
  expect(await emails(`${f}&limit=2&cursor=${text(page.json["next_cursor"])}`)).toEqual(["berta@f.test"]);

  expect(await emails("domain=sub.f.test")).toEqual(["ann@sub.f.test"]);
  await clock.advance(10 * 60_000);
  expect(await emails("domain=sub.f.test")).toEqual([]); // its time is over
  expect((await ask("GET", "/ann@sub.f.test")).status).toBe(404);
  expect((await ask("POST", "", { emails: ["ann@sub.f.test"] })).json).toMatchObject({ added: 1 });
});

test("of an address that is named twice in one request the strongest reason counts, once", async () => {
  const twice = await ask("POST", "", {
    suppressions: [
      { email: "Twice@d.test", description: "first" },
      { email: "twice@D.test", reason: "complaint" },
      { email: '"twice"@d.test', reason: "unsubscribe" },
    ],
  });
  expect([twice.status, twice.json]).toMatchObject([201, { added: 1, updated: 0, already_suppressed: 0 }]);
  expect((await ask("GET", "/twice@d.test")).json).toMatchObject({
    email: "Twice@d.test",
    reason: "complaint",
    description: "first",
  });
});

test.each([
  ["a plus and a slash", "a+b/c@e.test", "A%2BB%2FC%40e.test"],
  ["a plus that stands as it is", "p+q@e.test", "P+q@e.test"],
  ["a percent sign", "a%2fb@e.test", "a%252fb@e.test"],
  ["an international domain", "x@bücher.example", "x@xn--bcher-kva.example"],
  ["an international local part", "größe@e.test", encodeURIComponent("GRÖSSE@e.test".replace("SS", "ß"))],
  ["quotes that change nothing", "dot.ted@e.test", encodeURIComponent('"dot.ted"@e.test')],
  ["a quoted local part", '"a b@c"@e.test', encodeURIComponent('"A b@c"@E.TEST')],
])("an entry is found and removed by its address, percent-encoded: %s", async (_, email, spelled) => {
  expect((await ask("POST", "", { emails: [email] })).json["added"]).toBe(1);
  expect((await ask("GET", `/${spelled}`)).json["email"]).toBe(email);
  expect((await ask("HEAD", `/${spelled}`)).status).toBe(200);
  expect((await ask("DELETE", `/${spelled}`)).status).toBe(204);
  expect((await ask("GET", `/${spelled}`)).status).toBe(404);
  expect((await ask("DELETE", `/${spelled}`)).status).toBe(404);
});
