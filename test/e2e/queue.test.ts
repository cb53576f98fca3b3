// The queue in the operator's hands, through the built program: what waits is counted and listed with the receiver's reply,
// and is retried, held, released, failed, deleted and paused by `svc queue`.
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, type Appliance } from "../support/appliance.ts";
import { startSending, type Sending } from "../support/sending.ts";
import type { Receiver } from "../support/smtp-receiver.ts";

let sending: Sending;
let receiver: Receiver;
let svc: Appliance;

beforeAll(async () => {
  sending = await startSending("one.test", { address: "127.0.0.77" }, { outbound: { retry: ["1h"] } });
  ({ receiver, svc } = sending);
});
afterAll(() => sending?.stop());

/** Sends to a recipient that the receiver answers as it is scripted to, and waits until the queue says `status` of it. */
async function send(to: string, status = "deferred"): Promise<string> {
  const body = { from: "a@ok.test", to, subject: "x", text: "x" };
  const { json } = await svc.admin("POST", "/v1/messages", body);
  await eventually(async () => (await statusOf(json.id)) === status);
  return json.id as string;
}
const statusOf = async (id: string): Promise<string> =>
  (await svc.admin("GET", `/v1/messages/${id}`)).json.status as string;
const run = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await svc.cli(...args);
  expect(stderr).not.toContain("error");
  expect(code).toBe(0);
  return stdout;
};

test("what waits is counted by domain and error, listed with the last reply, and goes at once when it is retried", async () => {
  receiver.options.reply = { rcpt: "451 4.7.1 greylisted" };
  const id = await send("ann@one.test");
  expect(await run("queue", "count")).toContain("one.test\t1");
  expect(await run("queue", "count", "--by", "error")).toContain("451 4.7.1\t1");
  expect(await run("queue", "list", "--domain", "one.test", "--code", "451")).toContain("greylisted");
  receiver.options.reply = {};
  expect(await run("queue", "retry", "--domain", "one.test", "--yes")).toContain("1 recipient due now");
  await eventually(async () => (await statusOf(id)) === "delivered");
});

test("a message is traced by its Message-ID and by the queue id in the receiver's reply", async () => {
  receiver.options.reply = { dot: "250 2.0.0 Ok: queued as 4XyZ9Q" };
  const id = await send("tom@one.test", "delivered");
  const { json } = await svc.admin("GET", `/v1/messages/${id}`);
  for (const known of [json.message_id_header, json.message_id_header.slice(1, -1), "4XyZ9Q"])
    expect(await run("messages", "trace", known)).toContain("tom@one.test");
  expect((await svc.cli("messages", "trace", "nothing-of-ours")).code).toBe(3);
  expect((await svc.cli("messages", "trace", "<nothing@of.ours>")).code).toBe(3);
});

test("held mail waits for its release, also over a restart; without --yes and a terminal nothing is done", async () => {
  receiver.options.reply = { rcpt: "451 4.7.1 later" };
  const id = await send("bob@one.test");
  expect((await svc.cli("queue", "hold", "--to", "bob@one.test")).code).toBe(2);
  expect((await svc.cli("queue", "hold", "--yes")).code).toBe(2);
  await run("queue", "hold", "--to", "bob@one.test", "--yes");
  receiver.options.reply = {};
  await svc.kill();
  await svc.restart();
  expect(await run("queue", "retry", "--all", "--yes")).toContain("0 recipients");
  expect(await run("queue", "list", "--status", "held")).toContain("bob@one.test");
  await run("queue", "release", "--status", "held", "--yes");
  await run("queue", "retry", "--to", "bob@one.test", "--yes");
  await eventually(async () => (await statusOf(id)) === "delivered");
});

test("failed mail has bounced with an event, deleted mail is canceled", async () => {
  receiver.options.reply = { rcpt: "451 4.7.1 later" };
  const [failed, deleted] = [await send("eve@one.test"), await send("dan@one.test")];
  await run("queue", "fail", "--to", "eve@one.test", "--yes");
  await run("queue", "delete", "--to", "dan@one.test", "--yes");
  expect(await statusOf(failed)).toBe("bounced");
  expect(await statusOf(deleted)).toBe("canceled");
  const { json } = await svc.admin("GET", `/v1/events?message_id=${failed}&event=message.bounced`);
  expect(json.data[0].data.smtp_response).toContain("[local]");
  expect(await run("queue", "count")).not.toContain("one.test");
});

test("mail of a paused domain waits, over a restart too, and is sent when the pause is ended", async () => {
  const paused = await run("queue", "pause", "--domain", "one.test", "--for", "1h", "--yes");
  expect(paused).toContain("domain one.test is paused until");
  receiver.options.reply = {};
  const before = receiver.mails.length;
  const id = await send("pat@one.test", "queued");
  await svc.kill();
  await svc.restart();
  expect(await run("queue", "list")).toContain("\tdomain\t");
  expect(await run("queue", "pauses")).toContain("one.test");
  await run("queue", "retry", "--all", "--yes");
  expect([await statusOf(id), receiver.mails.length]).toEqual(["queued", before]);
  await run("queue", "resume", "--domain", "one.test");
  await eventually(async () => (await statusOf(id)) === "delivered");
});
