// Hostile requests at the whole program: whatever comes, no 500, and a refusal in the documented form with the code that
// fits. Bytes and headers by a table; bodies, queries and paths by the routes' own schemas: hostile-bodies.test.ts.
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { routesAsData, startProgram, type Program, type ProgramResponse } from "../support/program.ts";
import { asRecord, faultsOf, parsed } from "../support/judge.ts";

let program: Program;
let key: string;

beforeAll(async () => {
  program = await startProgram();
  key = (await program.admin("POST", "/v1/keys", { name: "k", scope: "admin", test: true })).key;
});
afterAll(() => program?.stop());
afterEach(() => expect(program.failures.splice(0)).toEqual([]));

type Fields = [string, string][];
const standing = (): Fields => [
  ["Host", "mail.svc.test"],
  ["X-Forwarded-Proto", "https"],
  ["Authorization", `Bearer ${key}`],
  ["Connection", "close"],
];

/** A request head as bytes; `fields` come after those that every request here has. */
function head(line: string, fields: Fields = [], without: string[] = []): string {
  const all = [...standing(), ...fields].filter(([name]) => !without.includes(name));
  return `${line} HTTP/1.1\r\n${all.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
}

/** Every answer of a connection. */
function answersIn(bytes: string): ProgramResponse[] {
  const answers: ProgramResponse[] = [];
  for (let rest = bytes; rest.startsWith("HTTP/1.1 ");) {
    const end = rest.indexOf("\r\n\r\n");
    const [line = "", ...lines] = rest.slice(0, end).split("\r\n");
    const headers = Object.fromEntries(
      lines.map((text) => [
        text.slice(0, text.indexOf(":")).toLowerCase(),
        text.slice(text.indexOf(":") + 2),
      ]),
    );
    const length = Number(headers["content-length"] ?? 0);
    const text = Buffer.from(rest.slice(end + 4, end + 4 + length), "latin1").toString();
    answers.push({ status: Number(line.slice(9, 12)), headers, text });
    rest = rest.slice(end + 4 + length);
  }
  return answers;
}

/** The one answer, held to its form: [status, code]. */
async function judged(method: string, pieces: (string | Buffer)[]): Promise<[number, unknown]> {
  const bytes = await program.raw(pieces);
  const all = answersIn(bytes);
  expect(all, bytes).toHaveLength(1);
  const [told] = all;
  if (!told) throw new Error("no answer");
  expect(faultsOf(told, { method }), bytes).toEqual([]);
  return [told.status, codeOf(told)];
}

function codeOf(told: ProgramResponse): unknown {
  const body = asRecord(parsed(told.text));
  return body["code"] ?? asRecord(body["error"])["code"];
}

const mail = { from: "a@ok.test", to: "r@one.test", subject: "x", text: "x" };
const sound = JSON.stringify(mail);
const json: Fields = [["Content-Type", "application/json"]];
const post = (body: string | Buffer, fields: Fields = json, path = "/v1/messages"): (string | Buffer)[] => [
  head(`POST ${path}`, [...fields, ["Content-Length", String(Buffer.byteLength(body))]]),
  body,
];
const withText = (text: string): string => sound.replace('"x","text"', `${text},"text"`);
const nested = (levels: number): string => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

describe("bodies", () => {
  test.each<[string, () => (string | Buffer)[], number, string | undefined]>([
    ["JSON", () => post(sound), 202, undefined],
    ["JSON after a BOM", () => post(`\ufeff${sound}`), 202, undefined],
    [
      "charset=utf-8",
      () => post(sound, [["Content-Type", 'Application/JSON; charset="UTF-8"']]),
      202,
      undefined,
    ],
    [
      "gzip",
      () => post(gzipSync(sound), [...json, ["Content-Encoding", "gzip"]]),
      415,
      "unsupported_media_type",
    ],
    [
      "deflate",
      () => post(deflateSync(sound), [...json, ["Content-Encoding", "deflate"]]),
      415,
      "unsupported_media_type",
    ],
    [
      "br",
      () => post(brotliCompressSync(sound), [...json, ["Content-Encoding", "br"]]),
      415,
      "unsupported_media_type",
    ],
    ["identity", () => post(sound, [...json, ["Content-Encoding", "identity"]]), 202, undefined],
    ["gzip that says nothing of it", () => post(gzipSync(sound)), 400, "invalid_request"],
    ["UTF-16", () => post(Buffer.from(`\ufeff${sound}`, "utf16le")), 400, "invalid_request"],
    [
      "an overlong form of a slash",
      () => post(Buffer.from('{"subject":"\xc0\xaf"}', "latin1")),
      400,
      "invalid_request",
    ],
    [
      "a surrogate in UTF-8",
      () => post(Buffer.from('{"subject":"\xed\xa0\x80"}', "latin1")),
      400,
      "invalid_request",
    ],
    ["a NUL in the text of JSON", () => post("{}\0"), 400, "invalid_request"],
    ["an escaped NUL", () => post(withText('"\\u0000"')), 422, "validation_failed"],
    ["half of a surrogate pair", () => post(withText('"\\ud83d"')), 422, "validation_failed"],
    ["nothing", () => post(""), 400, "invalid_request"],
    ["white space", () => post(" \n"), 400, "invalid_request"],
    ["two values", () => post(`${sound}${sound}`), 400, "invalid_request"],
    ["a comment", () => post(`${sound}//`), 400, "invalid_request"],
    ["NaN", () => post('{"subject":NaN}'), 400, "invalid_request"],
    ["an array", () => post("[]"), 422, "validation_failed"],
    ["null", () => post("null"), 422, "validation_failed"],
    ["a string", () => post('"x"'), 422, "validation_failed"],
    ["10,000 levels of objects", () => post(withText(nested(10_000))), 422, "validation_failed"],
    [
      "10,000 levels in a field that takes anything",
      () => post(sound.replace("}", `,"unsubscribe":${nested(10_000)}}`)),
      422,
      "validation_failed",
    ],
    [
      "10,000 levels of arrays",
      () => post(sound.replace("}", `,"tags":${"[".repeat(10_000)}${"]".repeat(10_000)}}`)),
      422,
      "validation_failed",
    ],
    ["10,000 levels, unfinished", () => post("[".repeat(10_000)), 400, "invalid_request"],
    ["__proto__", () => post(sound.replace("}", ',"__proto__":{"subject":"y"}}')), 422, "validation_failed"],
    [
      "__proto__ in metadata",
      () => post(sound.replace("}", ',"metadata":{"__proto__":"y"}}')),
      422,
      "validation_failed",
    ],
    [
      "constructor",
      () => post(sound.replace("}", ',"constructor":{"prototype":{"x":1}}}')),
      422,
      "validation_failed",
    ],
    [
      "toString in metadata",
      () => post(sound.replace("}", ',"metadata":{"toString":"x","hasOwnProperty":"y"}}')),
      202,
      undefined,
    ],
    ["1e400", () => post(withText("1e400")), 422, "validation_failed"],
    ["minus zero", () => post(withText("-0")), 422, "validation_failed"],
    ["a duplicate key, of which the last wins", () => post(`{"subject":1,${sound.slice(1)}`), 202, undefined],
    [
      "a duplicate key, the last of which is wrong",
      () => post(sound.replace("}", ',"subject":1}')),
      422,
      "validation_failed",
    ],
  ])("%s", async (_name, pieces, status, code) => {
    expect(await judged("POST", pieces())).toEqual([status, code]);
  });

  test.each([
    [2 ** 53 + 1, 422],
    [-0, 200],
    [1.5, 422],
    [604_800, 200],
  ])("a number is read as what it is: overlap_seconds %d", async (seconds, status) => {
    const { id } = await program.admin("POST", "/v1/webhooks", { url: "https://hook.test/" });
    const raw = Object.is(seconds, -0) ? "-0" : String(seconds);
    const [got] = await judged(
      "POST",
      post(`{"overlap_seconds":${raw}}`, json, `/v1/webhooks/${id}/rotate_secret`),
    );
    expect(got).toBe(status);
  });

  const many = (text: string): string => Array<string>(300_000).fill(text).join();
  const distinct = Array.from({ length: 300_000 }, (_, i) => `"${i}":1`).join();
  test.each<[string, string, string]>([
    ["array of numbers", "/v1/webhooks", `{"url":"https://hook.test/","events":[${many("1")}]}`],
    ["array of objects", "/v1/suppressions", `{"suppressions":[${many("{}")}]}`],
    ["object of unknown fields", "/v1/domains", `{"name":"a.test",${distinct}}`],
    ["object in a message", "/v1/messages", `{"metadata":{${distinct}}}`],
    ["message in a batch", "/v1/messages/batch", `{"messages":[{${distinct}}]}`],
    ["pile of brackets", "/v1/messages", "[".repeat(300_000)],
  ])("a large %s is refused in a short answer, unparsed", async (_name, path, body) => {
    const [told] = answersIn(await program.raw(post(body, json, path)));
    expect([told?.status, codeOf(told as ProgramResponse)], path).toEqual([422, "validation_failed"]);
    expect(told?.text).toMatch(/The body has more than \d+ values/);
    expect(told?.text.length).toBeLessThan(1000);
  });

  test("a refusal is never much larger than what it refuses, and a long name is quoted in short", async () => {
    const types = many("1").slice(0, 2 * 19_000);
    const [told] = answersIn(await program.raw(post(`{"events":[${types}1]}`, json, "/v1/webhooks")));
    expect((asRecord(parsed(told?.text ?? ""))["errors"] as unknown[]).length).toBe(1000);
    const [long] = answersIn(
      await program.raw(post(`{"url":"https://hook.test/","${"n".repeat(9000)}":1}`, json, "/v1/webhooks")),
    );
    expect(asRecord(parsed(long?.text ?? ""))["field"]).toBe(`["${"n".repeat(100)}…"]`);
  });

  test("what looks like values within a string is none", async () => {
    const text = JSON.stringify('[{"a":1},\\"'.repeat(30_000));
    const body = sound.replace('"text":"x"', `"text":${text}`);
    expect(await judged("POST", post(body))).toEqual([202, undefined]);
  });

  test("nothing of a body reaches the prototype of anything", () => {
    const probe: Record<string, unknown> = {};
    expect([probe["subject"], probe["x"], Object.keys(Object.prototype)]).toEqual([undefined, undefined, []]);
  });
});

describe("what announces a body", () => {
  test.each<[string, () => (string | Buffer)[], number, string | undefined]>([
    ["no Content-Type", () => post(sound, []), 400, "invalid_request"],
    ["an empty Content-Type", () => post(sound, [["Content-Type", ""]]), 415, "unsupported_media_type"],
    ["text/json", () => post(sound, [["Content-Type", "text/json"]]), 415, "unsupported_media_type"],
    [
      "application/json+x",
      () => post(sound, [["Content-Type", "application/json+x"]]),
      415,
      "unsupported_media_type",
    ],
    [
      "multipart",
      () => post(sound, [["Content-Type", "multipart/form-data; boundary=x"]]),
      415,
      "unsupported_media_type",
    ],
    [
      "charset=latin1",
      () => post(sound, [["Content-Type", "application/json; charset=latin1"]]),
      415,
      "unsupported_media_type",
    ],
    [
      "two Content-Types that differ",
      () => post(sound, [...json, ["Content-Type", "text/plain"]]),
      400,
      "invalid_request",
    ],
    [
      "two Content-Types in one",
      () => post(sound, [["Content-Type", "application/json, text/plain"]]),
      415,
      "unsupported_media_type",
    ],
    [
      "two Content-Encodings",
      () => post(sound, [...json, ["Content-Encoding", "identity"], ["Content-Encoding", "gzip"]]),
      415,
      "unsupported_media_type",
    ],
    [
      "chunks",
      () => [
        head("POST /v1/messages", [...json, ["Transfer-Encoding", "chunked"]]),
        `${sound.length.toString(16)};ext="a"\r\n${sound}\r\n0\r\nX-Trailer: 1\r\n\r\n`,
      ],
      202,
      undefined,
    ],
    [
      "a chunk of no hex length",
      () => [
        head("POST /v1/messages", [...json, ["Transfer-Encoding", "chunked"]]),
        "0x5\r\n{}\r\n0\r\n\r\n",
      ],
      400,
      "invalid_request",
    ],
    [
      "chunked and a length",
      () => [
        head("POST /v1/messages", [...json, ["Transfer-Encoding", "chunked"], ["Content-Length", "3"]]),
        "0\r\n\r\n",
      ],
      400,
      "invalid_request",
    ],
    [
      "two lengths",
      () => [head("POST /v1/messages", [...json, ["Content-Length", "2"], ["Content-Length", "3"]]), "{} "],
      400,
      "invalid_request",
    ],
    [
      "a negative length",
      () => [head("POST /v1/messages", [...json, ["Content-Length", "-1"]]), "{}"],
      400,
      "invalid_request",
    ],
    [
      "a length of 2^64",
      () => [head("POST /v1/messages", [...json, ["Content-Length", "18446744073709551616"]]), "{}"],
      400,
      "invalid_request",
    ],
    [
      "a length of 40 MB",
      () => [head("POST /v1/messages", [...json, ["Content-Length", "40000000"]])],
      413,
      "message_too_large",
    ],
    [
      "an expectation other than 100-continue",
      () => post(sound, [...json, ["Expect", "200-ok"]]),
      400,
      "invalid_request",
    ],
    [
      "a line folded",
      () => [head("POST /v1/messages", [...json, ["X-A", "b\r\n c"], ["Content-Length", "2"]]), "{}"],
      400,
      "invalid_request",
    ],
    [
      "a field name with a space",
      () => [head("POST /v1/messages", [["Content-Length ", "2"]]), "{}"],
      400,
      "invalid_request",
    ],
    ["a field with a NUL", () => [head("POST /v1/messages", [["X-A", "a\0b"]])], 400, "invalid_request"],
    [
      "a bare LF between fields",
      () => [head("POST /v1/messages", [["X-A", "a\nX-B: b"]])],
      400,
      "invalid_request",
    ],
    [
      "200 fields",
      () => [
        head(
          "GET /v1/messages",
          Array.from({ length: 200 }, (_, i) => [`X-${i}`, "y"]),
        ),
      ],
      200,
      undefined,
    ],
    [
      "20 KB of fields",
      () => [
        head(
          "GET /v1/messages",
          Array.from({ length: 200 }, (_, i) => [`X-${i}`, "y".repeat(100)]),
        ),
      ],
      431,
      "invalid_request",
    ],
    [
      "5,000 small fields",
      () => [
        head(
          "GET /v1/messages",
          Array.from({ length: 5000 }, () => ["A", ""]),
        ),
      ],
      431,
      "invalid_request",
    ],
    [
      "an Idempotency-Key of 256 characters",
      () => post(sound, [...json, ["Idempotency-Key", "k".repeat(256)]]),
      400,
      "invalid_request",
    ],
    [
      "an empty Idempotency-Key",
      () => post(sound, [...json, ["Idempotency-Key", ""]]),
      400,
      "invalid_request",
    ],
    [
      "an Idempotency-Key that is not ASCII",
      () => post(sound, [...json, ["Idempotency-Key", "k\xe9"]]),
      400,
      "invalid_request",
    ],
    [
      "a version that does not exist",
      () => post(sound, [...json, ["X-API-Version", "2026-12"]]),
      400,
      "invalid_request",
    ],
    [
      "two versions",
      () => post(sound, [...json, ["X-API-Version", "2026-11"], ["X-API-Version", "2026-11"]]),
      400,
      "invalid_request",
    ],
  ])("%s", async (_name, pieces, status, code) => {
    expect(await judged("POST", pieces())).toEqual([status, code]);
  });

  test("the body is asked for only once the headers have passed", async () => {
    const expecting: Fields = [
      ["Expect", "100-continue"],
      ["Content-Length", String(sound.length)],
    ];
    const right = await program.raw([head("POST /v1/messages", [...json, ...expecting]), sound]);
    expect(right).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 202 /);
    const wrong = await program.raw([
      head("POST /v1/messages", [["Content-Type", "text/plain"], ...expecting]),
    ]);
    expect(wrong).toMatch(/^HTTP\/1\.1 415 /);
  });

  test("bytes behind the announced length are the next request, whose refusal comes after the first one's answer", async () => {
    const length: Fields = [["Content-Length", String(sound.length)]];
    const bytes = await program.raw([
      head("POST /v1/messages", [...json, ...length], ["Connection"]),
      `${sound}garbage\r\n\r\n`,
    ]);
    const answers = answersIn(bytes);
    expect(answers.map((told) => told.status)).toEqual([202, 400]);
    for (const told of answers) expect(faultsOf(told, { method: "POST" })).toEqual([]);
  });
});

describe("targets and methods", () => {
  test.each<[string, number, string | undefined]>([
    ["GET /v1/messages/%2F", 404, "resource_not_found"],
    ["GET /v1/messages/%00", 404, "resource_not_found"],
    ["GET /v1/messages/a%2Fattempts", 404, "resource_not_found"],
    ["GET /v1/messages/%252F", 404, "resource_not_found"],
    ["GET /v1/messages/%C0%AF", 400, "invalid_request"],
    ["GET /v1/messages/%zz", 400, "invalid_request"],
    ["GET /v1/messages/%", 400, "invalid_request"],
    ["GET /v1/messages/%ED%A0%80", 400, "invalid_request"],
    ["GET /v1/messages/%F0%9F%98%80", 404, "resource_not_found"],
    ["GET /v1/messages/__proto__", 404, "resource_not_found"],
    ["GET /v1/messages/constructor", 404, "resource_not_found"],
    [`GET /v1/messages/${"a".repeat(8000)}`, 404, "resource_not_found"],
    ["GET /v1/suppressions/%00@x.test", 404, "resource_not_found"],
    ["DELETE /v1/suppressions/a%0d%0a@x.test", 404, "resource_not_found"],
    ["GET /v1/domains/..", 404, "resource_not_found"],
    ["GET /v1/domains/%2e%2e", 404, "resource_not_found"],
    ["GET /v1//messages", 404, "resource_not_found"],
    ["GET //v1/messages", 404, "resource_not_found"],
    ["GET /V1/messages", 404, "resource_not_found"],
    ["GET /v1/keys", 404, "resource_not_found"],
    ["GET /v1/messages;x=1", 404, "resource_not_found"],
    ["GET /errors/__proto__", 404, "resource_not_found"],
    ["GET /errors/%", 400, "invalid_request"],
    ["GET http://elsewhere.test/v1/messages", 200, undefined],
    ["GET http://elsewhere.test/v1/keys", 404, "resource_not_found"],
    ["GET http://[/v1/messages", 404, "resource_not_found"],
    ["GET *", 404, "resource_not_found"],
    ["OPTIONS *", 404, "resource_not_found"],
    ["GET /v1/messages?limit=0", 400, "invalid_request"],
    ["GET /v1/messages?limit=1e2", 400, "invalid_request"],
    ["GET /v1/messages?limit=1&limit=2", 400, "invalid_request"],
    ["GET /v1/messages?limit=%zz", 400, "invalid_request"],
    ["GET /v1/messages?limit[]=1&__proto__=1&constructor=x", 200, undefined],
    ["GET /v1/messages?cursor=%00", 400, "invalid_request"],
    ["GET /v1/messages?to=%ff", 400, "invalid_request"],
    ["GET /v1/events?cursor=__proto__", 400, "invalid_request"],
    [`GET /v1/messages?subject=${"a".repeat(999)}`, 400, "invalid_request"],
    [`GET /v1/messages?${"a&".repeat(4000)}`, 200, undefined],
    ["OPTIONS /v1/messages", 405, "method_not_allowed"],
    ["TRACE /v1/messages", 405, "method_not_allowed"],
    ["PUT /v1/messages", 405, "method_not_allowed"],
    ["DELETE /v1/messages", 405, "method_not_allowed"],
    ["PROPFIND /v1/messages", 405, "method_not_allowed"],
    ["PATCH /healthz", 405, "method_not_allowed"],
    ["TRACE /", 404, "resource_not_found"],
    ["FOO /v1/messages", 400, "invalid_request"],
    ["get /v1/messages", 400, "invalid_request"],
    ["PRI *", 400, "invalid_request"],
  ])("%s", async (line, status, code) => {
    expect(await judged(line.split(" ")[0] ?? "", [head(line)])).toEqual([status, code]);
  });

  test("no route opens itself to a page of another origin, asked or unasked", async () => {
    const origin: Fields = [
      ["Origin", "https://evil.test"],
      ["Access-Control-Request-Method", "POST"],
      ["Access-Control-Request-Headers", "authorization"],
    ];
    for (const { path, listeners } of routesAsData()) {
      if (listeners === "admin") continue;
      const target = path.replace(/\{\w+\}/g, "x");
      expect((await judged("OPTIONS", [head(`OPTIONS ${target}`, origin)]))[0], path).toBe(405);
      await judged("GET", [head(`GET ${target}`, origin)]);
    }
  });

  test("HEAD is GET without its body, on every route that has one", async () => {
    for (const { path, method, listeners } of routesAsData()) {
      if (method !== "GET" || listeners === "admin") continue;
      const target = path.replace(/\{\w+\}/g, "x");
      const [got, asked] = await Promise.all(
        (["GET", "HEAD"] as const).map((one) =>
          program.ask({ method: one, target, headers: { authorization: `Bearer ${key}` } }),
        ),
      );
      expect(faultsOf(asked as ProgramResponse, { method: "HEAD" }), path).toEqual([]);
      const facts = ({ status, headers }: ProgramResponse) => [
        status,
        headers["content-type"],
        headers["content-length"],
      ];
      expect(facts(asked as ProgramResponse), path).toEqual(facts(got as ProgramResponse));
    }
  });
});
