// Hostile bytes at the real TLS port of the built product: each gets the documented 4xx in the documented form, or
// the connection ends; nothing hangs, nothing is a 500, and the process is the same at the end.
import { once } from "node:events";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startWorld, type World } from "../support/world.ts";

const megabyte = 1024 * 1024;
const generous = { burst: 100_000, per_second: 100_000 };
let world: World;
let pid: number | undefined;

beforeAll(async () => {
  world = await startWorld({
    domains: { "one.test": "127.0.0.33" },
    config: {
      limits: {
        rates: {
          "messages-write": generous,
          "webhooks-write": generous,
          "suppressions-write": generous,
          default: generous,
        },
      },
    },
  });
  pid = world.svc.process.pid;
});
afterAll(() => world?.stop());

async function dial(): Promise<TLSSocket> {
  const socket = connectTls({ host: "127.0.0.1", port: world.svc.httpPort, rejectUnauthorized: false });
  await once(socket, "secureConnect");
  return socket;
}

/** Everything that comes until the server closes. */
async function allOf(socket: TLSSocket): Promise<string> {
  let answer = "";
  socket.on("error", () => undefined);
  socket.on("data", (chunk: Buffer) => (answer += chunk.toString("latin1")));
  await once(socket, "close");
  return answer;
}

async function exchange(...bytes: (string | Buffer)[]): Promise<string> {
  const socket = await dial();
  const answer = allOf(socket);
  for (const piece of bytes) socket.write(piece);
  return answer;
}

function head(fields: Record<string, string> = {}, path = "/v1/messages"): string {
  const all = {
    host: "x",
    authorization: `Bearer ${world.key}`,
    "content-type": "application/json",
    connection: "close",
    ...fields,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n`;
}
const post = (body: string | Buffer, fields: Record<string, string> = {}) =>
  exchange(head({ "content-length": String(Buffer.byteLength(body)), ...fields }), body);
const mail = (fields: string): string =>
  `{"from":"a@ok.test","to":"r@one.test","subject":"x","text":"x"${fields}}`;

/** One complete problem body (RFC 9457) with the headers that every answer has; answers its code. */
function problemIn(answer: string): { status: number; code: string } {
  expect(answer.match(/HTTP\/1\.1 [2-5]\d\d/g), answer.slice(0, 2000)).toHaveLength(1);
  const [headers = "", body = ""] = answer.split("\r\n\r\n");
  const status = Number(answer.slice(9, 12));
  expect(headers.toLowerCase()).toMatch(/content-type: application\/problem\+json/);
  for (const name of [
    "x-request-id: req_",
    "x-api-version-used: ",
    "x-ratelimit-limit: ",
    "x-ratelimit-bucket: ",
  ])
    expect(headers.toLowerCase()).toContain(name);
  const problem = JSON.parse(body) as Record<string, unknown>;
  expect(problem).toMatchObject({
    type: expect.stringMatching(/^https:.*\/errors\/\w+$/),
    title: expect.any(String),
    status,
    detail: expect.any(String),
    request_id: expect.stringMatching(/^req_/),
  });
  return { status, code: String(problem["code"]) };
}

test.each<[string, () => Promise<string>, number, string]>([
  [
    "Content-Length beside Transfer-Encoding",
    () => exchange(head({ "content-length": "5", "transfer-encoding": "chunked" }), "0\r\n\r\n"),
    400,
    "invalid_request",
  ],
  [
    "two Content-Lengths",
    () => exchange(head({ "content-length": "2", "Content-Length": "3" }), "{}"),
    400,
    "invalid_request",
  ],
  ["a header of 64 KB", () => exchange(head({ "x-a": "b".repeat(65_536) })), 431, "invalid_request"],
  [
    "500 header fields",
    () =>
      exchange(head(Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`x-${i}`, "y".repeat(40)])))),
    431,
    "invalid_request",
  ],
  ["a path of 32 KB", () => exchange(head({}, `/v1/${"a".repeat(32_768)}`)), 431, "invalid_request"],
  [
    "a bad chunk length",
    () => exchange(head({ "transfer-encoding": "chunked" }), "zz\r\n{}\r\n"),
    400,
    "invalid_request",
  ],
  [
    "a chunk longer than it says",
    () => exchange(head({ "transfer-encoding": "chunked" }), "2\r\n{}garbage\r\n0\r\n\r\n"),
    400,
    "invalid_request",
  ],
  [
    "an unknown transfer coding",
    () => exchange(head({ "transfer-encoding": "gzip, chunked" }), "2\r\n{}\r\n0\r\n\r\n"),
    400,
    "invalid_request",
  ],
  ["HTTP/0.9", () => exchange("GET /healthz\r\n\r\n"), 400, "invalid_request"],
  [
    "an announced body of 37 MB",
    () => exchange(head({ "content-length": String(37 * megabyte) })),
    413,
    "message_too_large",
  ],
  [
    "a body of 36 MB",
    () => post(mail(`,"html":"${"x".repeat(36 * megabyte - 100)}"`)),
    413,
    "message_too_large",
  ],
  ["gzip", () => post(gzipSync(mail("")), { "content-encoding": "gzip" }), 415, "unsupported_media_type"],
  [
    "UTF-16",
    () => post(Buffer.from(mail(""), "utf16le"), { "content-type": "application/json; charset=utf-16" }),
    415,
    "unsupported_media_type",
  ],
  [
    "a form",
    () => post("from=a", { "content-type": "application/x-www-form-urlencoded" }),
    415,
    "unsupported_media_type",
  ],
  ["invalid UTF-8", () => post(Buffer.from('{"subject":"\xff"}', "latin1")), 400, "invalid_request"],
  ["no JSON", () => post("{'from':1}"), 400, "invalid_request"],
  ["100,000 open brackets", () => post("[".repeat(100_000)), 422, "validation_failed"],
  [
    "an object nested 100,000 deep",
    () => post(mail(`,"metadata":${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`)),
    422,
    "validation_failed",
  ],
  ["__proto__", () => post(mail(',"__proto__":{"test":true}')), 422, "validation_failed"],
  ["a number of 1e400", () => post(mail(',"send_at":1e400')), 422, "validation_failed"],
  ["a lone surrogate", () => post(mail(',"tags":["\\ud800"]')), 422, "validation_failed"],
  [
    "a line end in a subject",
    () => post('{"from":"a@ok.test","to":"r@one.test","subject":"x\\r\\nBcc: b@c.test","text":"x"}'),
    422,
    "validation_failed",
  ],
])("%s is refused in the documented form", async (_name, ask, status, code) => {
  expect(problemIn(await ask())).toEqual({ status, code });
});

test("a chunked body over the cap is cut off with 413 while it is still being sent", async () => {
  const socket = await dial();
  const answer = allOf(socket);
  const piece = Buffer.concat([Buffer.from("100000\r\n"), Buffer.alloc(megabyte, " "), Buffer.from("\r\n")]);
  const body = Readable.from([head({ "transfer-encoding": "chunked" }), ...Array<Buffer>(60).fill(piece)]);
  body.pipe(socket, { end: false }); // never its last chunk
  expect(problemIn(await answer)).toEqual({ status: 413, code: "message_too_large" });
});

test("an absolute-form target is the same path, on this server only", async () => {
  const ask = (target: string) => exchange(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  expect(await ask("https://elsewhere.test/healthz")).toMatch(/^HTTP\/1\.1 200 /);
  expect(problemIn(await ask("https://elsewhere.test/nothing"))).toMatchObject({ status: 404 });
});

test("plain HTTP on the TLS port is closed without an answer or a redirect", async () => {
  const socket = connect(world.svc.httpPort, "127.0.0.1");
  let answer = "";
  socket.on("error", () => undefined).on("data", (chunk: Buffer) => (answer += chunk.toString("latin1")));
  socket.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  await once(socket, "close");
  expect(answer).not.toContain("HTTP/1");
});

test("whatever the body, no POST or PATCH is a 5xx, and each refusal is complete", async () => {
  const { svc, key } = world;
  const created = await svc.api(key, "POST", "/v1/webhooks", { url: "https://fuzz.test/" });
  const { json: message } = await world.send({
    to: "r@one.test",
    send_at: new Date(Date.now() + 3_600_000).toISOString(),
  });
  const { json: login } = await svc.admin("POST", "/v1/smtp_credentials", { name: "fuzz" });
  const { json: other } = await svc.admin("POST", "/v1/keys", { name: "fuzz", scope: "send" });
  const routes: [string, string, "api" | "admin"][] = [
    ["POST", "/v1/messages", "api"],
    ["POST", `/v1/messages/${message.id}/cancel`, "api"],
    ["POST", "/v1/webhooks", "api"],
    ["PATCH", `/v1/webhooks/${created.json.id}`, "api"],
    ["POST", "/v1/domains", "api"],
    ["POST", "/v1/domains/ok.test/verify", "api"],
    ["POST", "/v1/suppressions", "api"],
    ["POST", "/v1/keys", "admin"],
    ["PATCH", `/v1/keys/${other.id}`, "admin"],
    ["POST", `/v1/keys/${other.id}/rotate`, "admin"],
    ["POST", "/v1/smtp_credentials", "admin"],
    ["POST", `/v1/smtp_credentials/${login.id}/rotate`, "admin"],
  ];
  const word = fc.constantFrom(
    "a@one.test",
    "A <a@one.test>",
    "https://x.test/",
    "send",
    "\ud800",
    "a\r\nb",
    "\0",
    "",
    "2026-13-45T99:00:00Z",
  );
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    word,
    fc.array(word, { maxLength: 60 }),
    fc.string({ unit: "binary", maxLength: 300 }),
    fc.record({ email: word, name: word, filename: word, content: word, reason: word }, { requiredKeys: [] }),
    fc.array(fc.record({ filename: word, content: word, content_type: word, email: word })),
  );
  const field = fc.constantFrom(
    "from",
    "to",
    "cc",
    "bcc",
    "reply_to",
    "subject",
    "html",
    "text",
    "headers",
    "attachments",
    "tags",
    "metadata",
    "send_at",
    "ip_pool",
    "tracking",
    "unsubscribe",
    "auto_text",
    "url",
    "events",
    "active",
    "backlog",
    "description",
    "name",
    "scope",
    "allow_ips",
    "expires_at",
    "emails",
    "suppressions",
    "reason",
    "test",
    "__proto__",
    "constructor",
  );
  const sound = { from: "a@ok.test", to: "r@one.test", subject: "x", text: "x" };
  const body = fc.oneof(
    { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
    { weight: 4, arbitrary: fc.dictionary(field, value, { maxKeys: 4 }) },
    {
      weight: 4,
      arbitrary: fc.dictionary(field, value, { maxKeys: 2 }).map((some) => ({ ...sound, ...some })),
    },
  );
  const seen = new Set<number>();
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...routes), body, async ([method, path, via], content) => {
      const raw = JSON.stringify(content);
      const answer = await (via === "api" ? svc.api(key, method, path, raw) : svc.admin(method, path, raw));
      seen.add(answer.status);
      const told = `${method} ${path} ${raw}: ${answer.status} ${answer.text}`;
      if (answer.status >= 500) throw new Error(told);
      if (answer.status < 400) return;
      const { code, detail, request_id: id, status } = answer.json;
      if (!code || !detail || !String(id).startsWith("req_") || status !== answer.status)
        throw new Error(told);
      if (
        answer.status === 422 &&
        !Array.isArray(answer.json.errors) &&
        typeof content === "object" &&
        content &&
        !Array.isArray(content)
      )
        throw new Error(told);
    }),
    { numRuns: 500 },
  );
  expect([...seen]).toEqual(expect.arrayContaining([202, 422]));
});

test("after all of it the process is the same and serves", async () => {
  expect(world.svc.process.pid).toBe(pid);
  expect(world.svc.process.exitCode).toBeNull();
  expect((await world.send({ to: "r@one.test" })).status).toBe(202);
  expect(world.svc.log()).not.toContain('"code":"internal_error"');
});
