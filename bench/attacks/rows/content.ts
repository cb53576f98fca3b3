// GET /v1/messages/{id}/content of a message that is built to be slow to take apart, four at a time, by its own account.
import { setTimeout as wait } from "node:timers/promises";
import { connectSmtp } from "../../../test/support/smtp-client.ts";
import type { Attack, Given } from "../attack.ts";
import type { Stand } from "../stand.ts";
import { asker, dialTls, requestText, tally } from "../wire.ts";

const atATime = 4;
const megabyte = 1_000_000;
const part = (body: string): string => `--b\r\nContent-Type: text/plain\r\n\r\n${body}\r\n`;
const line = "the quick brown fox jumps over the lazy dog and back again, all day long\r\n";
const multipart = 'Content-Type: multipart/mixed; boundary="b"\r\n\r\n';

function nested(deep: number): string {
  let text = "";
  for (let n = 0; n < deep; n++) text += `Content-Type: multipart/mixed; boundary="b${n}"\r\n\r\n--b${n}\r\n`;
  return `${text}Content-Type: text/plain\r\n\r\n${line.repeat(Math.floor((20 * megabyte) / line.length))}`;
}

const shapes: [name: string, title: string, make: () => string][] = [
  ["lines-1mb", "1 MB of empty lines", () => `\r\n${"\r\n".repeat(500_000)}`],
  ["lines", "25 MB of empty lines", () => `\r\n${"\r\n".repeat(12_500_000)}`],
  ["parts", "10,000 parts, 25 MB", () => `${multipart}${part(line.repeat(32)).repeat(10_000)}--b--\r\n`],
  ["nested-100", "20 MB, nested 100 deep", () => nested(100)],
  ["nested-1000", "20 MB, nested 1,000 deep", () => nested(1000)],
  [
    "header",
    "one header of 1 MB",
    () => `X-Long: a\r\n${` ${"a".repeat(900)}\r\n`.repeat(1_100)}\r\nHello\r\n`,
  ],
  [
    "header-words",
    "one header of 1 MB of encoded words",
    () => `X-Long: a\r\n${` ${"=?utf-8?q?=41?= ".repeat(50)}\r\n`.repeat(1_250)}\r\nHello\r\n`,
  ],
  [
    "part-header",
    "a part with one header of 1 MB",
    () => `${multipart}--b\r\nX-Long: a\r\n${` ${"a".repeat(900)}\r\n`.repeat(1_100)}\r\nHello\r\n--b--\r\n`,
  ],
  [
    "html",
    "20 MB of HTML without text",
    () => `Content-Type: text/html\r\n\r\n${`${"<a><b><".repeat(100)}\r\n`.repeat(28_000)}`,
  ],
];

/** Stored, to be sent tomorrow. */
async function submitted(stand: Stand, body: string): Promise<Given> {
  const client = await connectSmtp({ port: stand.target.starttls, localAddress: "127.0.10.1" });
  await client.answer();
  await client.startTls();
  await client.command(`AUTH PLAIN ${await stand.loginOf("b")}`);
  const sendAt = new Date(Date.now() + 86_400_000).toISOString();
  const head = `From: a@b.test\r\nTo: r@others.test\r\nSubject: x\r\nX-Svc-Send-At: ${sendAt}\r\nMIME-Version: 1.0\r\n`;
  const began = performance.now();
  const { text } = await client.submit("a@b.test", ["r@others.test"], `${head}${body}\r\n.\r\n`);
  client.end();
  const took = `${Math.round(performance.now() - began)} ms`;
  const id = /msg_[0-9a-z]{26}/.exec(text)?.[0] ?? "";
  return { id, submitted: id === "" ? text : `in ${took}`, key: await stand.keyOf("b", "admin") };
}

export const contentAttacks: Attack[] = shapes.map(([name, title, make]) => ({
  name: `content-${name}`,
  title: `${atATime} × GET /v1/messages/{id}/content in a loop: ${title}`,
  prepare: (stand) => submitted(stand, make()),
  async run({ https }, given, signal) {
    const answers = tally();
    const request = requestText("GET", `/v1/messages/${given["id"]}/content`, given["key"] ?? "", null);
    const loop = async (): Promise<void> => {
      while (!signal.aborted && given["id"] !== "") {
        const socket = await dialTls(https, "127.0.10.2");
        const heard = socket ? await Promise.race([asker(socket)(request), wait(30_000, null)]) : null;
        socket?.destroy();
        const code = /"code":"[^"]*"|"detail":"[^"]*"/.exec(heard?.text ?? "")?.[0] ?? "";
        answers.add(heard === null ? "closed or nothing within 30 s" : `${heard.status} ${code}`);
        await wait(20);
      }
    };
    await Promise.race([Promise.all(Array.from({ length: atATime }, loop)), ended(signal)]);
    return { submitted: given["submitted"] ?? "", ...answers.facts("answered") };
  },
}));

/** A request that is still held is not waited for. */
async function ended(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await wait(100);
}
