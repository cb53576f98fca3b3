// One party's trouble is its own: a receiver that hangs and one that throttles, with thousands of mails waiting for
// them, delay nobody else's mail, and a client that never comes to the end of its header is let go.
import { once } from "node:events";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../support/appliance.ts";
import { createLedger } from "../support/ledger.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
/** What a client is told whose header never ends, and after how long; begun before all tests. */
let slow: Promise<{ answer: string; ms: number }>;

beforeAll(async () => {
  world = await startWorld({
    domains: { "dead.test": "127.0.0.34", "throttled.test": "127.0.0.35", "healthy.test": "127.0.0.36" },
  });
  slow = sendHeaderForever();
});
afterAll(async () => {
  await world?.svc.kill("SIGKILL");
  await world?.stop();
});

async function sendHeaderForever(): Promise<{ answer: string; ms: number }> {
  const begun = performance.now();
  const socket = connectTls({ host: "127.0.0.1", port: world.svc.httpPort, rejectUnauthorized: false });
  let answer = "";
  socket.on("error", () => undefined).on("data", (chunk: Buffer) => (answer += chunk.toString()));
  socket.write("GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: ");
  const drip = setInterval(() => socket.write("a"), 500);
  await once(socket, "close");
  clearInterval(drip);
  return { answer, ms: performance.now() - begun };
}

/** Over the operator's socket, which has no rate limit. */
async function queue(domain: string, count: number, perMessage: number): Promise<void> {
  const to = Array.from({ length: perMessage }, (_, i) => `r${i}@${domain}`);
  const body = { from: "a@ok.test", to, subject: "x", text: "x" };
  for (let sent = 0; sent < count; sent += 10 * perMessage) {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => world.svc.admin("POST", "/v1/messages", body)),
    );
    for (const { status } of answers) expect(status).toBe(202);
  }
}

/** Sends 200 mails to the healthy destination; answers how long until all had arrived, milliseconds. */
async function healthyRun(): Promise<number> {
  const ledger = createLedger();
  const begun = performance.now();
  for (let i = 0; i < 20; i++) {
    const tokens = Array.from({ length: 10 }, () => ledger.token());
    const sends = tokens.map((text) => world.send({ to: "r@healthy.test", text }));
    for (const [at, answer] of (await Promise.all(sends)).entries()) {
      expect(answer.status).toBe(202);
      ledger.acknowledge(tokens[at] ?? "");
    }
  }
  await ledger.settle(() => world.receiver("healthy.test").mails);
  world.receiver("healthy.test").mails.length = 0;
  return performance.now() - begun;
}

const attemptsAt = (domain: string) =>
  world.receiver(domain).commands.filter((line) => line.startsWith("MAIL FROM")).length;

test("5,000 mails for a receiver that never answers do not delay 200 for a healthy one", async () => {
  const alone = await healthyRun();
  world.receiver("dead.test").options.stall = "banner";
  await queue("dead.test", 5000, 50);
  await eventually(async () => world.receiver("dead.test").open >= 10);
  const dialled = world.receiver("dead.test").connections;
  const beside = await healthyRun();
  console.info(JSON.stringify({ aloneMs: Math.round(alone), besideMs: Math.round(beside) }));
  // The same ten connections hang as before: all 200 went past them, none behind one that was given up.
  expect([world.receiver("dead.test").open, world.receiver("dead.test").connections]).toEqual([10, dialled]);
  // A receiver has a mail before its outcome is stored.
  await eventually(async () => {
    const { queue: counts } = (await world.svc.admin("GET", "/v1/status")).json;
    return counts.queued + counts.deferred + counts.sending === 5000;
  });
});

test("a receiver that says 421 is asked less and less, and only it", async () => {
  const throttled = world.receiver("throttled.test");
  throttled.options.reply = { mail: "421 4.7.28 too many messages from you, slow down" };
  await queue("throttled.test", 2000, 50);
  const looks: { at: number; attempts: number }[] = [];
  const watch = setInterval(
    () => looks.push({ at: performance.now(), attempts: attemptsAt("throttled.test") }),
    500,
  );
  const beside = await healthyRun();
  const untilMs = performance.now() + 6_000;
  await eventually(async () => looks.length >= 13 && performance.now() > untilMs);
  clearInterval(watch);
  const perSecond = looks.slice(2).map(({ at, attempts }, i) => {
    const before = looks[i] ?? { at: 0, attempts: 0 };
    return Math.round((1000 * (attempts - before.attempts)) / (at - before.at));
  });
  console.info(JSON.stringify({ besideMs: Math.round(beside), perSecond }));
  // From 100 a second: halved at once, and again after five seconds of refusals. Over two seconds, since attempts that a busy
  // machine held up come in a bunch.
  const atLast = perSecond.slice(-4);
  expect(atLast.reduce((sum, one) => sum + one, 0) / atLast.length).toBeLessThan(45);
});

test("a client that never comes to the end of its header is answered 408 after ten seconds", async () => {
  const { answer, ms } = await slow;
  expect(answer).toMatch(/^HTTP\/1\.1 408 [\s\S]*"code":"invalid_request"/);
  expect(ms).toBeGreaterThan(9_000);
});
