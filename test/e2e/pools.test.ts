// IP pools from the outside: the built program on loopback addresses, a receiver that sees who calls.
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, type Appliance } from "../support/appliance.ts";
import type { DnsServer } from "../support/dns-server.ts";
import { startSending, type Sending } from "../support/sending.ts";
import type { Receiver } from "../support/smtp-receiver.ts";

const port = 25_027;
let sending: Sending;
let dns: DnsServer;
let receiver: Receiver;
let svc: Appliance;
let key: string;

beforeAll(async () => {
  sending = await startSending("one.test", { address: "127.0.0.21", port }, { outbound: { retry: ["1s"] } });
  ({ dns, receiver, svc, key } = sending);
});
afterAll(() => sending?.stop());

const send = async (pool?: string) =>
  svc.api(key, "POST", "/v1/messages", {
    from: "shop@ok.test",
    to: "ann@one.test",
    subject: "Hello",
    text: "Hi",
    ...(pool === undefined ? {} : { ip_pool: pool }),
  });

test("mail leaves from its pool's address alone, waits while that is paused, and goes on by itself", async () => {
  const at = "/v1/ip_pools/news/ips";
  expect((await svc.api(key, "POST", "/v1/ip_pools", { name: "news" })).status).toBe(201);
  dns.set("news.ok.test", "A", ["127.0.0.31"]);
  const added = await svc.api(key, "POST", at, { ip_address: "127.0.0.31", hostname: "news.ok.test" });
  expect(added.json).toMatchObject({ status: "active", hostname: "news.ok.test" });
  expect((await svc.api(key, "POST", at, { ip_address: "192.0.2.9" })).json.status).toBe("unbindable");

  const first = await send("news");
  await receiver.waitForMails(1);
  expect(receiver.mails[0]?.from).toBe("127.0.0.31");
  expect(receiver.commands).toContain("EHLO news.ok.test");
  const [event] = await eventually(async () => {
    const { json } = await svc.admin("GET", `/v1/events?message_id=${first.json.id}`);
    return json.data.length > 0 ? json.data : null;
  });
  expect(event.data).toMatchObject({ sending_ip: "127.0.0.31" });

  expect((await svc.api(key, "PATCH", `${at}/127.0.0.31`, { status: "paused" })).json.status).toBe("paused");
  const waiting = await send("news");
  await send();
  await receiver.waitForMails(2);
  expect(receiver.mails[1]?.from).toBe("127.0.0.1");
  const record = await svc.admin("GET", `/v1/messages/${waiting.json.id}`);
  expect(record.json.recipients[0]).toMatchObject({ status: "queued", attempts: 0 });
  expect((await svc.api(key, "DELETE", "/v1/ip_pools/news")).status).toBe(409);
  expect((await send("nobody")).json.code).toBe("ip_pool_not_found");

  await svc.api(key, "PATCH", `${at}/127.0.0.31`, { status: "active" });
  await receiver.waitForMails(3);
  expect(receiver.mails[2]?.from).toBe("127.0.0.31");
});
