// Readers of tracked mail: a thousand opens a second of as many recipients as a newsletter has, and tokens that are made up.
import { randomBytes } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { nowMs, type Attack, type Facts } from "../attack.ts";
import type { Stand } from "../stand.ts";
import { asker, dialTls, inParallel, requestText, source, tally } from "../wire.ts";
import type { Arrived } from "../world.ts";

const perSecond = 1_000;
const connections = 100;
/** So many that none of them is opened more than 15 times a minute: 20 are recorded. */
const [messages, recipients] = [80, 50];
const browser = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n";

/** Sends a tracked newsletter of the account b, and answers the paths of its pixels. */
async function pixels(stand: Stand): Promise<string[]> {
  const tracking = { enabled: true, opens: true };
  await stand.admin("PATCH", "/v1/domains/b.test", { tracking }, "b");
  for (let n = 0; n < messages; n++) {
    const to = Array.from({ length: recipients }, (_, i) => `reader${n}.${i}@others.test`);
    const mail = { from: "a@b.test", to, subject: "News", html: "<p>News</p>" };
    const { status, text } = await stand.admin("POST", "/v1/messages", mail, "b");
    if (status !== 202) throw new Error(`${status} ${text}`);
  }
  for (let tries = 0; ; tries++) {
    const mails = await stand.world.ask<Arrived[]>("mails", "^reader");
    if (mails.length >= messages * recipients) return mails.map(({ head }) => pixelOf(head));
    if (tries > 600) throw new Error(`${mails.length} copies arrived`);
    await wait(100);
  }
}

function pixelOf(mail: string): string {
  const plain = mail.replace(/=\r\n/g, "").replaceAll("=3D", "=");
  const path = /src="https:[^"]*?(\/o\/[\w-]+)"/.exec(plain)?.[1];
  if (path === undefined) throw new Error(`no pixel in ${mail.slice(-500)}`);
  return path;
}

/** So many requests a second over kept connections, each at its time, in turn. */
async function ask(https: number, signal: AbortSignal, path: (n: number) => string): Promise<Facts> {
  const answers = tally();
  const began = nowMs();
  let [next, late] = [0, 0];
  await inParallel(connections, connections, signal, async (n) => {
    let exchange: ReturnType<typeof asker> | null = null;
    let socket: Awaited<ReturnType<typeof dialTls>> = null;
    while (!signal.aborted) {
      const turn = next++;
      const due = began + (turn * 1_000) / perSecond;
      const early = due - nowMs();
      if (early > 1) await wait(early);
      late = Math.max(late, nowMs() - due);
      if (socket === null || socket.destroyed || socket.readableEnded) {
        socket = await dialTls(https, source(26, n, 5));
        exchange = socket ? asker(socket) : null;
      }
      const heard = (await exchange?.(requestText("GET", path(turn), null, null, browser))) ?? null;
      answers.add(heard === null ? "closed" : String(heard.status));
      if (heard && /\r\nconnection: close/i.test(heard.text)) socket = null;
    }
    socket?.destroy();
  });
  const seconds = (nowMs() - began) / 1_000;
  return {
    "asked a second": Math.round(next / seconds),
    "latest request, ms": Math.round(late),
    ...answers.facts("answered"),
  };
}

export const trackingAttacks: Attack[] = [
  {
    name: "tracking-opens",
    title: `${perSecond} opens a second of ${messages * recipients} recipients, over ${connections} connections from 20 addresses`,
    prepare: async (stand) => ({ paths: (await pixels(stand)).join(" ") }),
    async run({ https }, { paths = "" }, signal) {
      const all = paths.split(" ");
      return ask(https, signal, (n) => all[n % all.length] ?? "/");
    },
    async after(stand) {
      const { json } = await stand.admin("GET", "/v1/stats", undefined, "b");
      return { "opens counted": json.totals.opened, "unique opens": json.totals.unique_opened };
    },
  },
  {
    name: "tracking-tokens",
    title: `${perSecond} made-up tokens a second, over ${connections} connections from 20 addresses`,
    run: ({ https }, _given, signal) =>
      ask(https, signal, (n) => `/${"ocu"[n % 3]}/${randomBytes(38).toString("base64url")}`),
  },
];
