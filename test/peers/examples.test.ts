// The programs of examples/ as a customer runs them, in every language: against a scripted server that refuses first,
// against the built product, and their webhook receivers against what the product and a forger post.
import { createHmac } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, freePort, startAppliance, type Appliance } from "../support/appliance.ts";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";
import {
  launch,
  missingTools,
  postTo,
  startCgi,
  startScripted,
  startTlsFront,
  type Env,
  type TlsFront,
} from "../support/examples.ts";
import { publish } from "../support/publish.ts";
import { removeFolder } from "../support/folders.ts";

const examples = join(import.meta.dirname, "../../examples");
const languages = ["curl", "node", "python", "php", "ruby", "go"] as const;
type Language = (typeof languages)[number];
type Program = "send" | "events" | "webhook";
const missing = missingTools(["curl", "jq", "openssl", "python3", "php", "ruby", "go"]);
if (missing) console.warn(`SKIPPED: tests of the examples: ${missing}`);

/** Where the Go programs are built. */
const built = mkdtempSync(join(tmpdir(), "svc-examples-"));

function commandOf(language: Language, program: Program): string[] {
  const file = (extension: string): string => join(examples, language, `${program}.${extension}`);
  return {
    curl: ["sh", file("sh")],
    node: [process.execPath, file("mjs")],
    python: ["python3", file("py")],
    php: ["php", file("php")],
    ruby: ["ruby", file("rb")],
    go: [join(built, program)],
  }[language];
}

async function run(
  language: Language,
  program: Program,
  args: string[],
  env: Env,
): Promise<{ code: number; out: string; err: string }> {
  const ran = launch([...commandOf(language, program), ...args], env);
  return { code: await ran.ended(), out: ran.out(), err: ran.err() };
}

async function buildGo(program: Program): Promise<void> {
  const sources = program === "webhook" ? ["webhook.go"] : [`${program}.go`, "client.go"];
  const env = { GOPROXY: "off", GOCACHE: join(tmpdir(), "svc-go-cache"), GOFLAGS: "-mod=mod" };
  const build = launch(["go", "build", "-o", join(built, program), ...sources], env, join(examples, "go"));
  expect(await build.ended(), build.err()).toBe(0);
}

interface Receiver {
  port: number;
  /** The ids of the events that it handled, in their order. */
  handled(): string[];
  stop(): Promise<void>;
}

async function startReceiver(language: Language, secret: string): Promise<Receiver> {
  const port = await freePort();
  const eventsFile = join(built, `events-${port}`);
  const env = {
    SVC_WEBHOOK_SECRET: secret,
    PORT: String(port),
    SVC_SEEN_DIR: join(built, `seen-${port}`),
    SVC_EVENTS_FILE: eventsFile,
  };
  const idsIn = (text: string): string[] => [...text.matchAll(/evt_[0-9a-z]{26}/g)].map(([id]) => id);
  if (language === "curl") {
    const stop = await startCgi(port, commandOf(language, "webhook"), env);
    return {
      port,
      handled: () => (existsSync(eventsFile) ? idsIn(readFileSync(eventsFile, "utf8")) : []),
      stop,
    };
  }
  const php = ["php", "-S", `127.0.0.1:${port}`, join(examples, "php/webhook.php")];
  const child = launch(language === "php" ? php : commandOf(language, "webhook"), env);
  await eventually(() => listens(port), 20_000, "the receiver's start");
  return {
    port,
    handled: () => idsIn(child.out() + child.err()),
    async stop() {
      child.process.kill();
      await child.ended();
    },
  };
}

function listens(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(port, "127.0.0.1");
  socket.on("connect", () => resolve(true)).on("error", () => resolve(false));
  return promise.finally(() => socket.destroy());
}

const uuid4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe.skipIf(missing !== null)("examples", () => {
  let dns: DnsServer;
  let svc: Appliance;
  let front: TlsFront;
  let env: Env;

  beforeAll(async () => {
    for (const program of ["send", "events", "webhook"] as const) await buildGo(program);
    front = await startTlsFront();
    dns = await startDnsServer();
    svc = await startAppliance({
      config: {
        dns: { servers: [dns.server] },
        webhooks: { allow_networks: ["127.0.0.0/8"], ca_file: front.caFile },
      },
    });
    await publish(svc, dns, "ok.test");
    const { json } = await svc.admin("POST", "/v1/keys", { name: "examples", scope: "admin", test: true });
    env = {
      SVC_BASE_URL: `https://127.0.0.1:${svc.httpPort}`,
      SVC_API_KEY: json.key,
      SVC_CA_FILE: join(svc.dataDir, "tls/cert.pem"),
    };
  }, 240_000);
  afterAll(async () => {
    await svc?.stop();
    await dns?.stop();
    await front?.stop();
    removeFolder(built);
  });

  const sent = ["shop@ok.test", "ann@one.test"];

  describe.each(languages)("%s", (language) => {
    test.concurrent(
      "a message is sent again as the answers ask, every time with the same key and body",
      async () => {
        const server = await startScripted([
          { status: 429, retryAfter: 1 },
          { status: 503, retryAfter: 1 },
          { status: 500 },
          { status: 502 },
          { status: 504 },
          { status: 202, body: { id: "msg_1" } },
        ]);
        const ran = await run(language, "send", sent, { ...server.env, SVC_RETRY_BASE_MS: "40" });
        await server.stop();
        expect(ran, ran.err).toMatchObject({ code: 0, out: "msg_1\n" });
        expect(server.tries.map(({ method, path }) => `${method} ${path}`)).toEqual(
          Array<string>(6).fill("POST /v1/messages"),
        );
        const keys = new Set(server.tries.map(({ headers }) => headers["idempotency-key"]));
        expect([...keys]).toEqual([expect.stringMatching(uuid4)]);
        expect(new Set(server.tries.map(({ body }) => body)).size).toBe(1);
        expect(JSON.parse(server.tries[0]?.body ?? "")).toMatchObject({ from: sent[0], to: [sent[1]] });
        expect(server.tries[0]?.headers["content-type"]).toBe("application/json");
        const waits = server.tries.slice(1).map(({ at }, i) => at - (server.tries[i]?.at ?? 0));
        // What was asked for, then 40 ms × 2², 2³, 2⁴ at least: the two before count.
        const least = [1000, 1000, 160, 320, 640];
        for (const [i, wait] of waits.entries()) expect(wait).toBeGreaterThanOrEqual((least[i] ?? 0) - 5);
      },
    );

    test.concurrent(
      "a connection that drops before the answer is tried again with the same key",
      async () => {
        const server = await startScripted(["drop", "drop", { status: 202, body: { id: "msg_2" } }]);
        const ran = await run(language, "send", sent, { ...server.env, SVC_RETRY_BASE_MS: "10" });
        await server.stop();
        expect(ran, ran.err).toMatchObject({ code: 0, out: "msg_2\n" });
        expect(server.tries).toHaveLength(3);
        expect(new Set(server.tries.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
      },
    );

    test.concurrent.each([400, 401, 403, 404, 409, 413, 415, 422])(
      "%i is not tried again, and what is wrong is shown",
      async (status) => {
        const problem = {
          status,
          code: "some_code",
          detail: "Some detail.",
          request_id: "req_1",
          errors: [{ field: "to[0]", issue: "is no address" }],
        };
        const server = await startScripted([{ status, body: problem }]);
        const ran = await run(language, "send", sent, { ...server.env, SVC_RETRY_BASE_MS: "1" });
        await server.stop();
        expect(server.tries).toHaveLength(1);
        expect(ran).toMatchObject({ code: 1, out: "" });
        for (const part of ["some_code", "Some detail.", "req_1", "to[0]: is no address"])
          expect(ran.err).toContain(part);
      },
    );

    test.concurrent("after five retries the refusal is shown", async () => {
      const failure = { status: 500, body: { code: "internal_error", detail: "x", request_id: "req_2" } };
      const server = await startScripted(Array<typeof failure>(9).fill(failure));
      const ran = await run(language, "send", sent, { ...server.env, SVC_RETRY_BASE_MS: "1" });
      await server.stop();
      expect(server.tries).toHaveLength(6);
      expect(ran.code).toBe(1);
      expect(ran.err).toContain("internal_error");
    });

    test.concurrent("a certificate that nobody vouches for is refused", async () => {
      const server = await startScripted([{ status: 202, body: { id: "msg_3" } }]);
      const { SVC_CA_FILE: _, ...strict } = server.env;
      const ran = await run(language, "send", sent, { ...strict, SVC_RETRY_BASE_MS: "1" });
      await server.stop();
      expect(server.tries).toHaveLength(0);
      expect(ran.code).not.toBe(0);
    });

    test.concurrent("every page of events is printed once, through a 503 and a 500", async () => {
      const event = (n: number) => ({ event: "message.delivered", event_id: `evt_${n}`, data: { to: "ä" } });
      const server = await startScripted([
        { status: 200, body: { data: [event(1), event(2)], has_more: true, next_cursor: "a+/=" } },
        { status: 503, retryAfter: 1 },
        { status: 500 },
        { status: 200, body: { data: [event(3)], has_more: false, next_cursor: "b" } },
      ]);
      const ran = await run(language, "events", ["z&1"], { ...server.env, SVC_RETRY_BASE_MS: "10" });
      await server.stop();
      expect(ran.code, ran.err).toBe(0);
      expect(
        ran.out
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line) as unknown),
      ).toEqual([1, 2, 3].map(event));
      const cursors = server.tries.map(({ path }) => new URL(path, "http://x").searchParams.get("cursor"));
      expect(cursors).toEqual(["z&1", "a+/=", "a+/=", "a+/="]);
      expect(ran.err.trimEnd().split("\n").at(-1)).toBe("b");
      expect(server.tries.every(({ headers }) => headers["idempotency-key"] === undefined)).toBe(true);
    });

    test("a message is sent to the product, its event printed, and what comes later is followed", async () => {
      const first = await run(language, "send", sent, env);
      expect(first, first.err).toMatchObject({ code: 0, out: expect.stringMatching(/^msg_[0-9a-z]{26}\n$/) });
      const seen = await eventually(async () => {
        const listed = await run(language, "events", [], env);
        expect(listed.code, listed.err).toBe(0);
        return listed.out.includes(first.out.trim()) && listed;
      });
      const cursor = seen.err.trim();
      const follower = launch([...commandOf(language, "events"), "--follow", cursor], env);
      const second = await run(language, "send", sent, env);
      await eventually(
        () => Promise.resolve(follower.out().includes(second.out.trim())),
        30_000,
        follower.err(),
      );
      follower.process.kill();
      await follower.ended();
      expect(follower.out()).not.toContain(first.out.trim());
    });

    test("a refusal of the product is shown with each of its problems", async () => {
      const ran = await run(language, "send", ["shop@elsewhere.test", "nobody"], env);
      expect(ran).toMatchObject({ code: 1, out: "" });
      expect(ran.err).toMatch(/422 sender_not_verified: .*\(req_/);
      expect(ran.err).toContain("from: ");
      expect(ran.err).toContain("to[0]: ");
    });
  });

  describe.each(languages)("webhooks in %s", (language) => {
    const secret = "A".repeat(63) + "b";
    const old = "o".repeat(64);
    let receiver: Receiver;
    beforeAll(async () => void (receiver = await startReceiver(language, secret)));
    afterAll(() => receiver?.stop());

    let made = 0;
    const newEvent = () => {
      const id = `evt_${String(++made).padStart(26, "0")}`;
      return {
        id,
        body: Buffer.from(`{ "event":"message.delivered","event_id":"${id}","data":{"to":"ä@x.test"}}`),
      };
    };
    const sign = (key: string, timestamp: number, body: Buffer): string =>
      `sha256=${createHmac("sha256", key).update(`${timestamp}.`).update(body).digest("hex")}`;
    const now = (): number => Math.floor(Date.now() / 1000);
    const post = (body: Buffer, headers: Record<string, string>, method = "POST") =>
      postTo(receiver.port, body, headers, method);

    test("a signed event is taken with 202, and once however often it comes", async () => {
      const { id, body } = newEvent();
      for (let attempt = 1; attempt <= 3; attempt++) {
        const at = now();
        const headers = { "x-svc-timestamp": String(at), "x-svc-signature": sign(secret, at, body) };
        expect(
          await post(body, { ...headers, "x-svc-event-id": id, "x-svc-delivery-attempt": String(attempt) }),
        ).toBe(202);
      }
      await eventually(() => Promise.resolve(receiver.handled().includes(id)));
      const other = newEvent();
      const at = now();
      // The header is not signed: a copy under another name is the same event.
      const copy = {
        "x-svc-timestamp": String(at),
        "x-svc-signature": sign(secret, at, body),
        "x-svc-event-id": other.id,
      };
      expect(await post(body, copy)).toBe(202);
      expect(
        await post(other.body, {
          "x-svc-timestamp": String(at),
          "x-svc-signature": sign(secret, at, other.body),
        }),
      ).toBe(202);
      await eventually(() => Promise.resolve(receiver.handled().includes(other.id)));
      expect(receiver.handled()).toEqual([id, other.id]);
    });

    test("while a secret is rotated, the old one's signature beside the new one's is enough", async () => {
      const { id, body } = newEvent();
      const at = now();
      const headers = {
        "x-svc-timestamp": String(at),
        "x-svc-signature": sign(old, at, body),
        "x-svc-signature-previous": sign(secret, at, body),
      };
      expect(await post(body, headers)).toBe(202);
      await eventually(() => Promise.resolve(receiver.handled().includes(id)));
    });

    test.each<[string, (body: Buffer) => [Buffer, Record<string, string>, string?]]>([
      ["a changed body", (body) => [Buffer.concat([body, Buffer.from(" ")]), signed(secret, now(), body)]],
      [
        "a changed timestamp",
        (body) => [body, { ...signed(secret, now(), body), "x-svc-timestamp": String(now() - 7) }],
      ],
      ["another secret", (body) => [body, signed(old, now(), body)]],
      ["a timestamp of six minutes ago", (body) => [body, signed(secret, now() - 360, body)]],
      ["a timestamp six minutes ahead", (body) => [body, signed(secret, now() + 360, body)]],
      ["no signature", (body) => [body, { "x-svc-timestamp": String(now()) }]],
      ["no timestamp", (body) => [body, { "x-svc-signature": sign(secret, now(), body) }]],
      ["an empty signature", (body) => [body, { ...signed(secret, now(), body), "x-svc-signature": "" }]],
      [
        "a signature without its prefix",
        (body) => [
          body,
          { ...signed(secret, now(), body), "x-svc-signature": sign(secret, now(), body).slice(7) },
        ],
      ],
      [
        "a timestamp that is no number",
        (body) => [body, { "x-svc-timestamp": "1e9", "x-svc-signature": "sha256=00" }],
      ],
      ["a GET", (body) => [body, signed(secret, now(), body), "GET"]],
    ])("%s is refused and not handled", async (_name, forge) => {
      const { id, body } = newEvent();
      const [bytes, headers, method] = forge(body);
      const status = await post(bytes, headers, method);
      expect(status).toBeGreaterThanOrEqual(400);
      expect(status).toBeLessThanOrEqual(501);
      expect(receiver.handled()).not.toContain(id);
    });

    test("what the product posts is taken, through a rotation of its secret too", async () => {
      const created = await svc.admin("POST", "/v1/webhooks", { url: front.url });
      const path = `/v1/webhooks/${created.json.id}`;
      const delivered = async (secretNow: string): Promise<unknown> => {
        const own = await startReceiver(language, secretNow);
        front.target(own.port);
        const { json } = await svc.admin("POST", `${path}/test`);
        await own.stop();
        return json;
      };
      const taken = expect.objectContaining({ delivered: true, status: 202 }) as unknown;
      expect(await delivered(created.json.secret)).toEqual(taken);
      const rotated = await svc.admin("POST", `${path}/rotate_secret`, { overlap_seconds: 600 });
      expect(await delivered(created.json.secret)).toEqual(taken);
      expect(await delivered(rotated.json.secret)).toEqual(taken);
      expect(await delivered(old)).toMatchObject({ delivered: false, status: 401 });
      await svc.admin("DELETE", path);
    });

    const signed = (key: string, at: number, body: Buffer) => ({
      "x-svc-timestamp": String(at),
      "x-svc-signature": sign(key, at, body),
    });
  });
});
