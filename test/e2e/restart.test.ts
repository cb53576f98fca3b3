// kill -9 at moments that random ones rarely meet: while a scheduled message waits, while the reply to the final dot is
// awaited, and in the middle of a webhook.
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../support/appliance.ts";
import { createLedger } from "../support/ledger.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../support/webhook-receiver.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
let hook: WebhookReceiver;
const hookOptions = { secret: "", now: () => Date.now() };

beforeAll(async () => {
  hook = await startWebhookReceiver(hookOptions);
  world = await startWorld({
    domains: { "one.test": "127.0.0.37", "two.test": "127.0.0.38" },
    config: { webhooks: { allow_networks: ["127.0.0.0/8", "::1/128"], ca_file: hook.caFile } },
  });
});
afterAll(async () => {
  await world?.stop();
  await hook?.stop();
});

const sleepUntil = (time: number) => new Promise((done) => setTimeout(done, time - Date.now()));

test("scheduled mail survives a kill -9: what fell due meanwhile goes at once, the rest at its time, each once", async () => {
  const ledger = createLedger();
  const arrivedAt = new Map<string, number>();
  const receiver = world.receiver("one.test");
  receiver.options.onRcpt = (address) => void arrivedAt.set(address, Date.now());
  const begun = Date.now();
  for (const [local, afterMs] of [
    ["missed", 2500],
    ["later", 7000],
  ] as const) {
    const token = ledger.token();
    const send_at = new Date(begun + afterMs).toISOString();
    const { status, json } = await world.send({ to: `${local}@one.test`, text: token, send_at });
    expect([status, json.status]).toEqual([202, "scheduled"]);
    ledger.acknowledge(token);
  }
  await world.svc.kill("SIGKILL");
  await sleepUntil(begun + 3000);
  expect(receiver.mails).toEqual([]);
  await world.svc.restart();
  await ledger.settle(() => receiver.mails);
  expect(arrivedAt.get("later@one.test")).toBeGreaterThanOrEqual(begun + 7000);
  expect([...arrivedAt.keys()]).toEqual(["missed@one.test", "later@one.test"]);
});

test("an attempt that a kill -9 cut off behind the final dot is listed as interrupted and ambiguous, then made again", async () => {
  const receiver = world.receiver("one.test");
  const before = receiver.mails.length;
  receiver.options.stall = "dot";
  const { json } = await world.send({ to: "dot@one.test" });
  await receiver.waitForMails(before + 1);
  await world.svc.kill("SIGKILL");
  delete receiver.options.stall;
  await world.svc.restart();
  await receiver.waitForMails(before + 2);
  const attempts = async () =>
    (await world.svc.api(world.key, "GET", `/v1/messages/${json.id}/attempts`)).json.data;
  await eventually(async () => (await attempts()).length === 2, undefined, "the second attempt being listed");
  expect(await attempts()).toMatchObject([
    { attempt: 1, outcome: "interrupted", ambiguous: true, decided_by: "restart", smtp_code: null },
    { attempt: 2, outcome: "delivered", ambiguous: false, decided_by: "final", smtp_code: "250" },
  ]);
});

test("of twenty mails that a kill -9 cuts off at the end of data, half of them answered, each is delivered by itself, in two copies at most", async () => {
  const [stalled, answered] = [world.receiver("one.test"), world.receiver("two.test")];
  const [before, answeredBefore] = [stalled.mails.length, answered.mails.length];
  stalled.options.stall = "dot";
  const send = async (to: string): Promise<string> => (await world.send({ to })).json.id;
  const numbers = Array.from({ length: 10 }, (_, i) => i);
  const ids = await Promise.all(numbers.map((i) => send(`cut${i}@one.test`)));
  await stalled.waitForMails(before + 10);
  ids.push(...(await Promise.all(numbers.map((i) => send(`cut${i}@two.test`)))));
  await answered.waitForMails(answeredBefore + 10);
  await world.svc.kill("SIGKILL");
  delete stalled.options.stall;
  await world.svc.restart();
  for (const id of ids)
    await eventually(
      async () => (await world.svc.admin("GET", `/v1/messages/${id}`)).json.status === "delivered",
      undefined,
      `the delivery of ${id}`,
    );
  const mails = [...stalled.mails.slice(before), ...answered.mails.slice(answeredBefore)];
  const copies = Map.groupBy(mails, ({ rcptTo }) => rcptTo[0] ?? "");
  expect(copies.size).toBe(20);
  for (const [to, all] of copies) {
    if (to.endsWith("@one.test")) expect(all).toHaveLength(2);
    expect(all.length).toBeLessThanOrEqual(2);
    const messageIds = all.map(({ data }) => /^Message-ID: .*$/im.exec(String(data))?.[0]);
    expect(new Set(messageIds).size).toBe(1);
  }
  expect((await world.svc.admin("GET", "/v1/status")).json.queue).toMatchObject({ sending: 0, queued: 0 });
});

test("a recipient that bounced is not attempted again, however often the program starts", async () => {
  const receiver = world.receiver("one.test");
  const { json } = await world.send({ to: "permfail@one.test" });
  const events = async () => (await world.svc.admin("GET", `/v1/events?message_id=${json.id}`)).json.data;
  await eventually(async () => (await events()).length === 1, undefined, "the bounce");
  const attempts = () => receiver.commands.filter((line) => line === "RCPT TO:<permfail@one.test>").length;
  for (const signal of ["SIGKILL", "SIGTERM", "SIGKILL"] as const) {
    await world.svc.kill(signal);
    await world.svc.restart();
    const before = receiver.mails.length;
    await world.send({ to: `after-${signal}@one.test` });
    await receiver.waitForMails(before + 1);
  }
  expect(attempts()).toBe(1);
  expect(await events()).toMatchObject([{ event: "message.bounced" }]);
});

test("a webhook that a kill -9 interrupts is delivered again: same event, same bytes, a higher attempt", async () => {
  const { svc, key } = world;
  const { json: endpoint } = await svc.api(key, "POST", "/v1/webhooks", { url: hook.url });
  hookOptions.secret = endpoint.secret;
  hook.answer(() => "hang");
  const { json: message } = await world.send({ to: "r@one.test" });
  const [first] = await hook.received(1);
  await svc.kill("SIGKILL");
  hook.answer(() => ({ status: 200 }));
  await svc.restart();
  const [, second] = await hook.received(2);
  expect(first?.body.toString()).toContain(message.id);
  expect(first).toMatchObject({ attempt: 1, problem: null });
  expect(second).toMatchObject({ attempt: 2, problem: null, eventId: first?.eventId, duplicate: true });
  expect(second?.body.equals(first?.body ?? Buffer.alloc(0))).toBe(true);
  expect(hook.requests).toHaveLength(2);
  const listed = async () => (await svc.api(key, "GET", `/v1/webhooks/${endpoint.id}/deliveries`)).json.data;
  await eventually(async () => (await listed()).length === 2, undefined, "both attempts being listed");
  expect(await listed()).toMatchObject([
    { attempt: 2, status: "delivered" },
    { attempt: 1, status: "failed", error: expect.stringContaining("ended before") },
  ]);
});
