// One account against another: account `b` takes all it may of the queue, of webhooks, of domains and of the machine's
// addresses, while the client is account `default`.
import { setTimeout as wait } from "node:timers/promises";
import type { Attack, Facts } from "../attack.ts";
import { addDomain } from "../stand.ts";
import { asker, dialTls, requestText, source, tally, until } from "../wire.ts";

/** What an account may have; before there was a limit, this row made 300. */
const endpoints = 50;
const domains = 1_000;

/** Requests in loops, as fast as they are answered; 429 is waited for a little. */
async function loop(
  https: number,
  atATime: number,
  signal: AbortSignal,
  request: (n: number) => string,
): Promise<Facts> {
  const answers = tally();
  let made = 0;
  const one = async (n: number): Promise<void> => {
    while (!signal.aborted) {
      const socket = await dialTls(https, source(60, n, 1));
      const ask = socket ? asker(socket) : null;
      for (; ask && !signal.aborted;) {
        const heard = await ask(request(made++));
        const words = /"detail":"[^"]*"/.exec(heard?.text ?? "")?.[0] ?? "";
        answers.add(heard === null ? "closed" : `${heard.status} ${words}`);
        if (heard === null) break;
        if (heard.status >= 400) await wait(100);
      }
      if (!socket) await wait(200);
    }
  };
  await Promise.race([Promise.all(Array.from({ length: atATime }, (_, n) => one(n))), until(signal)]);
  return answers.facts("answered");
}

async function inTurn(
  count: number,
  make: (n: number) => Promise<{ status: number; text: string }>,
): Promise<{ made: number; refusal: string }> {
  for (let made = 0; made < count; made++) {
    const { status, text } = await make(made);
    if (status >= 300) return { made, refusal: `${status} ${/"detail":"[^"]*"/.exec(text)?.[0] ?? text}` };
  }
  return { made: count, refusal: "none" };
}

const fiftyAt = (domain: string, more: object) =>
  JSON.stringify({
    from: "a@b.test",
    to: Array.from({ length: 50 }, (_, i) => `r${i}@${domain}`),
    subject: "x",
    text: "x",
    ...more,
  });

/** Endpoints of account b at `urlOf`, and its test mail: 50 events a request. */
const webhooksAt = (
  name: string,
  what: string,
  urlOf: (n: number, answering: string, closed: string) => string,
): Attack => ({
  name,
  title: `account b has ${endpoints} endpoints that ${what}, and makes as many events as it may`,
  async prepare(stand) {
    const answering = `https://hooks.test:${stand.hooksPort}`;
    const own = await stand.admin("POST", "/v1/webhooks", { url: `${answering}/a` });
    if (own.status !== 201) throw new Error(own.text);
    const { made, refusal } = await inTurn(endpoints, (n) => {
      const url = urlOf(n, answering, `https://closed.test:${stand.hooksPort}`);
      return stand.admin("POST", "/v1/webhooks", { url }, "b");
    });
    const key = await stand.admin("POST", "/v1/keys", { name: "t", scope: "send", test: true }, "b");
    return { key: key.json.key as string, endpoints: String(made), refusal };
  },
  async run({ https }, { key = "", endpoints: made = "", refusal = "" }, signal) {
    const body = fiftyAt("others.test", {});
    const facts = await loop(https, 4, signal, () => requestText("POST", "/v1/messages", key, body));
    return { "endpoints made": made, "the next one": refusal, ...facts };
  },
});

export const accountAttacks: Attack[] = [
  {
    name: "account-queue",
    title: "account b fills the queue (max_queue 5,000) with mail for tomorrow",
    config: { limits: { max_queue: 5_000, min_free_space: "0%" } },
    prepare: async (stand) => ({ key: await stand.keyOf("b", "send") }),
    run({ https }, { key = "" }, signal) {
      const body = fiftyAt("others.test", { send_at: new Date(Date.now() + 86_400_000).toISOString() });
      return loop(https, 2, signal, () => requestText("POST", "/v1/messages", key, body));
    },
    async after(stand) {
      const { json } = await stand.admin("GET", "/v1/status");
      return { "queue at the end": JSON.stringify(json?.queue ?? {}) };
    },
  },
  webhooksAt("account-webhooks", "are dead or never answer", (n, answering, closed) =>
    n % 2 ? `${answering}/slow${n}` : `${closed}/${n}`,
  ),
  webhooksAt("account-webhooks-fail", "answer 500 at once", (n, answering) => `${answering}/fail${n}`),
  webhooksAt("account-webhooks-live", "answer 200 at once", (n, answering) => `${answering}/live${n}`),
  {
    name: "account-domains",
    title: `account b has ${domains} domains in silent zones and has them verified, 16 at a time`,
    async prepare(stand) {
      const { made, refusal } = await inTurn(domains, (n) =>
        stand.admin("POST", "/v1/domains", { name: `silent${n}.test` }, "b"),
      );
      return { key: await stand.keyOf("b", "admin"), domains: String(made), refusal };
    },
    async run({ https }, { key = "", domains: made = "", refusal = "" }, signal) {
      const facts = await loop(https, 16, signal, (n) =>
        requestText("POST", `/v1/domains/silent${n % domains}.test/verify`, key, "{}"),
      );
      return { "domains made": made, "the next one": refusal, ...facts };
    },
    async after(stand) {
      const began = performance.now();
      const set = (name: string, type: string, values: string[]): Promise<unknown> =>
        stand.world.ask("set", { name, type, values });
      await addDomain(stand.admin, set, "late.test", "default");
      return { "then a domain of the client is verified within ms": Math.round(performance.now() - began) };
    },
  },
  {
    name: "addresses",
    title: "account b puts addresses of the machine, with EHLO names of others, into its pool",
    prepare: async (stand) => ({ key: await stand.keyOf("b", "admin") }),
    async run({ https }, { key = "" }) {
      const socket = await dialTls(https, "127.0.61.1");
      if (!socket) return { failed: "not let in" };
      const ask = asker(socket);
      const post = async (path: string, body: object): Promise<string> => {
        const heard = await ask(requestText("POST", path, key, JSON.stringify(body)));
        const [, status, detail] = /"status":"(\w+)"/.exec(heard?.text ?? "") ?? [];
        const words = detail ?? /"(?:errors|detail)":.*/.exec(heard?.text ?? "")?.[0] ?? "";
        return `${heard?.status} ${status ?? ""} ${words}`.slice(0, 300);
      };
      const pool = await post("/v1/ip_pools", { name: "p" });
      const add = (ip_address: string) =>
        post("/v1/ip_pools/p/ips", { ip_address, hostname: "mail.bank.example" });
      return {
        pool,
        "an address of the machine": await add("127.0.0.1"),
        "an address of others": await add("203.0.113.9"),
      };
    },
  },
];
