// SIGTERM in the middle of work, from the outside: what is in flight is finished, nothing new is taken, everybody
// is told, and after the next start nothing is missing and nothing has come twice.
import { once } from "node:events";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../support/appliance.ts";
import { createLedger, tokenOf, type Ledger } from "../support/ledger.ts";
import { connectSmtp } from "../support/smtp-client.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
let ledger: Ledger;

beforeEach(async () => {
  ledger = createLedger();
  world = await startWorld({ domains: { "one.test": "127.0.0.32" } });
});
afterEach(() => world?.stop());

const receiver = () => world.receiver("one.test");

async function send(to: string): Promise<number> {
  const token = ledger.token();
  const answer = await world.send({ to, text: token }).catch(() => null); // refused or cut: not acknowledged
  if (answer?.status === 202) ledger.acknowledge(token);
  return answer?.status ?? 0;
}

/** Mails whose dot the receiver holds until it is told to answer. */
async function inFlight(count: number): Promise<void> {
  for (let i = 0; i < count; i++) expect(await send("slow@one.test")).toBe(202);
  await receiver().waitForMails(count);
}

/** A REST request whose body is half sent. */
async function halfRequest(): Promise<{ finish(): Promise<string> }> {
  const token = ledger.token();
  const body = JSON.stringify({ from: "a@ok.test", to: "r@one.test", subject: "half", text: token });
  const socket: TLSSocket = connectTls({
    host: "127.0.0.1",
    port: world.svc.httpPort,
    rejectUnauthorized: false,
  });
  await once(socket, "secureConnect");
  const head = [
    "POST /v1/messages HTTP/1.1",
    "host: x",
    `authorization: Bearer ${world.key}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    "expect: 100-continue",
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  await once(socket, "data"); // 100 Continue: the guards have passed
  socket.write(body.slice(0, 20));
  return {
    async finish() {
      let answer = "";
      socket.on("data", (chunk: Buffer) => (answer += chunk.toString()));
      socket.write(body.slice(20));
      await once(socket, "close");
      if (answer.startsWith("HTTP/1.1 202")) ledger.acknowledge(token);
      return answer;
    },
  };
}

test("SIGTERM: what is in flight ends well, sessions get 421, exit 0, nothing twice", async () => {
  await inFlight(8);
  const request = await halfRequest();
  const idle = await world.smtp();
  const uploading = await world.smtp();
  for (const line of ["MAIL FROM:<a@ok.test>", "RCPT TO:<r@one.test>", "DATA"])
    expect((await uploading.command(line)).code).toBeLessThan(400);
  uploading.send("From: a@ok.test\r\nSubject: never acknowledged\r\n\r\ntoken-0-\r\n");
  const exit = once(world.svc.process, "exit");
  const crowd = Array.from({ length: 30 }, () => send("r@one.test"));
  world.svc.process.kill("SIGTERM");

  expect((await idle.answer()).text).toMatch(/^421 4\.3\.2 /);
  expect([202, 503, 0]).toEqual(expect.arrayContaining(await Promise.all(crowd)));
  expect([503, 0]).toContain(await send("r@one.test"));
  const stranger = await connectSmtp({ port: world.svc.starttlsPort }).catch(() => null);
  if (stranger) expect((await stranger.answer()).code).toBe(421);
  uploading.send(".\r\n");
  expect((await uploading.answer()).text).toMatch(/^421 4\.3\.2 /);
  expect(await request.finish()).toMatch(/^HTTP\/1\.1 202 /);
  // Every listener is closed by now, and what is left waits for the receiver's answers to the dots.
  await eventually(async () => (await send("r@one.test")) === 0, undefined, "the API closing");
  expect(world.svc.process.exitCode).toBeNull();
  receiver().release();
  expect(await exit).toEqual([0, null]);

  await world.svc.restart();
  await ledger.settle(() => receiver().mails);
  expect(receiver().mails.map(tokenOf)).not.toContain("token-0-");
});

test("SIGTERM beside receivers that hang: exit 0 all the same, and their mail waits as it did", async () => {
  receiver().options.stall = "rcpt";
  for (let i = 0; i < 20; i++) expect(await send("r@one.test")).toBe(202);
  await eventually(async () => receiver().open === 10);
  await world.svc.kill("SIGTERM");
  expect(world.svc.process.exitCode).toBe(0);
  expect(receiver().open).toBe(0); // it let go of them, and they of nothing

  delete receiver().options.stall;
  await world.svc.restart();
  await ledger.settle(() => receiver().mails);
  await eventually(async () => {
    const { data } = (await world.svc.admin("GET", "/v1/events")).json;
    return data.length === 20;
  });
  const { data } = (await world.svc.admin("GET", "/v1/events")).json;
  for (const { event, data: facts } of data) expect([event, facts.attempt]).toEqual(["message.delivered", 1]);
});

test("a second SIGTERM ends it at once, and the next start takes the work back", async () => {
  await inFlight(3);
  const held = new Set(receiver().mails.map(tokenOf));
  const exit = once(world.svc.process, "exit");
  world.svc.process.kill("SIGTERM");
  await eventually(async () => world.svc.log().includes("stopping"));
  world.svc.process.kill("SIGTERM");
  expect(await exit).toEqual([1, null]); // the first one alone would end with 0, and only after the dots

  receiver().options.onRcpt = () => "250 2.1.5 ok";
  await world.svc.restart();
  await receiver().waitForMails(6); // the three again: their dots were never answered
  receiver().release();
  expect(await send("r@one.test")).toBe(202);
  await ledger.settle(() => receiver().mails, { ambiguous: held });
});
