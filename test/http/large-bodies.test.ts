// Large bodies share their memory: each is read when there is room for it, whatever becomes of the others.
import { request, type ClientRequest } from "node:http";
import { afterEach, expect, test } from "vitest";
import { LargeRequest } from "../../src/submission/large-request.ts";
import { settle } from "../support/clock.ts";
import { acceptance, startHttp, type Harness } from "./harness.ts";

let http: Harness | null = null;
afterEach(async () => {
  await http?.stop();
  http = null;
});

const mega = 1024 * 1024;
const made = {
  id: "msg_1",
  token: "t",
  messageId: "<t@x.test>",
  hostname: "x.test",
  protocol: "HTTP",
  now: 0,
};

/** A server whose sends answer only when the test says so. */
async function start() {
  const sends: { size: number; answer(): void }[] = [];
  const running = await startHttp({
    store: {
      idempotent: () => Promise.resolve(null),
      listMessages: () => Promise.resolve({ rows: [], next: null, hasMore: false }),
    },
    submission: {
      async send(_sender, body) {
        const size = body instanceof LargeRequest ? (await body.read(made))?.leastBytes : 0;
        return new Promise((resolve) => {
          sends.push({ size: size ?? 0, answer: () => resolve(acceptance()) });
        });
      },
    },
  });
  http = running;
  const { value } = await running.key("send");
  const open = (headers: Record<string, string>): { req: ClientRequest; status: Promise<number> } => {
    const req = request({
      port: running.port,
      host: "127.0.0.1",
      path: "/v1/messages",
      method: "POST",
      agent: false,
      headers: { authorization: `Bearer ${value}`, "content-type": "application/json", ...headers },
    });
    const status = new Promise<number>((resolve) => {
      req.on("response", (res) => {
        res.resume();
        resolve(res.statusCode ?? 0);
      });
      req.on("error", () => resolve(0));
    });
    return { req, status };
  };
  const until = async (count: number) => {
    while (sends.length < count) await settle();
  };
  return { running, sends, open, until };
}

const text = (bytes: number): string => JSON.stringify({ html: "x".repeat(bytes) });

test("a second of 30 MB of one account waits for the first, and small ones pass by, announced or chunked", async () => {
  const { sends, open, until } = await start();
  const body = text(30 * mega);
  const length = { "content-length": String(body.length) };
  const all = [open(length), open(length)];
  for (const { req } of all) req.end(body);
  await until(1);
  const [small, chunked] = [open({ "content-length": "2" }), open({ "transfer-encoding": "chunked" })];
  small.req.end("{}");
  chunked.req.end("{}");
  await until(3);
  expect(sends.map(({ size }) => size > mega)).toEqual([true, false, false]);
  for (const send of sends) send.answer();
  await until(4);
  sends[3]?.answer();
  expect(await Promise.all([...all, small, chunked].map(({ status }) => status))).toEqual([
    202, 202, 202, 202,
  ]);
});

test("a client that goes while it has room, or waits for it, leaves it to the next", async () => {
  const { sends, open, until } = await start();
  const length = { "content-length": String(36 * mega) };
  const gone = open(length);
  gone.req.write("x".repeat(mega));
  const waiting = open({ "transfer-encoding": "chunked" });
  waiting.req.write("x".repeat(mega));
  for (let i = 0; i < 50; i++) await settle();
  waiting.req.destroy();
  gone.req.destroy();
  const body = text(35 * mega);
  const next = open({ "transfer-encoding": "chunked" });
  next.req.end(body);
  await until(1);
  expect(sends[0]?.size).toBe(35 * mega);
  sends[0]?.answer();
  expect(await next.status).toBe(202);
});

test("a chunked body that never ends is cut at the cap", async () => {
  const { open } = await start();
  const endless = open({ "transfer-encoding": "chunked" });
  const chunk = "x".repeat(mega);
  let answered = false;
  const status = endless.status.then((code) => {
    answered = true;
    return code;
  });
  for (let i = 0; i < 60 && !answered; i++) {
    endless.req.write(chunk);
    await settle();
  }
  expect(await status).toBe(413);
  endless.req.destroy();
});
