// The process dies at random moments under load, by kill -9 and by an abort as V8's own. A ledger outside of the product judges: every acknowledged
// message arrives, and a second copy only where the product died before it could keep the receiver's answer.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, freePort, startAppliance, type Answer, type Appliance } from "../support/appliance.ts";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";
import { publish } from "../support/publish.ts";
import { startReceiver, type ReceivedMail, type Receiver } from "../support/smtp-receiver.ts";
import { removeFolder } from "../support/folders.ts";

const port = await freePort();
const kills = 20;
const wanted = 1000;
/** Sends under way at once; SVC_CRASH_SENDERS=40 is all that two cores do. */
const senders = Number(process.env["SVC_CRASH_SENDERS"] ?? 0);
const perSecond = 100;
/** Every other death is an abort, which V8 ends a process with when it finds a fault in itself. */
const deaths = ["SIGKILL", "SIGABRT"] as const;
/**
 * Answers of the receiver that a death may take along: those of twenty connections, each of which may have had its next
 * mail answered while the last was being written down.
 */
const answersInFlight = senders > 0 ? 100 : 50;
const home = mkdtempSync(join(tmpdir(), "svc-crash-"));
let dns: DnsServer;
let receiver: Receiver;
let svc: Appliance;
let key: string;

beforeAll(async () => {
  dns = await startDnsServer({
    "one.test": { MX: ["10 mx.one.test"] },
    "mx.one.test": { A: ["127.0.0.13"] },
  });
  receiver = await startReceiver({ address: "127.0.0.13", port });
  const lifted = { burst: 1_000_000, per_second: 1_000_000 };
  const shapingFile = join(home, "shaping.yaml");
  writeFileSync(
    shapingFile,
    JSON.stringify({ groups: { default: { connections: 20, per_second: 100_000 } } }),
  );
  svc = await startAppliance({
    config: {
      dns: { servers: [dns.server] },
      outbound: {
        port,
        allow_networks: ["127.0.0.0/8"],
        retry: ["1s"],
        ...(senders > 0 ? { shaping_file: shapingFile } : {}),
      },
      ...(senders > 0
        ? { limits: { min_free_space: "0%", rates: { "messages-write": lifted, account: lifted } } }
        : {}),
    },
  });
  key = (await svc.admin("POST", "/v1/keys", { name: "load", scope: "admin" })).json.key;
  await publish(svc, dns, "ok.test");
});

afterAll(async () => {
  await svc?.stop();
  removeFolder(home);
  await Promise.all([receiver?.stop(), dns?.stop()]);
});

const tokenOf = (mail: ReceivedMail): string => /token-(\d+)-/.exec(mail.data.toString())?.[1] ?? "none";
const messageIdOf = (mail: ReceivedMail): string =>
  /^Message-ID: (.*)$/im.exec(mail.data.toString())?.[1] ?? "";

test(
  `kill -9 and aborts at ${kills} random moments: nothing acknowledged is lost, nothing is sent twice without cause`,
  { timeout: 900_000 },
  async () => {
    const acknowledged = new Map<string, string>();
    /** How many mails had arrived by then, of each death. */
    const killedAfter: number[] = [];
    /** Milliseconds from each death until it answers again; told, not judged. */
    const backMs: number[] = [];
    const arrivals: { token: string; messageId: string }[] = [];
    receiver.options.onData = (mail) => {
      arrivals.push({ token: tokenOf(mail), messageId: messageIdOf(mail) });
      return undefined;
    };

    let number = 0;
    let down = false;
    const sendOne = async (): Promise<void> => {
      const token = String(++number);
      const body = {
        from: "a@ok.test",
        to: `r${token}@one.test`,
        subject: "load",
        text: `token-${token}- and nothing else`,
      };
      const answer: Answer | null = await svc.api(key, "POST", "/v1/messages", body).catch(() => null);
      if (answer?.status === 202) acknowledged.set(token, answer.json.id);
      else if (answer && answer.status !== 503)
        throw new Error(`unexpected answer ${answer.status}: ${answer.text}`);
    };

    const inFlight = new Set<Promise<void>>();
    const unfinished = (): boolean => acknowledged.size < wanted || killedAfter.length < kills;
    const fullLoad = async (): Promise<void> => {
      while (unfinished()) {
        if (down) await new Promise((done) => setTimeout(done, 10));
        else await sendOne();
      }
    };
    const load = (async () => {
      if (senders > 0) return void (await Promise.all(Array.from({ length: senders }, fullLoad)));
      while (unfinished()) {
        if (!down) {
          const work: Promise<void> = sendOne().finally(() => inFlight.delete(work));
          inFlight.add(work);
        }
        await new Promise((done) => setTimeout(done, 1000 / perSecond));
      }
      await Promise.all(inFlight);
    })();
    const killer = (async () => {
      for (let i = 0; i < kills; i++) {
        await new Promise((done) => setTimeout(done, 100 + Math.random() * 900));
        const diedAt = performance.now();
        await svc.kill(deaths[i % deaths.length]);
        await receiver.waitFor(() => receiver.open === 0); // what it had already sent is read to its end
        killedAfter.push(arrivals.length);
        down = true;
        await svc.restart();
        down = false;
        backMs.push(Math.round(performance.now() - diedAt));
      }
    })();
    await Promise.all([load, killer]);

    await eventually(
      async () => {
        const seen = new Set(arrivals.map(({ token }) => token));
        return [...acknowledged.keys()].every((token) => seen.has(token));
      },
      undefined,
      "every acknowledged message arriving",
    );
    await eventually(
      async () => {
        const { queue } = (await svc.admin("GET", "/v1/status")).json;
        return queue.queued + queue.deferred + queue.sending === 0;
      },
      undefined,
      "the queue running empty",
    );

    const copies = Map.groupBy(
      arrivals.map((arrival, index) => ({ ...arrival, index })),
      ({ token }) => token,
    );
    const lost = [...acknowledged.keys()].filter((token) => !copies.has(token));
    expect(lost).toEqual([]);
    for (const [token, all] of copies) {
      expect(new Set(all.map(({ messageId }) => messageId)).size, `Message-IDs of ${token}`).toBe(1);
      // Each copy before the last must be among the last arrivals before a death: its answer died with the process.
      for (const { index } of all.slice(0, -1)) {
        const nextKill = killedAfter.find((arrived) => arrived > index) ?? Number.POSITIVE_INFINITY;
        const since = nextKill - index;
        expect(since, `a second copy of ${token} without a lost answer`).toBeLessThanOrEqual(answersInFlight);
      }
    }
    const ledger = {
      acknowledged: acknowledged.size,
      arrived: arrivals.length,
      extra: arrivals.length - copies.size,
      backMs: backMs.toSorted((a, b) => a - b),
    };
    console.info(JSON.stringify(ledger));
    const status = await svc.api(key, "GET", `/v1/messages/${[...acknowledged.values()][0]}`);
    expect(status.json.status).toBe("delivered");
  },
);
