// A day of an appliance among receivers that fail: the built program, its DNS, three receiving domains (one of them with
// TLS) and a webhook endpoint, all of which meet faults; senders by REST and SMTP that keep book of what was acknowledged.
// In small it runs in seconds by short waits of svc.yaml; in full it is 24 hours with the program's own waits, whose
// clock libfaketime speeds up sixty times: mail is sent for twenty of them.
import { globSync } from "node:fs";
import { createRandom } from "../../bench/simulate/random.ts";
import { rateTable } from "../../src/access/buckets.ts";
import { dayMs } from "../../src/clock.ts";
import { freePorts, startAppliance, type Answer, type Appliance } from "./appliance.ts";
import { startDnsServer, type DnsServer } from "./dns-server.ts";
import { createFaults, type Faults } from "./faults.ts";
import { publish } from "./publish.ts";
import { connectSmtp } from "./smtp-client.ts";
import { startReceiver, type ReceivedMail, type Receiver } from "./smtp-receiver.ts";
import { startWebhookReceiver, selfSigned, type Reaction, type WebhookReceiver } from "./webhook-receiver.ts";

/** Domain → loopback address of its mail host. The third takes TLS. */
const addresses = { "one.test": "127.0.0.71", "two.test": "127.0.0.72", "three.test": "127.0.0.73" };
export const receivingDomains = Object.keys(addresses);
/** No such domain: what is sent there bounces. */
const missingDomain = "gone.test";

export interface Tempo {
  /** How much faster than the clock on the wall the program's runs. */
  speed: number;
  messages: number;
  /** Between two messages, on the clock on the wall. */
  everyMs: number;
  greylistSeconds: number;
  outbound: object;
  /** Limits of each receiving domain. */
  shaping: object;
  webhooks: object;
  dns: object;
  /** Some recipients are put off until they expire. */
  withExpiry: boolean;
}

const quick = Object.fromEntries(["connect", "greeting", "command", "data"].map((name) => [name, "3s"]));
export const inSmall: Tempo = {
  speed: 1,
  messages: 240,
  everyMs: 30,
  greylistSeconds: 1,
  outbound: { retry: ["1s", "1s", "2s"], timeouts: { ...quick, dot: "10s" } },
  shaping: { connections: 200, per_second: 10_000 },
  webhooks: { schedule: Array.from({ length: 30 }, () => "1s"), timeout: "2s" },
  dns: { timeout: "500ms" },
  withExpiry: false,
};
export const inFull: Tempo = {
  speed: 60,
  messages: 7200,
  everyMs: 166,
  greylistSeconds: 300,
  outbound: { max_age: "4h" },
  shaping: { connections: 10, per_second: 100 },
  // A second of a busy machine is a minute to the program.
  webhooks: { schedule: ["30s", "2m", "10m", ...Array.from({ length: 20 }, () => "30m")], timeout: "1m" },
  dns: {},
  withExpiry: true,
};

/** What a client repeats with the same Idempotency-Key. At sixty times its speed a busy machine is too slow for some. */
const tryAgain: ReadonlySet<number> = new Set([408, 429, 503, 504]);

/** What one message was, as its sender knows it. */
export interface Sent {
  token: string;
  recipients: string[];
  /** null: it was not acknowledged, and may have been accepted all the same. */
  id: string | null;
}

export interface Day {
  svc: Appliance;
  faults: Faults;
  sent: Sent[];
  hook: WebhookReceiver;
  /** What all receivers took, in its order. */
  taken: ReceivedMail[];
  /** How many mails had been taken by then, of each kill. */
  killedAfter: number[];
  /** Sends the day's messages; the program is killed where a third and two thirds of them are sent. */
  play(): Promise<void>;
  /** From now on the program's clock is as fast as the one on the wall, so that it has time to answer. */
  slowDown(): Promise<void>;
  stop(): Promise<void>;
}

export async function startDay(tempo: Tempo, seed: number): Promise<Day> {
  let [since, ahead, speed] = [Date.now(), 0, 1];
  const now = (): number => since + ahead + (Date.now() - since) * speed;
  const random = createRandom(seed + 1);
  const dns = await startDnsServer();
  const faults = createFaults({
    seed,
    attempts: 0.2,
    questions: 0.06,
    domains: receivingDomains,
    greylistSeconds: tempo.greylistSeconds,
    now,
  });
  const taken: ReceivedMail[] = [];
  const [port = 0] = await freePorts(1, "0.0.0.0");
  const receivers = await startReceivers({ dns, faults, taken, port });
  const secret = { secret: "", now, certificate: { notAfter: new Date(since + 3 * dayMs) } };
  const hook = await startWebhookReceiver(secret);
  hook.answer(() => reactionOf(random()));
  const lifted = { burst: 1e6, per_second: 1e6 };
  const svc = await startAppliance({
    ...(tempo.speed === 1 ? {} : { env: () => sped(now() - Date.now(), speed) }),
    config: {
      dns: { servers: [dns.server], ...tempo.dns },
      outbound: {
        port,
        allow_networks: ["127.0.0.0/8"],
        ...tempo.outbound,
      },
      webhooks: { allow_networks: ["127.0.0.0/8", "::1/128"], ca_file: hook.caFile, ...tempo.webhooks },
      limits: {
        min_free_space: "0%",
        rates: Object.fromEntries(Object.keys(rateTable).map((name) => [name, lifted])),
      },
      guard: false,
    },
  });
  await ok(svc.admin("PATCH", "/v1/shaping/default", tempo.shaping));
  const { key } = await ok(svc.admin("POST", "/v1/keys", { name: "day", scope: "admin" }));
  await publish(svc, dns, "ok.test");
  const login = await ok(svc.admin("POST", "/v1/smtp_credentials", { name: "day" }));
  const auth = Buffer.from(`\0${login.username}\0${login.password}`).toString("base64");
  secret.secret = (await ok(svc.admin("POST", "/v1/webhooks", { url: hook.url }))).secret;

  const goOnAt = async (next: number): Promise<void> => {
    if (next === speed) return;
    await svc.kill("SIGTERM");
    [ahead, since, speed] = [now() - Date.now(), Date.now(), next];
    await svc.restart();
  };
  await goOnAt(tempo.speed);
  dns.failBy(faults.onQuestion);

  const sent: Sent[] = [];
  const killedAfter: number[] = [];
  /** Resolves while the program is up. */
  let up: Promise<void> = Promise.resolve();

  const sendByRest = async ({ token, recipients }: Sent): Promise<string | null> => {
    const body = { from: "a@ok.test", to: recipients, subject: token, text: `${token} and nothing else` };
    const answer = await svc
      .api(key, "POST", "/v1/messages", body, { "idempotency-key": token })
      .catch(() => null);
    if (answer === null || tryAgain.has(answer.status)) return null;
    if (answer.status !== 202) throw new Error(`unexpected answer ${answer.status}: ${answer.text}`);
    return answer.json.id;
  };
  const sendBySmtp = async ({ token, recipients }: Sent): Promise<string | null> => {
    const client = await connectSmtp({ port: svc.tlsPort, tls: true });
    try {
      await client.answer();
      await client.command("EHLO client.test");
      if ((await client.command(`AUTH PLAIN ${auth}`)).code !== 235) return null;
      const mail = `From: a@ok.test\r\nTo: ${recipients.join(", ")}\r\nSubject: ${token}\r\n\r\n${token} and nothing else\r\n.\r\n`;
      const { code, text } = await client.submit("a@ok.test", recipients, mail);
      return code === 250 ? (/queued as (msg_\w+)/.exec(text)?.[1] ?? null) : null;
    } finally {
      client.reset();
    }
  };

  /** Until it is acknowledged: by REST with the same key, by SMTP as another mail. */
  const send = async (recipients: string[], byRest: boolean): Promise<void> => {
    for (let message: Sent | null = null; message?.id == null;) {
      await up;
      if (message === null || !byRest) {
        message = { token: `token-${sent.length}-`, recipients, id: null };
        sent.push(message);
      }
      message.id = await (byRest ? sendByRest(message) : sendBySmtp(message)).catch((error: unknown) => {
        if (error instanceof Error && error.message.startsWith("unexpected")) throw error;
        return null;
      });
      if (message.id === null) await pause(100);
    }
  };

  const killAndRestart = async (): Promise<void> => {
    await svc.kill("SIGKILL");
    await Promise.all(receivers.map((receiver) => receiver.waitFor(() => receiver.open === 0)));
    killedAfter.push(taken.length);
    await svc.restart();
  };

  return {
    svc,
    faults,
    sent,
    hook,
    taken,
    killedAfter,
    async play() {
      const underWay: Promise<void>[] = [];
      const failed = Promise.withResolvers<never>();
      failed.promise.catch(() => undefined); // told by the race below
      for (let n = 1; n <= tempo.messages; n++) {
        const sending = send(recipientsOf(n, random, tempo.withExpiry), random() < 0.6);
        underWay.push(sending);
        sending.catch(failed.reject);
        if (n === Math.floor(tempo.messages / 3) || n === Math.floor((tempo.messages * 2) / 3))
          up = killAndRestart();
        await up;
        await Promise.race([pause(tempo.everyMs), failed.promise]);
      }
      await Promise.all(underWay);
    },
    slowDown: () => goOnAt(1),
    async stop() {
      await svc.stop();
      await Promise.all([hook.stop(), dns.stop(), ...receivers.map((receiver) => receiver.stop())]);
    },
  };
}

interface Receiving {
  dns: DnsServer;
  faults: Faults;
  taken: ReceivedMail[];
  port: number;
}

async function startReceivers({ dns, faults, taken, port }: Receiving): Promise<Receiver[]> {
  const tls = await selfSigned({ names: ["mx.three.test"] });
  const { onConnection, onTransaction } = faults;
  const all: Receiver[] = [];
  for (const [domain, address] of Object.entries(addresses)) {
    dns.set(domain, "MX", [`10 mx.${domain}`]);
    dns.set(`mx.${domain}`, "A", [address]);
    const receiver = await startReceiver({
      address,
      port,
      onRcpt: (recipient) => fates.find(({ prefix }) => recipient.startsWith(prefix))?.reply,
      onConnection,
      onTransaction,
      ...(domain === "three.test" ? { tls } : {}),
    });
    receiver.mails.push = (...mails) => {
      taken.push(...mails);
      return taken.length;
    };
    all.push(receiver);
  }
  return all;
}

/** Recipients that are never delivered to, by how their address begins. */
const fates = [
  { prefix: "no-", reply: "550 5.1.1 no such user" },
  { prefix: "never-", reply: "450 4.2.1 not today" },
];
export const isUndeliverable = (recipient: string): boolean =>
  recipient.endsWith(`@${missingDomain}`) || fates.some(({ prefix }) => recipient.startsWith(prefix));

function recipientsOf(n: number, random: () => number, withExpiry: boolean): string[] {
  const count = 1 + Math.floor(random() * 3);
  return Array.from({ length: count }, (_, i) => {
    const kind = random();
    const local = `${kind < 0.03 ? "no-" : withExpiry && kind < 0.04 ? "never-" : ""}r${n}-${i}`;
    const domain = receivingDomains[Math.floor(random() * receivingDomains.length)] ?? "";
    return `${local}@${kind > 0.98 ? missingDomain : domain}`;
  });
}

/** One in five fails. */
function reactionOf(chance: number): Reaction {
  if (chance < 0.1) return { status: 500 };
  if (chance < 0.18) return "drop";
  return chance < 0.2 ? "hang" : { status: 200 };
}

/** The environment of a program whose clock is so far ahead, and so much faster. */
function sped(aheadMs: number, speed: number): Record<string, string> {
  const [library] = globSync("/usr/lib/*/faketime/libfaketime.so.1");
  if (library === undefined)
    throw new Error("a day in full needs libfaketime, which is not installed: apt-get install faketime");
  return { LD_PRELOAD: library, FAKETIME: `+${Math.ceil(aheadMs / 1000)}s x${speed}` };
}

async function ok(asked: Promise<Answer>): Promise<Answer["json"]> {
  const { status, text, json } = await asked;
  if (status >= 300) throw new Error(`unexpected answer ${status}: ${text}`);
  return json;
}

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
