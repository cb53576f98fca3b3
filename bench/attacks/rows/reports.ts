// Mail to port 25 by strangers: complaints forged with ids that were guessed, a bounce that names other recipients, mails
// that are slow to read, and sessions that hold what they have sent.
import type { Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { arfMail, dsnMail } from "../../../test/support/reports.ts";
import { connectSmtp, type SmtpClient } from "../../../test/support/smtp-client.ts";
import type { Attack, Facts } from "../attack.ts";
import type { Stand } from "../stand.ts";
import { asker, dialTcp, dialTls, hold, requestText, source, tally } from "../wire.ts";
import type { Arrived } from "../world.ts";

const complaints = "fbl@mail.svc.test";

async function session(port: number, localAddress: string): Promise<SmtpClient> {
  const client = await connectSmtp({ port, localAddress });
  const banner = await client.answer();
  if (banner.code !== 220) throw new Error(banner.text);
  await client.command("EHLO far.test");
  return client;
}

async function suppressionsOf(stand: Stand): Promise<number> {
  let [count, cursor] = [0, ""];
  for (let page = 0; page < 100; page++) {
    const { json } = await stand.admin("GET", `/v1/suppressions?limit=100${cursor && `&cursor=${cursor}`}`);
    count += (json?.data as unknown[] | undefined)?.length ?? 0;
    cursor = (json?.next_cursor as string | null | undefined) ?? "";
    if (cursor === "") break;
  }
  return count;
}

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const valueOf = (text: string): number =>
  Array.from(text).reduce((sum, one) => sum * 32 + alphabet.indexOf(one), 0);
const textOf = (value: number): string =>
  Array.from({ length: 8 }, (_, i) => alphabet[Math.floor(value / 32 ** (7 - i)) % 32] ?? "").join("");

/** Ids that lie between and beside one's own of the same millisecond: likely first. */
function guesses(own: Map<string, Set<number>>): string[] {
  const [between, beside]: [string[], string[]] = [[], []];
  for (const [front, lows] of own) {
    const [least, most] = [Math.min(...lows), Math.max(...lows)];
    for (let low = least - 2; low <= most + 2; low++)
      if (!lows.has(low)) (low > least && low < most ? between : beside).push(front + textOf(low));
  }
  own.clear();
  return [...between.slice(0, 2_000), ...beside.slice(0, 4_000)];
}

const perMail = 20;

async function forge(
  { https, inbound }: { https: number; inbound: number },
  signal: AbortSignal,
): Promise<Facts> {
  const own = new Map<string, Set<number>>();
  let [seen, tried] = [0, 0];
  const answers = tally();
  const watch = async (n: number): Promise<void> => {
    const socket = await dialTls(https, source(50, n, 1));
    const ask = socket ? asker(socket) : null;
    while (ask && !signal.aborted) {
      const heard = await ask(requestText("GET", "/healthz", null, null));
      const id = /x-request-id: req_([0-9a-z]{26})/i.exec(heard?.text ?? "")?.[1];
      if (heard === null) break;
      if (heard.status === 429) await wait(100);
      if (id === undefined) continue;
      seen++;
      const front = id.slice(0, 18);
      own.set(front, (own.get(front) ?? new Set()).add(valueOf(id.slice(18))));
      await wait(1);
    }
  };
  const report = async (n: number): Promise<void> => {
    const client = await session(inbound, source(51, n, 1)).catch(() => null);
    while (client && !signal.aborted) {
      const ids = guesses(own);
      await wait(1_000); // until the mail is delivered
      for (let at = 0; at < ids.length && !signal.aborted; at += perMail) {
        const some = ids.slice(at, at + perMail);
        const returned = some.map((id) => `Message-ID: <${id}@mail.svc.test>`);
        const { text } = await client
          .submit("", [complaints], `${arfMail({ to: complaints, returned })}\r\n.\r\n`)
          .catch((error: unknown) => ({ text: String(error) }));
        answers.add(text.slice(0, 60));
        tried += some.length;
        if (!text.startsWith("250")) break;
      }
    }
  };
  await Promise.all([0, 1, 2, 3].flatMap((n) => [watch(n), report(n)]));
  return { "request ids seen": seen, "ids guessed": tried, ...answers.facts("reports answered") };
}

const slowMails = (): Buffer[] => {
  const size = 1_000_000;
  const fill = (piece: string, most = size): string => piece.repeat(Math.floor(most / piece.length));
  const multi = 'From: mailer-daemon@far.test\r\nContent-Type: multipart/mixed; boundary="b"\r\n\r\n';
  const folded = (size_: number): string => fill(`A: a\r\n${fill(" a\r\n", 38_000)}`, size_);
  return [
    `${folded(190_000)}\r\nx`,
    `${multi}${fill(`--b\r\n${folded(190_000)}\r\nx\r\n`)}--b--`,
    `${multi}${fill(`--b\r\nContent-Type: text/plain\r\n\r\n${fill("a@b.test: 550 5.1.1 user unknown\r\n", 9_000)}\r\n`)}--b--`,
    `From: mailer-daemon@far.test\r\nSubject: Undeliverable\r\n\r\n${fill("could not be delivered <a1@b.test> 550 5.1.1 unknown\r\n")}`,
    `From: mailer-daemon@far.test\r\nSubject: Undeliverable\r\n\r\n${fill("\r\n")}`,
    `From: mailer-daemon@far.test\r\nContent-Type: text/html\r\n\r\n${fill("<a <b <!-- &amp;\r\n")}`,
    `From: x@far.test\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n${fill("=3D=3D=3D=3D =\r\n")}`,
    `From: x@far.test\r\n\r\n${fill("b+aaaaaaaaaaaaaaaaaaaaaaaaaaaa@x msg_00000000000000000000000000\r\n")}`,
  ].map((text) => Buffer.from(`${text}\r\n.\r\n`));
};

export const reportAttacks: Attack[] = [
  {
    name: "forged-complaints",
    title: "complaints about ids that lie between one's own: the client's recipients are suppressed",
    run: (target, _given, signal) => forge(target, signal),
    async after(stand) {
      const { json } = await stand.admin("GET", "/v1/accounts/default");
      return {
        "recipients of the client suppressed": await suppressionsOf(stand),
        "the client's account": json?.paused_at ? `paused: ${json.pause_reason}` : String(json?.status),
      };
    },
  },
  {
    name: "co-recipients",
    title: "one of 20 recipients sends a bounce to his return path that names the 19 others",
    async prepare(stand) {
      const to = Array.from({ length: 20 }, (_, n) => `v${n}@others.test`);
      const body = { from: "a@ok.test", to, subject: "x", text: "x" };
      const { json, text } = await stand.admin("POST", "/v1/messages", body);
      if (typeof json?.id !== "string") throw new Error(text);
      let mails: Arrived[] = [];
      for (let i = 0; i < 100 && mails.length < to.length; i++) {
        await wait(100);
        mails = await stand.world.ask<Arrived[]>("mails", "^v\\d+@others");
      }
      const path = mails.find(({ rcptTo }) => rcptTo === "v0@others.test")?.mailFrom ?? "";
      return { id: json.id, path, arrived: String(mails.length) };
    },
    async run({ inbound }, { path = "" }) {
      const client = await session(inbound, "127.0.52.1");
      const said = new Set<string>();
      const names = Array.from({ length: 19 }, (_, n) => `v${n + 1}@others.test`);
      const all = dsnMail({ to: path, recipient: names[0] ?? "" }).replace(
        /(Final-Recipient: [^]*?\r\n\r\n)/,
        (block) => names.map((name) => block.replace(/rfc822; \S+/, `rfc822; ${name}`)).join(""),
      );
      for (const mail of [all, ...names.map((name) => dsnMail({ to: path, recipient: name }))]) {
        const { text } = await client.submit("", [path], `${mail.replace(/^\./gm, "..")}\r\n.\r\n`);
        said.add(text);
      }
      client.end();
      return { "port 25 answered": [...said].join(" | ") };
    },
    async after(stand, { id = "" }) {
      const { json } = await stand.admin("GET", `/v1/messages/${id}`);
      const others = (
        (json?.recipients ?? []) as { status: string; email?: string; address?: string }[]
      ).slice(1);
      const bounced = others.filter(({ status }) => status === "bounced").length;
      return {
        "co-recipients bounced, of 19": bounced,
        "suppressed recipients": await suppressionsOf(stand),
      };
    },
  },
  {
    name: "port25-large",
    title:
      "8 sessions from 4 addresses send mails of 1 MB to fbl@ that are slow to read, one after the other",
    async run({ inbound }, _given, signal) {
      const mails = slowMails();
      const answers = tally();
      let [sent, slowest] = [0, 0];
      const loop = async (n: number): Promise<void> => {
        for (let at = n; !signal.aborted; at++) {
          try {
            const client = await session(inbound, source(53, n, 2));
            for (; !signal.aborted; at++) {
              const began = performance.now();
              const { text } = await client.submit("", [complaints], mails[at % mails.length] ?? "");
              answers.add(text.slice(0, 80));
              if (!text.startsWith("250")) break;
              sent++;
              slowest = Math.max(slowest, performance.now() - began);
            }
            client.end();
          } catch (error) {
            answers.add(String(error).slice(0, 80));
          }
          await wait(100);
        }
      };
      await Promise.race([Promise.all(Array.from({ length: 8 }, (_, n) => loop(n))), over(signal)]);
      return { "mails taken": sent, "slowest answer ms": Math.round(slowest), ...answers.facts("answered") };
    },
  },
  {
    name: "port25-sessions",
    title: "500 sessions from 25 addresses, each with 1 MB of a mail that does not end",
    rampSeconds: 6,
    async run({ inbound }, _given, signal) {
      const megabyte = Buffer.alloc(
        1_048_576,
        "the quick brown fox jumps over the lazy dog, all day long\r\n",
      );
      const said = tally();
      const facts = await hold(
        500,
        100,
        signal,
        (n) => dialTcp(inbound, source(54, n % 500, 20)),
        (socket) => fill(socket, megabyte, (text) => said.add(text)),
      );
      return { ...facts, ...said.facts("answered") };
    },
  },
];

/** EHLO, MAIL, RCPT, DATA, then the bytes and no end. */
function fill(socket: Socket, bytes: Buffer, say: (text: string) => void): void {
  const lines = ["EHLO far.test", "MAIL FROM:<>", `RCPT TO:<${complaints}>`, "DATA"];
  socket.on("data", (chunk: Buffer) => {
    const text = chunk.toString("latin1");
    if (!/^\d{3} .*\r\n$/m.test(text)) return;
    if (text.startsWith("4") || text.startsWith("5")) say(text.slice(0, 80).trim());
    const line = lines.shift();
    if (line !== undefined) socket.write(`${line}\r\n`);
    else if (text.startsWith("354")) {
      say("354: the megabyte is written");
      socket.write(bytes);
    }
  });
}

/** Answers that are still held are not waited for. */
async function over(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await wait(100);
}
