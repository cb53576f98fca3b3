// kill -9 while sends with an Idempotency-Key are on their way: whichever of them were stored, with or without an answer
// that reached the client, the retry of each is its one message.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startAppliance, type Answer, type Appliance } from "../support/appliance.ts";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";
import { publish } from "../support/publish.ts";

let dns: DnsServer;
let svc: Appliance;
let key: string;

beforeAll(async () => {
  dns = await startDnsServer();
  svc = await startAppliance({ config: { dns: { servers: [dns.server] } } });
  key = (await svc.admin("POST", "/v1/keys", { name: "test", scope: "admin", test: true })).json.key;
  await publish(svc, dns, "ok.test");
});

afterAll(async () => {
  await svc?.stop();
  await dns?.stop();
});

test("after kill -9 between a send and its answer the retry is answered, and there is one message", async () => {
  const sends = Array.from({ length: 60 }, (_, n) => ({ subject: `kept ${n}`, token: randomUUID() }));
  const send = ({ subject, token }: (typeof sends)[number]): Promise<Answer> =>
    svc.api(
      key,
      "POST",
      "/v1/messages",
      { from: "a@ok.test", to: "delivered@simulator.svc", subject, text: "Hi" },
      { "idempotency-key": token },
    );

  const underWay = sends.map((one) => send(one).catch(() => null));
  await Promise.race(underWay);
  await svc.kill("SIGKILL");
  const before = await Promise.all(underWay);
  await svc.restart();
  const stored = (await svc.api(key, "GET", "/v1/messages?limit=200")).json.data as { subject: string }[];
  const after = await Promise.all(sends.map(send));

  expect(after.map((one) => one.status)).toEqual(sends.map(() => 202));
  for (const [n, answer] of before.entries())
    if (answer?.status === 202) expect(after[n]?.text).toBe(answer.text);
  const wasStored = new Set(stored.map((one) => one.subject));
  expect(before.filter((one) => one?.status === 202).length).toBeGreaterThan(0);
  expect(after.map((one) => one.headers["idempotency-replayed"] === "true")).toEqual(
    sends.map((one) => wasStored.has(one.subject)),
  );
  const { json } = await svc.api(key, "GET", "/v1/messages?limit=200");
  const subjects = (json.data as { subject: string }[]).map((one) => one.subject);
  expect(subjects.toSorted()).toEqual(sends.map((one) => one.subject).toSorted());
  console.info(JSON.stringify({ answered: before.filter(Boolean).length, stored: wasStored.size }));
});
