import { once } from "node:events";
import { mkdtempSync, statSync, writeFileSync } from "node:fs";
import { request as httpsRequest } from "node:https";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as tlsConnect } from "node:tls";
import { afterEach, expect, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { silentLog } from "../../src/log.ts";
import { keepSelfSigned } from "../../src/tls/self-signed.ts";
import { settle } from "../support/clock.ts";
import { largeClientHello, octetByOctet, openHandshakes, renegotiations } from "../support/hostile-tls.ts";
import { list, send, startHttp, text, type Harness } from "./harness.ts";

let http: Harness | null = null;
afterEach(async () => {
  await http?.stop();
  http = null;
});

const emptyPage = () => Promise.resolve({ rows: [], next: null, hasMore: false });
const store = { listMessages: emptyPage };

/** Writes bytes to a port and reads until the other side ends. */
function exchange(port: number, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (chunk) => (text += chunk.toString("latin1")));
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(text));
  });
}

async function newCertificate(): Promise<{ key: string; cert: string }> {
  const dataDir = mkdtempSync(join(tmpdir(), "svc-tls-"));
  const { key, cert } = await keepSelfSigned({
    dataDir,
    hostname: "localhost",
    altNames: [],
    clock: systemClock,
    log: silentLog,
  });
  return { key, cert };
}

async function withTls() {
  const listeners: (() => void)[] = [];
  let current = await newCertificate();
  const certificates = {
    current: () => current,
    covers: () => true,
    onChange(listener: () => void) {
      listeners.push(listener);
      return () => undefined;
    },
    reload: () => Promise.resolve(null),
  };
  http = await startHttp({ store, certificates });
  const change = (next: typeof current): void => {
    current = next;
    for (const listener of listeners) listener();
  };
  return { http, change };
}

function handshake(
  port: number,
  options: object,
): Promise<{ protocol: string | null; alpn: string | false | null; fingerprint: string } | string> {
  return new Promise((resolve) => {
    const socket = tlsConnect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...options }, () => {
      resolve({
        protocol: socket.getProtocol(),
        alpn: socket.alpnProtocol,
        fingerprint: socket.getPeerCertificate().fingerprint256,
      });
      socket.destroy();
    });
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}

test("TLS 1.2 and 1.3 are spoken, 1.1 is refused, and HTTP/2 is not offered", async () => {
  const { port } = (await withTls()).http;
  expect(await handshake(port, { maxVersion: "TLSv1.2" })).toMatchObject({ protocol: "TLSv1.2" });
  expect(await handshake(port, { ALPNProtocols: ["h2", "http/1.1"] })).toMatchObject({
    protocol: "TLSv1.3",
    alpn: "http/1.1",
  });
  expect(
    await handshake(port, { minVersion: "TLSv1.1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" }),
  ).toMatch(/PROTOCOL_VERSION|ECONNRESET/);
});

test("plain HTTP on the TLS port is closed without an answer", async () => {
  const { port } = (await withTls()).http;
  expect(await exchange(port, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")).toBe("");
});

test("a new certificate is shown without a restart", async () => {
  const { http: running, change } = await withTls();
  const before = await handshake(running.port, {});
  change(await newCertificate());
  expect(await handshake(running.port, {})).not.toEqual(before);
});

test("requests over TLS are answered", async () => {
  const { http: running } = await withTls();
  const status = await new Promise((resolve) => {
    httpsRequest(
      { port: running.port, host: "127.0.0.1", path: "/healthz", rejectUnauthorized: false, agent: false },
      (res) => {
        res.resume();
        resolve(res.statusCode);
      },
    ).end();
  });
  expect(status).toBe(200);
});

test.each([
  ["what is no HTTP", "EHLO x\r\n\r\n", "400"],
  [
    "both Content-Length and Transfer-Encoding",
    "POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "400",
  ],
  [
    "two Content-Lengths",
    "POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
    "400",
  ],
  ["a folded header", "GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: b\r\n c\r\n\r\n", "400"],
  ["a bare LF in a header", "GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: b\nX-C: d\r\n\r\n", "400"],
  ["a header of 20 KB", `GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: ${"b".repeat(20_000)}\r\n\r\n`, "431"],
])(
  "%s is refused in the form of every other answer, and the connection ends",
  async (_name, bytes, status) => {
    http = await startHttp({ store });
    const answer = await exchange(http.port, bytes);
    expect(answer.slice(0, 13)).toBe(`HTTP/1.1 ${status} `);
    expect(answer.toLowerCase()).toMatch(
      /x-request-id: req_[\s\S]*x-ratelimit-bucket: unauthenticated[\s\S]*"code":"invalid_request"/,
    );
    expect(answer.match(/HTTP\/1\.1 \d{3}/g)).toHaveLength(1);
  },
);

test("a request without Host is 400", async () => {
  http = await startHttp({ store });
  expect(await exchange(http.port, "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")).toMatch(
    /^HTTP\/1\.1 400 [\s\S]*x-request-id/,
  );
});

test("a body is asked for only once its request may come in", async () => {
  http = await startHttp({ store });
  const { value } = await http.key("send");
  const head = (length: number, key: string) =>
    `POST /v1/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n`;
  expect(await exchange(http.port, head(40_000_000, value))).toMatch(/^HTTP\/1\.1 413 /);
  expect(await exchange(http.port, head(2, "none"))).toMatch(/^HTTP\/1\.1 401 /);
  expect(await exchange(http.port, `${head(1, value)}{`)).toMatch(
    /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 400 /,
  );
});

test("HEAD has the headers of GET and no body", async () => {
  http = await startHttp({ store });
  const [head, get] = [
    await http.ask({ path: "/v1/messages", method: "HEAD" }),
    await http.ask({ path: "/v1/messages" }),
  ];
  expect([head.status, head.text, head.headers["content-length"]]).toEqual([
    200,
    "",
    get.headers["content-length"],
  ]);
  expect(get.headers["content-length"]).toBe(String(get.text.length));
});

test("on stop what is in flight is answered, idle connections end and new ones are refused", async () => {
  let answer = (): void => undefined;
  const running = await startHttp({
    store: {
      listMessages: () =>
        new Promise((resolve) => (answer = () => resolve({ rows: [], next: null, hasMore: false }))),
    },
  });
  const idle = exchange(running.port, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); // stays open: keep-alive
  const asked = running.ask({ path: "/v1/messages" });
  for (let i = 0; i < 10; i++) await settle();
  const stopped = running.stop();
  expect(await idle).toMatch(/^HTTP\/1\.1 200 /);
  await expect(running.ask({ path: "/healthz" })).rejects.toThrow(/ECONNREFUSED/);
  answer();
  expect(await asked).toMatchObject({ status: 200, headers: { connection: "close" } });
  await stopped;
});

test("readiness follows the program's own word, liveness does not", async () => {
  let ready = true;
  http = await startHttp({ status: () => Promise.resolve({ ready }) });
  expect((await http.ask({ path: "/readyz", key: null })).status).toBe(200);
  ready = false;
  expect(await http.ask({ path: "/readyz", key: null })).toMatchObject({
    status: 503,
    headers: { "retry-after": "5" },
  });
  expect((await http.ask({ path: "/healthz", key: null })).status).toBe(200);
});

test("the operator's socket has mode 0660, needs no key and is gone after a stop", async () => {
  const running = await startHttp({ store, status: () => Promise.resolve({ ready: true, version: "1" }) });
  expect(statSync(running.socket).mode & 0o777).toBe(0o660);
  expect(running.http.addresses().map(({ name }) => name)).toEqual(["http", "admin"]);
  const { status, json, headers } = await running.ask({ path: "/v1/status", admin: true });
  expect([status, json["version"]]).toEqual([200, "1"]);
  expect(headers["x-ratelimit-limit"]).toBeUndefined();
  await running.stop();
  expect(() => statSync(running.socket)).toThrow(/ENOENT/);
});

test("the operator names an account, and an unknown one is 404", async () => {
  http = await startHttp({ store });
  const asked = (name: string) =>
    http?.ask({ path: "/v1/messages", admin: true, headers: { "x-svc-account": name } });
  expect((await asked("default"))?.status).toBe(200);
  expect((await asked("shop"))?.status).toBe(404);
});

test("a connection that ends before its TLS handshake gets no HTTP answer", async () => {
  const { http: opened } = await withTls();
  const socket = connect(opened.port, "127.0.0.1");
  let heard = "";
  socket.on("data", (bytes) => (heard += bytes.toString("latin1"))).on("error", () => undefined);
  socket.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
  await new Promise((resolve) => socket.once("close", resolve));
  expect(heard).not.toContain("HTTP/1.1");
});

test("two hundred clients that never finish their TLS handshake are gone within 30 s, and another is answered meanwhile", async () => {
  const { http: opened } = await withTls();
  const { closed, trickle } = await openHandshakes(opened.port, 200);
  expect(await handshake(opened.port, { localAddress: "127.0.0.2" })).toMatchObject({ protocol: "TLSv1.3" });
  await opened.clock.advance(10_000);
  trickle();
  await settle();
  await opened.clock.advance(20_000);
  await closed;
});

test("a connection outlives the time that its TLS handshake had", async () => {
  const { http: opened } = await withTls();
  const socket = tlsConnect({ port: opened.port, host: "127.0.0.1", rejectUnauthorized: false });
  await once(socket, "secureConnect");
  await settle();
  await opened.clock.advance(30_000);
  let heard = "";
  socket.on("data", (chunk: Buffer) => (heard += chunk.toString()));
  socket.write("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  await once(socket, "close");
  expect(heard).toMatch(/^HTTP\/1\.1 200 /);
});

test("a socket file that a dead process left is replaced, a living one's is not", async () => {
  const first = await startHttp({ store });
  const folder = mkdtempSync(join(tmpdir(), "svc-stale-"));
  const { listenOnSocket } = await import("../../src/http/admin-socket.ts");
  const { H3 } = await import("h3");
  const deps = {
    app: new H3(),
    certificates: null,
    connections: null,
    tracking: null,
    names: null,
    clock: first.clock,
    malformed: () => "",
  };
  await expect(listenOnSocket(first.socket, deps)).rejects.toThrow(/another process listens/);
  const stale = join(folder, "a.sock");
  writeFileSync(stale, "");
  const listener = await listenOnSocket(stale, deps);
  expect(statSync(stale).isSocket()).toBe(true);
  await listener.stop();
  await first.stop();
});

test("a port that is taken ends the start with the system's error and leaves nothing behind", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => taken.once("listening", resolve));
  const { port } = taken.address() as { port: number };
  const start = startHttp({
    config: {
      http: {
        listen: [
          { host: "127.0.0.1", port: 0 },
          { host: "127.0.0.1", port },
        ],
        trustedProxies: [],
      },
    },
  });
  await expect(start).rejects.toThrow(/EADDRINUSE/);
  taken.close();
});

test("keys are made, listed, rotated, disabled and revoked on the socket, and hold at once", async () => {
  http = await startHttp({ store });
  const admin = (method: string, path: string, body?: unknown) =>
    http?.ask({ method, path, admin: true, ...(body === undefined ? {} : { body }) });
  const made = await admin("POST", "/v1/keys", { name: "shop", scope: "send", allow_ips: ["127.0.0.0/8"] });
  expect(made?.status).toBe(201);
  const [id, key] = [text(made?.json["id"]), text(made?.json["key"])];
  expect(made?.json).toMatchObject({
    name: "shop",
    scope: "send",
    test: false,
    status: "active",
    hint: key.slice(-4),
    allow_ips: ["127.0.0.0/8"],
  });
  const use = async (value: string) => (await http?.ask({ path: "/v1/messages", key: value }))?.status;
  expect(await use(key)).toBe(200);

  const rotated = (await admin("POST", `/v1/keys/${id}/rotate`))?.json;
  expect([await use(key), await use(text(rotated?.["key"]))]).toEqual([200, 200]);
  expect((await admin("POST", `/v1/keys/${id}/disable`))?.json).toMatchObject({ status: "disabled" });
  expect(await use(key)).toBe(403);
  expect((await admin("POST", `/v1/keys/${id}/enable`))?.status).toBe(200);
  expect(await use(key)).toBe(200);
  expect((await admin("POST", `/v1/keys/${id}/revoke`))?.json).toMatchObject({ status: "revoked" });
  expect(await use(key)).toBe(401);
  expect((await admin("POST", `/v1/keys/${id}/enable`))?.json).toMatchObject({
    status: 409,
    code: "conflict",
  });
  expect((await admin("POST", `/v1/keys/${id}/revoke`))?.status).toBe(200);
  expect((await admin("POST", "/v1/keys/key_none/revoke"))?.status).toBe(404);

  const listed = await admin("GET", "/v1/keys?limit=2");
  expect(list(listed?.json["data"])).toHaveLength(2);
  expect(listed?.text).not.toContain(key);
  const next = text(listed?.json["next_cursor"]);
  const others = await admin("GET", `/v1/keys?cursor=${next}`);
  const ids = [listed, others].flatMap((page) => list(page?.json["data"]).map((row) => row["id"]));
  expect(ids).toEqual(expect.arrayContaining([id, rotated?.["id"]]));
  expect(new Set(ids).size).toBe(ids.length);
});

test.each([
  [{}, ["name", "scope"]],
  [{ name: " ", scope: "root" }, ["name", "scope"]],
  [{ name: "a", scope: "send", allow_ips: ["10.0.0.0/33", "nowhere"] }, ["allow_ips[0]", "allow_ips[1]"]],
  [{ name: "a", scope: "send", expires_at: "tomorrow", extra: 1 }, ["expires_at", "extra"]],
])("a key of %j is refused with every problem", async (body, fields) => {
  http = await startHttp({});
  const { status, json } = await http.ask({ method: "POST", path: "/v1/keys", admin: true, body });
  expect([status, list(json["errors"]).map((row) => row["field"])]).toEqual([422, fields]);
});

test("an operator's act is in the log with his name", async () => {
  http = await startHttp({});
  const headers = { "x-svc-operator": "ann\u00e9" };
  await send(
    { method: "POST", path: "/v1/keys", admin: true, body: { name: "a", scope: "send" }, headers },
    { key: null, port: 0, socket: http.socket },
  );
  expect(http.logged.at(-1)?.fields).toMatchObject({
    audit: "operator",
    operator: "ann",
    method: "POST",
    path: "/v1/keys",
    status: 201,
  });
});

test("a client that renegotiates again and again, or whose ClientHello is of 16 MB, is cut off", async () => {
  const { port } = (await withTls()).http;
  expect(await renegotiations(port)).toBeLessThan(5);
  await largeClientHello(port);
  expect(await handshake(port, {})).toMatchObject({ protocol: "TLSv1.3" });
});

test("a request in TLS records of one octet is answered", async () => {
  const { socket, send } = await octetByOctet((await withTls()).http.port);
  let heard = "";
  socket.on("data", (chunk: Buffer) => (heard += chunk.toString()));
  send("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  await once(socket, "close");
  expect(heard).toMatch(/^HTTP\/1\.1 200 /);
});
