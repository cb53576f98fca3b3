// IP pools from the outside: the built program on loopback addresses, a receiver that sees who calls.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, freePort, type Appliance } from "../support/appliance.ts";
import type { DnsServer } from "../support/dns-server.ts";
import { startSending, type Sending } from "../support/sending.ts";
import type { Receiver } from "../support/smtp-receiver.ts";
import { removeFolder } from "../support/folders.ts";

const port = await freePort();
let sending: Sending;
let dns: DnsServer;
let receiver: Receiver;
let svc: Appliance;
let key: string;

const files = mkdtempSync(join(tmpdir(), "svc-pools-"));
const shaping = join(files, "shaping.yaml");

beforeAll(async () => {
  writeFileSync(shaping, "groups: { two.test: { connections: 4, per_second: 60 } }\n");
  sending = await startSending(
    "one.test",
    { address: "127.0.0.21", port },
    {
      records: { "two.test": { MX: ["10 mx.two.test"] }, "mx.two.test": { A: ["127.0.0.21"] } },
      outbound: { retry: ["1s"], shaping_file: shaping },
    },
  );
  ({ dns, receiver, svc, key } = sending);
});
afterAll(async () => {
  await sending?.stop();
  removeFolder(files);
});

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

test("the weights of a pool's addresses hold while each has more mail than it may send", async () => {
  expect((await svc.api(key, "POST", "/v1/ip_pools", { name: "bulk" })).status).toBe(201);
  const weights = { "127.0.0.41": 6, "127.0.0.42": 3, "127.0.0.43": 1 };
  for (const [address, weight] of Object.entries(weights))
    await svc.api(key, "POST", "/v1/ip_pools/bulk/ips", { ip_address: address, weight });
  receiver.mails.length = 0;
  for (let i = 0; i < 12; i++) {
    const to = Array.from({ length: 50 }, (_, n) => `u${i}-${n}@two.test`);
    const message = { from: "shop@ok.test", to, subject: "Hello", text: "Hi", ip_pool: "bulk" };
    expect((await svc.api(key, "POST", "/v1/messages", message)).status).toBe(202);
  }
  await receiver.waitForMails(600, 30_000);
  for (const [address, weight] of Object.entries(weights)) {
    // Not only in the end: nothing is sent by one address after the others are done.
    for (const mails of [receiver.mails, receiver.mails.slice(100, 500)]) {
      const share = mails.filter((mail) => mail.from === address).length / mails.length;
      expect(Math.abs(share - weight / 10)).toBeLessThan(0.05 * (weight / 10) + 0.01);
    }
  }
}, 60_000);
