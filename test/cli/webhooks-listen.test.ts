// Events that are posted to a program on this machine. The receiver checks signatures by the API's reference alone.
import { createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Cli } from "../../src/cli/cli.ts";
import { followEvents } from "../../src/cli/event-stream.ts";
import { CliFault } from "../../src/cli/fault.ts";
import { ManualClock } from "../support/clock.ts";
import { fakeDaemon, page, scratch, svc, type Reply, type World } from "./world.ts";

const deliveries = [{ webhook_id: "whk_1", status: "pending", attempts: 0 }];
const bodyOf = (id: string, more: object = {}): string =>
  JSON.stringify({
    event: "message.bounced",
    event_id: id,
    occurred_at: "2026-11-27T09:00:00.000Z",
    data: { to: "ann@x.example", smtp_response: '550 no ","deliveries":[ \u001b[2J', ...more },
  });
/** As the stream has it: the body, and the deliveries behind it. */
const recordOf = (id: string): string =>
  `${bodyOf(id).slice(0, -1)},"deliveries":${JSON.stringify(deliveries)}}`;
const stream = (...ids: string[]): Reply => ({
  text: ids.map((id) => `${recordOf(id)}\n\n`).join(""),
  type: "application/x-ndjson",
});
const end = { json: { data: [], has_more: false, next_cursor: "c_end" } };

interface Received {
  headers: IncomingHttpHeaders;
  body: string;
}

async function receiver(status = 200): Promise<{ url: string; got: Received[] }> {
  const got: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      got.push({ headers: request.headers, body: Buffer.concat(chunks).toString() });
      response.writeHead(status).end(status === 200 ? "" : "not \u001b[2J today");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hooks?x=1`,
    got,
  };
}

/** A daemon whose streams end one after the other; asked once more than there are, what was printed is printed. */
async function streaming(...streams: Reply[]) {
  const clock = new ManualClock();
  const left = [...streams];
  const daemon = await fakeDaemon({
    "GET /v1/events": end,
    "GET /v1/events/tail": () => left.shift() ?? { text: "", cut: true },
  });
  const tails = () => daemon.seen.filter(({ path }) => path.endsWith("tail"));
  return {
    ...daemon,
    clock,
    tails,
    async over() {
      while (tails().length <= streams.length) {
        await clock.advance(0);
        if (clock.pending > 0) await clock.advance(1000);
      }
    },
  };
}

/** A world that is left by Ctrl-C, and the codes that the process would have ended with. */
function interruptible(world: World): { world: World; interrupt: () => void; exits: number[] } {
  const exits: number[] = [];
  let raise: (name: string) => void = () => undefined;
  const whole: World = { ...world, signals: (given) => (raise = given), exit: (code) => exits.push(code) };
  return { world: whole, interrupt: () => raise("SIGINT"), exits };
}

const listen = (url: string, ...flags: string[]): string[] => [
  "webhooks",
  "listen",
  "--forward-to",
  url,
  ...flags,
];

test("each event is posted as webhooks get it, signed with a secret that stderr shows once", async () => {
  const target = await receiver();
  const daemon = await streaming(stream("evt_1", "evt_2"));
  const { clock } = daemon;
  const { world, interrupt, exits } = interruptible(daemon);
  const running = svc(listen(target.url, "--events", "message.bounced"), world);
  await daemon.over();
  interrupt();
  const ran = await running;
  expect(exits).toEqual([130]);
  expect(daemon.tails()[0]?.query).toEqual({ after: "c_end", event: "message.bounced" });
  expect(target.got.map(({ body }) => body)).toEqual([bodyOf("evt_1"), bodyOf("evt_2")]);

  const secret = /^([A-Za-z0-9_-]{64})$/m.exec(ran.err)?.[1] ?? "";
  expect(ran.err.split(secret)).toHaveLength(2);
  for (const { headers, body } of target.got) {
    const timestamp = String(headers["x-svc-timestamp"]);
    expect(clock.now() - Number(timestamp) * 1000).toBeLessThan(60_000);
    const digest = createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex");
    expect(headers["x-svc-signature"]).toBe(`sha256=${digest}`);
    expect(headers).toMatchObject({ "content-type": "application/json", "x-svc-delivery-attempt": "1" });
  }
  expect(target.got[1]?.headers["x-svc-event-id"]).toBe("evt_2");
  expect(ran.out).toMatch(/^2026-11-27 09:00:00Z {2}message\.bounced {2}evt_1 {2}200 in \d+ ms\n/);
  expect(ran.err.trimEnd().split("\n").at(-1)).toBe(
    `To continue: svc webhooks listen --forward-to ${target.url} --after evt_2`,
  );
});

test("after a lost connection the events go on behind the last one", async () => {
  const target = await receiver();
  const daemon = await streaming({ ...stream("evt_1"), cut: true }, stream("evt_2"));
  const { world, interrupt } = interruptible(daemon);
  const running = svc(listen(target.url), world);
  await daemon.over();
  interrupt();
  const ran = await running;
  expect(daemon.tails().map(({ query }) => query["after"])).toEqual(["c_end", "evt_1", "evt_2"]);
  expect(target.got.map(({ body }) => body)).toEqual([bodyOf("evt_1"), bodyOf("evt_2")]);
  expect(ran.err).toContain("trying again in 1 s");
});

test("an answer that is not 2xx and a program that does not run are shown, and the events go on", async () => {
  const refusing = await receiver(500);
  const file = join(scratch(), "secret");
  writeFileSync(file, "my own secret\n");
  const run = async (url: string, ...flags: string[]) => {
    const daemon = await streaming(stream("evt_1", "evt_2"));
    const { world, interrupt } = interruptible(daemon);
    const running = svc([...listen(url, "--secret-file", file, "--format", "both"), ...flags], world);
    await daemon.over();
    interrupt();
    return running;
  };
  const refused = await run(refusing.url);
  expect(refused.err).not.toContain("my own secret");
  expect(refused.out).toMatch(/evt_1 {2}500 in \d+ ms: not \\x1b\[2J today\n.*evt_2 {2}500/);
  const gone = await run("http://127.0.0.1:1/", "--json");
  const rows = gone.out
    .trimEnd()
    .split("\n")
    .map((line): unknown => JSON.parse(line));
  expect(rows).toMatchObject([
    { event_id: "evt_1", event: "message.bounced", delivered: false, status: null },
    { event_id: "evt_2", error: expect.stringContaining("ECONNREFUSED") },
  ]);
  const { headers, body } = refusing.got[1] ?? { headers: {}, body: "" };
  const signed = `evt_2.${String(headers["webhook-timestamp"])}.${body}`;
  const digest = createHmac("sha256", "my own secret").update(signed).digest("base64");
  expect(headers["webhook-signature"]).toBe(`v1,${digest}`);
});

test("a program that never ends its answer is given ten seconds, and the events go on", async () => {
  const got: string[] = [];
  const server = createServer((request, response) => {
    got.push(String(request.headers["x-svc-event-id"]));
    response.writeHead(200).write("and so on");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const daemon = await streaming(stream("evt_1", "evt_2"));
  const { world, interrupt } = interruptible(daemon);
  const { port } = server.address() as AddressInfo;
  const running = svc(listen(`http://127.0.0.1:${port}/`), world);
  await daemon.over();
  interrupt();
  expect(got).toEqual(["evt_1", "evt_2"]);
  expect((await running).out).toMatch(
    /evt_1 {2}no answer: no answer within 10 seconds\n.*evt_2 {2}no answer/,
  );
});

test("nothing is forwarded to what is no address, for an unknown format, or without a daemon", async () => {
  const { socket, seen } = await fakeDaemon({ "GET /v1/events": page([]) });
  for (const url of ["localhost:3000", "ftp://x.example", "http://user:word@x.example/", "nonsense"]) {
    const ran = await svc(listen(url), { socket });
    expect(ran).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toContain("http://localhost:3000/hooks");
  }
  expect(await svc(listen("http://x.example", "--format", "none"), { socket })).toMatchObject({ code: 2 });
  expect(seen).toEqual([]);
  const unknown = await svc(listen("http://x.example", "--after", "evt_1"), { socket });
  expect(unknown).toMatchObject({ code: 3, out: "" });
  expect(await svc(listen("http://x.example"), { socket: join(scratch(), "none") })).toMatchObject({
    code: 6,
  });
});

/** From elsewhere: the API is asked with a key, page by page. */
function remote(pages: (query: Record<string, unknown>) => object): { cli: Cli; clock: ManualClock } {
  const clock = new ManualClock();
  const client = {
    async call(_method: string, _path: string, { query = {} }: { query?: Record<string, unknown> }) {
      return { json: pages(query) };
    },
  };
  const cli: unknown = { globals: { url: "https://mail.acme.example" }, client, io: { clock } };
  return { cli: cli as Cli, clock };
}

async function first(
  cli: Cli,
  clock: ManualClock,
  count: number,
  options: { after?: string; types?: string[] },
) {
  const lost: string[] = [];
  const events = await followEvents(cli, { ...options, onLost: (why) => lost.push(why) });
  const bodies: string[] = [];
  while (bodies.length < count) {
    let over = false;
    const next = events.next().finally(() => (over = true));
    next.catch(() => undefined); // it is awaited below
    for (;;) {
      await clock.advance(0);
      if (over) break;
      await clock.advance(1000);
    }
    bodies.push((await next).value?.body ?? "");
  }
  return { bodies, lost };
}

test("with an API key the list is asked from its end on, and again from each cursor; a failure is tried again", async () => {
  const asked: unknown[] = [];
  let failed = false;
  const { cli, clock } = remote((query) => {
    if (query["event_id"] !== undefined) return end.json;
    asked.push(query["cursor"]);
    if (query["cursor"] === "c_end")
      return { data: [JSON.parse(recordOf("evt_1"))], has_more: true, next_cursor: "c_1" };
    if (!failed) {
      failed = true;
      throw new CliFault(6, "no answer");
    }
    return { data: [JSON.parse(recordOf("evt_2"))], has_more: false, next_cursor: "c_2" };
  });
  const { bodies, lost } = await first(cli, clock, 2, {});
  expect(bodies).toEqual([bodyOf("evt_1"), bodyOf("evt_2")]);
  expect(asked).toEqual(["c_end", "c_1", "c_1"]);
  expect(lost).toEqual(["no answer"]);
});

test("with an API key, --after leaves out all up to its event, whatever the types", async () => {
  const { cli, clock } = remote(({ event_id: id, cursor }) => {
    const rows = ["evt_1", "evt_2", "evt_3"].map((one): unknown => JSON.parse(recordOf(one)));
    if (id !== undefined) return { data: [rows[1]], has_more: false, next_cursor: "c" };
    return cursor === undefined
      ? { data: rows, has_more: false, next_cursor: "c_3" }
      : { data: [JSON.parse(recordOf("evt_4"))], has_more: false, next_cursor: "c_4" };
  });
  const { bodies } = await first(cli, clock, 2, { after: "evt_2", types: ["message.bounced"] });
  expect(bodies).toEqual([bodyOf("evt_3"), bodyOf("evt_4")]);
});

test("what is no trouble of the connection ends the stream", async () => {
  const { cli, clock } = remote(({ event_id: id }) => {
    if (id !== undefined) return end.json;
    throw new CliFault(4, "the key was revoked");
  });
  await expect(first(cli, clock, 1, {})).rejects.toThrow("the key was revoked");
});
