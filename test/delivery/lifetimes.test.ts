// What becomes of a message over hours and days: greylisting, a receiver that is down or never willing, an end of data
// without a reply, a DNS that dies and an MX that moves.
import { afterEach, expect, test } from "vitest";
import { eventually } from "../support/appliance.ts";
import type { Failure } from "../support/dns-server.ts";
import { startReceiver, type ReceiverOptions } from "../support/smtp-receiver.ts";
import { hour, minute, startSender, type Sender, type Told } from "./sender.ts";

let sender: Sender;
const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

async function start(domains: Record<string, string>, receiver: ReceiverOptions = {}): Promise<void> {
  sender = await startSender(domains, { receiver });
  open.push(() => sender.stop());
}

const at = ({ occurred_at }: Told): number => Date.parse(occurred_at);
const kinds = (events: Told[]): string[] => events.map(({ event }) => event);
const messageIds = (domain: string): Set<string> =>
  new Set(
    sender
      .receiver(domain)
      .mails.map(({ data }) => /^Message-ID: (.*)\r$/im.exec(data.toString("latin1"))?.[1] ?? "none"),
  );

test("greylisting by address, sender and recipient is passed at the first retry after its window", async () => {
  await start({ "x.test": "127.0.0.44" });
  const x = sender.receiver("x.test");
  const first = new Map<string, number>();
  x.options.onRcpt = (to) => {
    const triple = `${x.commands.findLast((line) => line.startsWith("MAIL"))?.split(" ")[1]} ${to}`;
    const since = first.get(triple) ?? sender.clock.now();
    first.set(triple, since);
    return sender.clock.now() - since < 300_000 ? "451 4.7.1 greylisted" : undefined;
  };
  const id = await sender.send({ to: "a@x.test" });
  while ((await sender.next(id)).event === "message.deferred");
  const events = await sender.events(id, 1);
  expect(kinds(events)).toEqual(["message.deferred", "message.deferred", "message.delivered"]);
  const [begun, second, last] = events.map(at) as [number, number, number];
  expect(second - begun).toBeGreaterThanOrEqual(minute);
  expect(last - begun).toBeLessThan(10 * minute);
  expect(first.size, "the sender is the same each time").toBe(1);
  expect(x.mails).toHaveLength(1);
});

test("421 for two days is deferred again and again, then bounces once, soft, with the last reply, and suppresses nobody", async () => {
  await start({ "x.test": "127.0.0.44" });
  const reply = "421 4.7.0 [TSS04] Messages temporarily deferred due to unexpected volume";
  const x = sender.receiver("x.test");
  x.options.reply = { mail: reply };
  const id = await sender.send({ to: "a@x.test" });
  while ((await sender.next(id)).event === "message.deferred");
  const events = await sender.events(id, 1);
  const bounced = events.at(-1) as Told;
  expect(events.length).toBeGreaterThan(15);
  expect(events.length).toBeLessThan(30);
  expect(kinds(events.slice(0, -1)).every((kind) => kind === "message.deferred")).toBe(true);
  expect(bounced).toMatchObject({
    event: "message.bounced",
    data: {
      bounce_type: "soft",
      bounce_classification: "message_expired",
      smtp_code: "421",
      smtp_response: reply.slice(4),
      suppressed: false,
    },
  });
  const age = at(bounced) - at(events[0] as Told);
  expect(age).toBeGreaterThan(47 * hour);
  expect(age).toBeLessThan(49 * hour);
  delete x.options.reply;
  const again = await sender.send({ to: "a@x.test" });
  expect(kinds(await sender.events(again, 1))).toEqual(["message.delivered"]);
  sender.clock.skip(48 * hour);
  expect(await sender.events(id, 1)).toHaveLength(events.length);
});

test("an end of data without a reply is named, and one copy more, with the same Message-ID, comes with the retry", async () => {
  await start({ "x.test": "127.0.0.44" }, { drop: "dot" });
  const x = sender.receiver("x.test");
  const id = await sender.send({ to: "a@x.test" });
  const [deferred] = await sender.events(id, 1);
  expect(deferred).toMatchObject({
    event: "message.deferred",
    data: { smtp_response: expect.stringContaining("it may have the message, which is sent again") },
  });
  sender.clock.skip(30_000);
  await sender.events(await sender.send({ to: "b@x.test" }), 1);
  expect(
    x.mails.filter(({ rcptTo }) => rcptTo[0] === "a@x.test"),
    "not before its time",
  ).toHaveLength(1);
  delete x.options.drop;
  expect(await sender.next(id)).toMatchObject({ event: "message.delivered" });
  const copies = x.mails.filter(({ rcptTo }) => rcptTo[0] === "a@x.test");
  expect(copies).toHaveLength(2);
  expect(copies[1]?.mailFrom).toBe(copies[0]?.mailFrom);
  const idOf = (data: Buffer | undefined) => /^Message-ID: .*$/im.exec(String(data))?.[0];
  expect(idOf(copies[0]?.data)).toBe(idOf(copies[1]?.data));
  const { data } = (await sender.program.admin("GET", `/v1/messages/${id}/attempts`)) as { data: unknown };
  expect(data).toMatchObject([
    { attempt: 1, outcome: "deferred", ambiguous: true },
    { attempt: 2, outcome: "delivered", ambiguous: false },
  ]);
});

test("a 250 that comes after our ten minutes for it makes one copy more at most", async () => {
  await start({ "x.test": "127.0.0.44" });
  const x = sender.receiver("x.test");
  const id = await sender.send({ to: "slow@x.test" });
  await x.waitForMails(1);
  sender.clock.skip(10 * minute);
  expect(kinds(await sender.events(id, 1))).toEqual(["message.deferred"]);
  x.release();
  const retried = sender.next(id);
  await x.waitForMails(2);
  x.release();
  expect(await retried).toMatchObject({ event: "message.delivered" });
  expect(x.mails).toHaveLength(2);
  expect(messageIds("x.test").size).toBe(1);
});

test("fifty mails for a receiver that is down are all delivered at their first retry after it is back", async () => {
  await start({ "x.test": "127.0.0.44" });
  const { port } = sender;
  await sender.receiver("x.test").stop();
  const ids = await Promise.all(Array.from({ length: 50 }, (_, i) => sender.send({ to: `r${i}@x.test` })));
  await Promise.all(ids.map((id) => sender.events(id, 1)));
  const back = await startReceiver({ address: "127.0.0.44", port });
  open.push(() => back.stop());
  for (const told of await sender.nextOf(ids)) {
    expect(told).toMatchObject({ event: "message.delivered", data: { attempt: 2 } });
  }
  expect(back.mails).toHaveLength(50);
});

test("a greeting that blocks us sends the mail to the next MX; where all do it waits, and nobody is suppressed", async () => {
  await start({ "x.test": "127.0.0.44", "y.test": "127.0.0.45" });
  const [x, y] = [sender.receiver("x.test"), sender.receiver("y.test")];
  const banner = "554 5.7.1 blocked, see https://x.test/why";
  x.options.banner = banner;
  sender.dns.set("x.test", "MX", ["10 mx.x.test", "20 mx.y.test"]);
  const first = await sender.send({ to: "a@x.test" });
  expect(await sender.events(first, 1)).toMatchObject([
    { event: "message.delivered", data: { attempt: 1, receiving_mta: "mx.y.test" } },
  ]);
  y.hangUp();
  y.options.banner = banner;
  const second = await sender.send({ to: "b@x.test" });
  const [told] = await sender.events(second, 1);
  expect(told).toMatchObject({
    event: "message.deferred",
    data: { smtp_code: "554", smtp_status: "5.7.1", smtp_response: banner.slice(4) },
  });
  expect(told?.data.bounce_classification).toMatch(/^[a-z_]+$/);
  expect(told?.data.bounce_classification).not.toBe("invalid_recipient");
  expect((await sender.program.admin("GET", "/v1/suppressions")).data).toEqual([]);
  delete y.options.banner;
  expect(await sender.next(second)).toMatchObject({ event: "message.delivered" });
});

test("an MX that moves between two attempts is found by the next", async () => {
  await start({ "x.test": "127.0.0.44", "y.test": "127.0.0.45" });
  await sender.receiver("x.test").stop();
  const id = await sender.send({ to: "a@x.test" });
  await sender.events(id, 1);
  sender.dns.set("x.test", "MX", ["10 mx.y.test"]);
  expect(await sender.next(id)).toMatchObject({
    event: "message.delivered",
    data: { attempt: 2, receiving_mta: "mx.y.test" },
  });
});

test("mail for 72 hours from now waits that long and goes once", async () => {
  await start({ "x.test": "127.0.0.44" });
  const begun = sender.clock.now();
  const id = await sender.send({ to: "a@x.test", send_at: new Date(begun + 72 * hour).toISOString() });
  for (const hours of [24, 24, 23]) {
    sender.clock.skip(hours * hour);
    await sender.events(await sender.send({ to: "now@x.test" }), 1);
  }
  expect(sender.receiver("x.test").mails.map(({ rcptTo }) => rcptTo[0])).toEqual(Array(3).fill("now@x.test"));
  sender.clock.skip(hour);
  const [delivered] = (await sender.events(id, 1)) as [Told];
  expect(Math.abs(at(delivered) - begun - 72 * hour)).toBeLessThan(minute);
  sender.clock.skip(72 * hour);
  expect(await sender.events(id, 1)).toHaveLength(1);
});

test("a DNS that is dead for ten minutes defers everything and bounces nothing; all is delivered within a back-off", async () => {
  await start({ "x.test": "127.0.0.44" });
  const { program, dns, clock } = sender;
  const receiver = sender.receiver("x.test");
  const domains = Array.from({ length: 10 }, (_, i) => `d${i}.test`);
  for (const domain of domains) dns.set(domain, "MX", ["10 mx.x.test"]);
  for (const domain of domains) await sender.send({ to: `before@${domain}` });
  await receiver.waitForMails(10);
  const fail = (how: Failure | null): void => {
    for (const name of [...domains, "mx.x.test"]) dns.fail(name, how);
  };
  for (let minutes = 1; minutes <= 10; minutes++) {
    fail(minutes % 3 === 0 ? "timeout" : minutes % 2 === 0 ? "servfail" : "refused");
    for (const domain of domains) await sender.send({ to: `m${minutes}@${domain}` });
    clock.skip(minute);
  }
  await eventually(async () => (await program.admin("GET", "/v1/status")).queue.deferred === 100);
  expect(receiver.mails).toHaveLength(10);
  fail(null);
  // Minute by minute, since an attempt may have begun while the DNS was dead: the longest back-off after that is 36 minutes.
  for (let minutes = 0; receiver.mails.length < 110; minutes++) {
    expect(minutes).toBeLessThan(40);
    clock.skip(minute);
    // A question that is open when the next minute passes has timed out: what is due has been tried before.
    await eventually(async () => {
      const { data } = await program.admin("GET", "/v1/queue?limit=100");
      return data.every(
        (entry: { next_attempt_at: string | null }) => Date.parse(entry.next_attempt_at ?? "") > clock.now(),
      );
    });
  }
  const { data } = await program.admin("GET", "/v1/events?type=message.bounced");
  expect(data).toEqual([]);
});
