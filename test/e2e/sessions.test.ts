// Many mail programs at once, within the limits as they are by default: 980 idle sessions and 20 that send a hundred
// mails a second between them; and 20 of the largest mails at the same time. Nobody is refused but who comes
// beyond the limit, and memory stays small.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { startAppliance, type Appliance } from "../support/appliance.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { publish } from "../support/publish.ts";
import { connectSmtp, type SmtpClient } from "../support/smtp-client.ts";

const sessions = 1_000;
const senders = 20;
const perSecond = 100;
const seconds = 5;
const recipient = "delivered@simulator.svc";
const header = "From: shop@ok.test\r\nSubject: one of many\r\n\r\n";

interface House {
  svc: Appliance;
  /** A session that is logged in. */
  open(localAddress: string): Promise<SmtpClient>;
}

async function withHouse(work: (house: House) => Promise<void>): Promise<void> {
  const dns = await startDnsServer();
  const svc = await startAppliance({ config: { dns: { servers: [dns.server] } } });
  try {
    const added = await svc.admin("POST", "/v1/smtp_credentials", { name: "many", test: true });
    const { username, password } = added.json;
    await publish(svc, dns, "ok.test");
    const token = Buffer.from(`\0${username}\0${password}`).toString("base64");
    await work({
      svc,
      async open(localAddress) {
        const client = await connectSmtp({ port: svc.tlsPort, tls: true, localAddress });
        expect((await client.answer()).text).toMatch(/^220 /);
        await client.command("EHLO client.test");
        expect((await client.command(`AUTH PLAIN ${token}`)).code).toBe(235);
        return client;
      },
    });
  } finally {
    await svc.stop();
    await dns.stop();
  }
}

/** The most that the process has had in memory until `work` has ended, in MB. */
async function peakWhile(svc: Appliance, work: Promise<unknown>): Promise<number> {
  const done = work.then(() => true);
  let peak = 0;
  while (!(await Promise.race([done, sleep(100, false)])))
    peak = Math.max(peak, residentMb(svc.process.pid ?? 0));
  return peak;
}

function residentMb(pid: number): number {
  const [, kb = "0"] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Math.round(Number(kb) / 1_024);
}

test("1,000 open sessions and 100 mails a second: none is refused, under 400 MB", () =>
  withHouse(async ({ svc, open }) => {
    const clients: SmtpClient[] = [];
    while (clients.length < sessions)
      clients.push(...(await Promise.all(Array.from({ length: 25 }, (_, i) => open(`127.0.1.${1 + i}`)))));

    const beyond = await connectSmtp({ port: svc.tlsPort, tls: true, localAddress: "127.0.2.1" });
    expect((await beyond.answer()).text).toMatch(/^421 4\.7\.0 /);

    const mail = `${header}${`${"x".repeat(70)}\r\n`.repeat(55)}.\r\n`;
    const codes = new Map<number, number>();
    let slowestMs = 0;
    const work = clients.slice(0, senders).map(async (client) => {
      const began = performance.now();
      for (let n = 0; n < (perSecond * seconds) / senders; n++) {
        const due = began + (n * senders * 1_000) / perSecond;
        await sleep(Math.max(0, due - performance.now()));
        const asked = performance.now();
        const { code } = await client.submit("a@ok.test", [recipient], mail);
        slowestMs = Math.max(slowestMs, performance.now() - asked);
        codes.set(code, (codes.get(code) ?? 0) + 1);
      }
    });
    const peak = await peakWhile(svc, Promise.all(work));
    const idle = await Promise.all(clients.slice(senders).map((client) => client.command("NOOP")));
    console.log(`1,000 sessions: peak ${peak} MB, slowest mail ${Math.round(slowestMs)} ms`);
    expect(idle.every(({ code }) => code === 250)).toBe(true);
    expect([...codes]).toEqual([[250, perSecond * seconds]]);
    expect(peak).toBeLessThan(400);
    for (const client of clients) client.end();
  }));

test("20 mails of 25 MB at once, every other one in one line, are all taken under 600 MB", () =>
  withHouse(async ({ svc, open }) => {
    const line = `${"x".repeat(76)}\r\n`;
    const lines = Buffer.from(`${header}${line.repeat(Math.floor(26_000_000 / line.length))}.\r\n`);
    // Encoded, it must still be under 25 MB.
    const oneLine = Buffer.from(`${header}${"0123456789 ".repeat(2_250_000)}\r\n.\r\n`);
    const clients = await Promise.all(Array.from({ length: 20 }, () => open("127.0.1.1")));
    const began = performance.now();
    const answers = Promise.all(
      clients.map((client, i) => client.submit("a@ok.test", [recipient], i % 2 === 0 ? lines : oneLine)),
    );
    const peak = await peakWhile(svc, answers);
    console.log(`20 × 25 MB: peak ${peak} MB, ${Math.round(performance.now() - began)} ms`);
    expect((await answers).map(({ code }) => code)).toEqual(Array(20).fill(250));
    expect(peak).toBeLessThan(600);
    for (const client of clients) client.end();
  }));
