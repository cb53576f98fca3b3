// Hostile zones: account `b` sends to 2,500 domains of which each look-up takes as long as the resolver waits, so that
// slots of delivery and of routing are held; the client's mail goes to destinations that are known and to fresh ones.
import type { Attack, Facts } from "../attack.ts";
import type { Stand } from "../stand.ts";
import { asker, dialTls, requestText, source, tally, until } from "../wire.ts";

const recipients = 50;

async function after(stand: Stand): Promise<Facts> {
  const { json } = await stand.admin("GET", "/v1/status");
  return {
    "DNS questions": await stand.world.ask<number>("asked"),
    "queue at the end": JSON.stringify(json?.queue ?? {}),
  };
}

/** So many recipients, each in a domain of its own: PREFIX0.test … */
export async function flood(
  https: number,
  key: string,
  domain: (n: number) => string,
  count: number,
): Promise<Facts> {
  const answers = tally();
  const socket = await dialTls(https, source(30, 0, 1));
  const ask = socket ? asker(socket) : null;
  for (let sent = 0; ask && sent < count; sent += recipients) {
    const to = Array.from({ length: recipients }, (_, i) => `r@${domain(sent + i)}`);
    const body = JSON.stringify({ from: "a@b.test", to, subject: "x", text: "x" });
    const heard = await ask(requestText("POST", "/v1/messages", key, body));
    answers.add(
      heard === null ? "closed" : `${heard.status} ${/"detail":"[^"]*"/.exec(heard.text)?.[0] ?? ""}`,
    );
    if (heard === null) break;
  }
  return answers.facts(`messages of ${recipients}:`);
}

function zoneAttack(name: string, title: string, domain: (n: number) => string, count: number): Attack {
  return {
    name,
    title,
    prepare: async (stand) => ({ key: await stand.keyOf("b", "send") }),
    async run({ https }, { key = "" }, signal) {
      const facts = await flood(https, key, domain, count);
      await until(signal);
      return facts;
    },
    after,
  };
}

export const dnsAttacks: Attack[] = [
  zoneAttack(
    "dns-mx",
    "account b sends 2,500 mails to domains of 3,000 MX each, whose hosts nobody answers for",
    (n) => `many${n}.test`,
    2_500,
  ),
  zoneAttack(
    "dns-dead",
    "account b sends 2,000 mails to domains whose name servers are silent",
    (n) => `dead${n}.test`,
    2_000,
  ),
];
