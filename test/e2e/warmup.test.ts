// Warm-up from the outside: the built program, addresses of loopback that warm up, and a receiver that sees who calls.
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, type Appliance } from "../support/appliance.ts";
import { startSending, type Sending } from "../support/sending.ts";
import type { Receiver } from "../support/smtp-receiver.ts";

let sending: Sending;
let receiver: Receiver;
let svc: Appliance;
let key: string;
const firstDay = 50;

beforeAll(async () => {
  sending = await startSending("one.test", { address: "127.0.0.22" });
  ({ receiver, svc, key } = sending);
});
afterAll(() => sending?.stop());

const send = async (pool: string, count: number): Promise<string> => {
  const to = Array.from({ length: count }, (_, n) => `u${n}@one.test`);
  const message = { from: "shop@ok.test", to, subject: "Hello", text: "Hi", ip_pool: pool };
  const { status, json } = await svc.api(key, "POST", "/v1/messages", message);
  expect(status).toBe(202);
  return json.id;
};
const from = (address: string): number => receiver.mails.filter((mail) => mail.from === address).length;
const warmupOf = async (address: string) => {
  const { json } = await svc.admin("GET", "/v1/ips");
  return json.data.find((ip: { ip_address: string }) => ip.ip_address === address);
};

test("an address that warms up sends its cap, the pool's warm ones the rest; a restart goes on with the counts", async () => {
  await svc.cli("pools", "create", "news");
  const added = await svc.cli("ips", "add", "127.0.0.61", "--pool", "news", "--warmup", "--json");
  expect(JSON.parse(added.stdout)).toMatchObject({
    status: "warming",
    warmup: { day: 1, caps: { google: firstDay, default: firstDay }, sent_today: { google: 0, default: 0 } },
  });
  await svc.cli("ips", "add", "127.0.0.62", "--pool", "news");
  await send("news", 40);
  await receiver.waitForMails(40, 20_000);
  const before = from("127.0.0.61");
  expect(before).toBeGreaterThan(10);
  await eventually(async () => {
    const counts = await svc.admin("GET", "/v1/status");
    return counts.json.queue.sending === 0 ? true : null;
  });
  await svc.kill("SIGKILL");
  await svc.restart();
  expect((await warmupOf("127.0.0.61")).warmup.sent_today).toMatchObject({ default: before });
  for (let i = 0; i < 2; i++) await send("news", 50);
  await receiver.waitForMails(140, 20_000);
  expect([from("127.0.0.61"), from("127.0.0.62")]).toEqual([firstDay, 140 - firstDay]);
  const { stdout } = await svc.cli("ips", "warmup", "status");
  expect(stdout).toContain("default 50/50");
  expect(stdout).not.toContain("127.0.0.62");
});

test("where no address is warm, mail beyond the cap waits untried, and the trace says so", async () => {
  receiver.mails.length = 0;
  await svc.cli("pools", "create", "cold");
  await svc.cli("ips", "add", "127.0.0.63", "--pool", "cold", "--warmup");
  await send("cold", 40);
  const id = await send("cold", 30);
  await receiver.waitForMails(firstDay, 20_000);
  const statuses = async () => {
    const { json } = await svc.admin("GET", `/v1/messages/${id}`);
    return json.recipients.map(
      ({ status, attempts }: { status: string; attempts: number }) => `${status} ${attempts}`,
    );
  };
  const counted = await eventually(async () => {
    const all = await statuses();
    const count = (wanted: string): number => all.filter((one: string) => one === wanted).length;
    const [waiting, delivered] = [count("queued 0"), count("delivered 1")];
    return waiting + delivered === 30 ? { waiting, delivered } : null;
  });
  expect(counted).toEqual({ waiting: 20, delivered: 10 });
  expect(receiver.mails).toHaveLength(firstDay);
  const trace = await svc.cli("messages", "trace", id);
  expect(trace.stderr).toMatch(/@one\.test: every address of the pool cold has sent .*svc ips warmup status/);
  const waits = (await svc.admin("GET", `/v1/messages/${id}/waits`)).json.data;
  expect(waits.map(({ rule }: { rule: string }) => rule)).toEqual(Array(20).fill("warmup"));
  const stopped = await svc.cli("ips", "warmup", "stop", "127.0.0.63", "--json");
  expect(JSON.parse(stopped.stdout)).toMatchObject({ status: "active", warmup: null });
});
