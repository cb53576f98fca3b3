// What is around the product while it is attacked, as a process of its own: a DNS, a receiver that takes all mail, and
// an endpoint of webhooks. It counts what arrives, by kind of destination and by time.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer as createHttpsServer } from "node:https";
import { createServer, type Socket } from "node:net";
import { nowMs } from "./attack.ts";
import { answering } from "./child.ts";
import { startDns, type Zone } from "./dns.ts";

export interface WorldStart {
  dnsPort: number;
  smtpPort: number;
  hooksPort: number;
  certificate: string;
  key: string;
}

export interface Arrived {
  mailFrom: string;
  rcptTo: string;
  /** Up to 16 KB of the mail. */
  head: string;
}

export interface Arrivals {
  known: number;
  fresh: number;
  other: number;
  /** Milliseconds from an event to its arrival at the endpoint. */
  hooks: number[];
}

export const addresses = { known: "127.0.0.2", live: "127.0.0.3", others: "127.0.0.4" };
const keptMails = 5_000;
const keptHead = 16_384;

const times: Record<"known" | "fresh" | "other", number[]> = { known: [], fresh: [], other: [] };
const hooks: { at: number; delayMs: number }[] = [];
const mails: Arrived[] = [];
let zone: Zone | null = null;

function serveSmtp(socket: Socket): void {
  let [held, data] = ["", null as string | null];
  let [mailFrom, rcptTo] = ["", ""];
  const say = (line: string): void => void socket.write(`${line}\r\n`, "latin1");
  const command = (line: string): void => {
    const verb = line.slice(0, 4).toUpperCase();
    if (verb === "EHLO") return say("250-receiver.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SMTPUTF8");
    if (verb === "MAIL") mailFrom = /<(.*?)>/.exec(line)?.[1] ?? "";
    if (verb === "RCPT") rcptTo = /<(.*?)>/.exec(line)?.[1] ?? "";
    if (verb === "QUIT") return void socket.end("221 bye\r\n");
    if (verb !== "DATA") return say("250 ok");
    data = "";
    held = `\r\n${held}`; // so that the end is found where there is nothing before it
    say("354 go on");
  };
  const dataEnds = (): boolean => {
    const end = held.indexOf("\r\n.\r\n");
    const read = end < 0 ? Math.max(0, held.length - 4) : end;
    data = `${data ?? ""}${held.slice(0, Math.min(read, keptHead))}`.slice(0, keptHead);
    held = held.slice(end < 0 ? read : end + 5);
    if (end < 0) return false;
    arrived({ mailFrom, rcptTo, head: data });
    data = null;
    say("250 taken");
    return true;
  };
  const nextCommand = (): boolean => {
    const end = held.indexOf("\r\n");
    if (end < 0) return false;
    const line = held.slice(0, end);
    held = held.slice(end + 2);
    command(line);
    return true;
  };
  socket.setNoDelay(true).on("error", () => socket.destroy());
  say("220 receiver.test ESMTP");
  socket.on("data", (chunk) => {
    held += chunk.toString("latin1");
    while (data === null ? nextCommand() : dataEnds());
  });
}

function arrived(mail: Arrived): void {
  const domain = mail.rcptTo.slice(mail.rcptTo.lastIndexOf("@") + 1);
  const kind = domain === "known.test" ? "known" : domain.startsWith("fresh") ? "fresh" : "other";
  times[kind].push(nowMs());
  if (kind !== "fresh") mails.push(mail);
  if (mails.length > keptMails) mails.splice(0, 1_000);
}

async function start({ dnsPort, smtpPort, hooksPort, certificate, key }: WorldStart): Promise<void> {
  zone = await startDns(dnsPort, addresses.live);
  for (const address of Object.values(addresses))
    await once(createServer(serveSmtp).listen(smtpPort, address), "listening");
  const endpoint = createHttpsServer(
    { cert: readFileSync(certificate), key: readFileSync(key) },
    (req, res) => {
      if (req.url?.startsWith("/slow")) return void req.resume(); // never answered
      const status = req.url?.startsWith("/fail") ? 500 : 200;
      if (req.url !== "/a") return void req.resume().on("end", () => res.writeHead(status).end());
      const chunks: Buffer[] = [];
      req.on("data", (chunk: Buffer) => chunks.push(chunk));
      req.on("end", () => {
        const said = JSON.parse(Buffer.concat(chunks).toString()) as { received_at?: string };
        const at = Date.parse(said.received_at ?? "");
        if (Number.isFinite(at)) hooks.push({ at: nowMs(), delayMs: Date.now() - at });
        res.end();
      });
    },
  );
  await once(endpoint.listen(hooksPort, "127.0.0.1"), "listening");
}

const within = (list: number[], from: number, to: number): number =>
  list.filter((at) => at >= from && at < to).length;

answering({
  start,
  set: ({ name, type, values }: { name: string; type: string; values: string[] }) =>
    zone?.set(name, type, values),
  asked: () => zone?.asked() ?? 0,
  mails: (pattern: string) => mails.filter(({ rcptTo }) => new RegExp(pattern).test(rcptTo)),
  arrivals: ({ from, to }: { from: number; to: number }): Arrivals => ({
    known: within(times.known, from, to),
    fresh: within(times.fresh, from, to),
    other: within(times.other, from, to),
    hooks: hooks.filter(({ at }) => at >= from && at < to).map(({ delayMs }) => delayMs),
  }),
});
