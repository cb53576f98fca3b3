// kill -9 between an effect and its answer: a client that was not answered asks again with the same Idempotency-Key, and
// finds the one thing that it asked for, whether it had been made or not. Requests of two kinds race the kill, in rounds,
// until some of them were done and not answered.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startAppliance, type Answer, type Appliance } from "../support/appliance.ts";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";
import { publish } from "../support/publish.ts";

const parallel = 40;
const mostRounds = 15;
let dns: DnsServer;
let svc: Appliance;
let key: string;

beforeAll(async () => {
  dns = await startDnsServer();
  svc = await startAppliance({
    config: {
      dns: { servers: [dns.server] },
      limits: { min_free_space: "0%", rates: { "webhooks-write": { burst: 10_000, per_second: 10_000 } } },
    },
  });
  key = (await svc.admin("POST", "/v1/keys", { name: "test", scope: "admin", test: true })).json.key;
  await svc.admin("PATCH", "/v1/accounts/default", { limits: { webhooks: 10_000 } });
  await publish(svc, dns, "ok.test");
});
afterAll(async () => {
  await svc?.stop();
  await dns?.stop();
});

interface Wanted {
  path: string;
  body: object;
  headers: { "idempotency-key": string };
}

const ask = ({ path, body, headers }: Wanted): Promise<Answer> => svc.api(key, "POST", path, body, headers);

/** All at once; the program dies as soon as `answers` of them are answered. null: it was not. */
async function cutOff(wanted: Wanted[], answers: number): Promise<(Answer | null)[]> {
  let answered = 0;
  let killed: Promise<void> | null = null;
  const told = await Promise.all(
    wanted.map(async (one) => {
      const answer = await ask(one).catch(() => null);
      if (answer !== null && ++answered === answers) killed = svc.kill("SIGKILL");
      return answer;
    }),
  );
  await (killed ?? svc.kill("SIGKILL"));
  await svc.restart();
  return told;
}

test("what was done and not answered is replayed after kill -9, once for each key", async () => {
  let doneUnanswered = 0;
  const kinds = new Set<string>();
  for (let round = 0; round < mostRounds && kinds.size < 2; round++) {
    const tag = `round-${round}`;
    const wanted = Array.from({ length: parallel }, (_, n): Wanted => {
      const headers = { "idempotency-key": randomUUID() };
      return n % 2 === 0
        ? {
            path: "/v1/messages",
            headers,
            body: {
              from: "a@ok.test",
              to: "delivered@simulator.svc",
              subject: "Hi",
              text: `${n}`,
              tags: [tag],
            },
          }
        : {
            path: "/v1/webhooks",
            headers,
            body: { url: `https://hooks.test/${tag}/${n}`, events: ["message.bounced"] },
          };
    });
    const before = await cutOff(wanted, 1 + (round % 7));
    const after = await Promise.all(wanted.map(ask));

    for (const [n, answer] of after.entries()) {
      const path = wanted[n]?.path ?? "";
      expect([n, answer.status], answer.text).toEqual([n, path === "/v1/messages" ? 202 : 201]);
      const first = before[n];
      const replayed = answer.headers["idempotency-replayed"] === "true";
      if (first) expect([n, answer.text, replayed]).toEqual([n, first.text, true]);
      else if (replayed) {
        doneUnanswered++;
        kinds.add(path);
      }
    }
    const messages = (await svc.api(key, "GET", `/v1/messages?tag=${tag}&limit=200`)).json.data;
    const own = after.filter((_, n) => n % 2 === 0).map(({ json }) => String(json.id));
    expect(messages.map(({ id }: { id: string }) => id).toSorted()).toEqual(own.toSorted());
    expect(new Set(after.map(({ json }) => json.id)).size).toBe(parallel);

    const urls: string[] = [];
    for (let cursor = ""; ;) {
      const { data, next_cursor } = (await svc.api(key, "GET", `/v1/webhooks?limit=200${cursor}`)).json;
      urls.push(
        ...data.map(({ url }: { url: string }) => url).filter((url: string) => url.includes(`/${tag}/`)),
      );
      if (next_cursor === null) break;
      cursor = `&cursor=${next_cursor}`;
    }
    expect([urls.length, new Set(urls).size]).toEqual([parallel / 2, parallel / 2]);
  }
  expect(doneUnanswered, "no request was ever done and not answered").toBeGreaterThan(0);
});
