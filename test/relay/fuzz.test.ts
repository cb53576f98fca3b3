// Whatever bytes come, in whatever pieces: each command has exactly one reply, whatever is accepted is a mail, and
// the session goes on or says 421. The relay is the real one, over the real submission.
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { makeRig, type Rig } from "../submission/rig.ts";
import { newAccount } from "../support/account.ts";
import { login, plainToken, startRelay, type RelayHarness } from "../support/relay.ts";
import { here, leastOf } from "../support/cpu.ts";
import type { SmtpClient } from "../support/smtp-client.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");
let rig: Rig;
let house: RelayHarness;

beforeAll(async () => {
  const submission: Pick<Rig["submission"], "relay" | "refuseRecipient"> = {
    relay: (...args) => rig.submission.relay(...args),
    refuseRecipient: (...args) => rig.submission.refuseRecipient(...args),
  };
  house = await startRelay({}, submission);
});
beforeEach(() => {
  rig = makeRig();
});
afterAll(() => house[Symbol.asyncDispose]());

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const commandLine = fc.oneof(
  fc.constantFrom(
    "MAIL FROM:<a@ok.test>",
    "MAIL FROM:<> SIZE=10 BODY=8BITMIME",
    "MAIL FROM:<ä@ok.test> SMTPUTF8",
    "mail from: <a@ok.test> SIZE=99999999999",
    "MAIL FROM:<a@ok.test> SIZE=1 SIZE=2",
    "RCPT TO:<b@x.test>",
    "RCPT TO:<c@x.test>",
    'RCPT TO:<"a>b"@x.test>',
    "RCPT TO:<@a,@b:c@x.test>",
    "RCPT TO:<b@x.test> NOTIFY=NEVER",
    "RCPT TO:<a@b@c>",
    "DATA",
    "DATA",
    "RSET",
    "NOOP",
    "NOOP with words",
    "EHLO again.test",
    "HELO again.test",
    "EHLO",
    "VRFY a",
    "EXPN a",
    "HELP",
    "BDAT 5 LAST",
    "XCLIENT ADDR=1.2.3.4",
    "PROXY TCP4 1.2.3.4 5.6.7.8 1 2",
    "STARTTLS",
    `AUTH PLAIN ${plainToken}`,
    "AUTH PLAIN =",
    "AUTH LOGIN",
    "AUTH PLAIN",
    base64(login.username),
    "*",
    "",
    " ",
    ".",
  ),
  fc.string({ maxLength: 40 }).map((text) => text.replace(/[\r\n]/g, "")),
  fc.uint8Array({ maxLength: 40 }).map((bytes) =>
    Buffer.from(bytes)
      .toString("latin1")
      .replace(/[\r\n]/g, ""),
  ),
);

const transaction = fc
  .tuple(
    fc.constantFrom("MAIL FROM:<a@ok.test>", "MAIL FROM:<>", "MAIL FROM:<ä@ok.test> SMTPUTF8"),
    fc.array(commandLine, { maxLength: 1 }),
  )
  .map(([mail, between]) => [mail, "RCPT TO:<b@x.test>", ...between, "RCPT TO:<c@x.test>", "DATA"]);
/** Transactions, and commands of all kinds between and within them. */
const script = fc
  .array(
    fc.oneof(
      { weight: 2, arbitrary: transaction },
      { weight: 1, arbitrary: commandLine.map((line) => [line]) },
    ),
    {
      maxLength: 6,
    },
  )
  .map((parts) => parts.flat());

const bodyPiece = fc.constantFrom(
  "From: a@ok.test\r\n",
  "From: a@other.test\r\n",
  "Subject: x\r\n",
  "Bcc: c@x.test\r\n",
  "X-Svc-Tags: a\r\n",
  "X-Svc-Idempotency-Key: k\r\n",
  "Content-Type: multipart/mixed; boundary=b\r\n",
  "\r\n--b\r\n",
  "--b--\r\n",
  "Content-Disposition: attachment; filename=a.exe\r\n",
  "\r\n",
  "\r\n\r\n",
  "text\r\n",
  "grün\r\n",
  "..",
  ".",
  "..\r\n",
  "\r",
  "\n",
  "\0",
  " ",
  `${"x".repeat(1_100)}\r\n`,
);
/** Dots are stuffed, so that only the end is one. */
const mailText = fc.array(bodyPiece, { maxLength: 14 }).map((pieces) => {
  const text = `From: a@ok.test\r\n${pieces.join("")}`.replace(/\r\n\./g, "\r\n..");
  return `${text}${text.endsWith("\r\n") ? "" : "\r\n"}.\r\n`;
});

/** One line and one reply at a time; what came, and what was sent in all. */
async function stepwise(lines: string[], mails: string[]): Promise<{ codes: number[]; sent: string }> {
  const client = await house.tlsClient();
  const codes: number[] = [];
  let sent = "";
  const say = async (bytes: string): Promise<number> => {
    sent += bytes;
    client.send(Buffer.from(bytes, "latin1"));
    const { code } = await client.answer();
    codes.push(code);
    return code;
  };
  const left = [...mails];
  for (const line of [`AUTH PLAIN ${plainToken}`, ...lines]) {
    const code = await say(`${Buffer.from(line).toString("latin1")}\r\n`);
    if (code === 354) await say(Buffer.from(left.shift() ?? ".\r\n").toString("latin1"));
    if (code === 421) break;
    await turn();
    expect(client.unread, line).toEqual([]);
  }
  if (codes.at(-1) !== 421) await say("QUIT\r\n");
  await client.closed;
  expect(client.unread).toEqual([]);
  return { codes, sent };
}

/** The same bytes without waiting, in pieces; every reply until the end. */
async function pipelined(sent: string, cuts: number[]): Promise<number[]> {
  const client: SmtpClient = await house.tlsClient();
  const bytes = Buffer.from(sent, "latin1");
  let at = 0;
  for (const cut of cuts) {
    client.send(bytes.subarray(at, (at += cut)));
    if (cut % 3 === 0) await turn();
  }
  client.send(bytes.subarray(at));
  await client.closed;
  return client.unread.map(({ code }) => code);
}

test("each command has one reply, the same ones when all come at once in any pieces", async () => {
  await fc.assert(
    fc.asyncProperty(
      script,
      fc.array(mailText, { maxLength: 6 }),
      fc.array(fc.integer({ min: 1, max: 50 }), { maxLength: 40 }),
      async (lines, mails, cuts) => {
        rig = makeRig();
        const { codes, sent } = await stepwise(lines, mails);
        const taken = rig.store.accepted.length;
        rig = makeRig();
        expect(await pipelined(sent, cuts)).toEqual(codes);
        expect(rig.store.accepted).toHaveLength(taken);
      },
    ),
    { numRuns: 300 },
  );
  expect(house.logged.filter((line) => line.startsWith("error"))).toEqual([]);
});

test("data of any bytes in any pieces has one reply, and what is taken is a mail of its sender", async () => {
  const client = await house.loggedIn();
  await fc.assert(
    fc.asyncProperty(
      mailText,
      fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 40 }),
      async (text, cuts) => {
        rig = makeRig();
        for (const line of ["MAIL FROM:<a@ok.test>", "RCPT TO:<b@x.test>", "DATA"])
          await client.command(line);
        const bytes = Buffer.from(text);
        let at = 0;
        for (const cut of cuts) {
          client.send(bytes.subarray(at, (at += cut)));
          await turn();
        }
        client.send(bytes.subarray(at));
        const { code } = await client.answer();
        expect([250, 550, 553]).toContain(code);
        expect(rig.store.accepted).toHaveLength(code === 250 ? 1 : 0);
        expect((await client.command("RSET")).code).toBe(250);
        if (code !== 250) return;
        const stored = rig.store.bytes().toString("latin1");
        expect(stored.replaceAll("\r\n", "")).not.toMatch(/[\r\n\0]/);
        expect(stored.match(/^From: /gm)?.length).toBeGreaterThanOrEqual(1);
        expect(Math.max(...stored.split("\r\n").map((line) => line.length))).toBeLessThanOrEqual(998);
        expect(stored.slice(0, stored.indexOf("\r\n\r\n"))).not.toMatch(/^(?:bcc|x-svc-)/im);
      },
    ),
    { numRuns: 600 },
  );
  expect(house.logged.filter((line) => line.startsWith("error"))).toEqual([]);
});

const many = (text: string, bytes: number): string => text.repeat(Math.ceil(bytes / text.length));
const inHeader = (field: string): string => `From: a@ok.test\r\n${field}\r\n\r\nx\r\n`;
/** `text` folded to lines of 900, as one field. */
const folded = (name: string, text: string): string =>
  inHeader(`${name}: ${(text.match(/.{1,900}/gs) ?? []).join("\r\n ")}`);
const kb90 = 90_000;
const hostile: [string, string][] = [
  ["open comments in From", `From: ${many("(", 900)}\r\n ${many("(", 900)}\r\n\r\nx\r\n`],
  ["angle brackets in From", `From: ${many("<", 900)} a@ok.test\r\n\r\nx\r\n`],
  ["many authors", folded("From", many("a@ok.test, ", kb90)).replace("From: a@ok.test\r\n", "")],
  ["many encoded words", folded("Subject", many("=?utf-8?q?=C3=BC?= ", kb90))],
  ["encoded words that never end", folded("Subject", many("=?utf-8?q?", kb90))],
  ["brackets in metadata", folded("X-Svc-Metadata", many("[", kb90))],
  ["commas in tags", folded("X-Svc-Tags", many(",a", kb90))],
  ["parameters", folded("Content-Type", `multipart/mixed${many("; boundary*0*=a''x", kb90)}`)],
  ["quotes in a parameter", folded("Content-Type", `a/b; name=${many('"\\', kb90)}`)],
  [
    "escapes in a file name",
    folded("Content-Disposition", `attachment; filename*=utf-8''${many("%2E", kb90)}`),
  ],
  [
    "letters in a file name",
    folded("Content-Disposition", `attachment; filename="${many("\u1e9b\u0323.", kb90)}"`),
  ],
  ["white space in fields", inHeader(many(`X:${many(" ", 900)}\r\n`, kb90).trimEnd())],
  ["short fields", inHeader(many("a:\r\n", kb90).trimEnd())],
  [
    "lines that could be delimiters",
    `From: a@ok.test\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${many("--b\r\n", 3_000_000)}`,
  ],
  ["a line of 5 MB", `From: a@ok.test\r\n\r\n${many("ä ", 5_000_000)}\r\n`],
  ["white space of 5 MB", `From: a@ok.test\r\n\r\n${many(" \t", 5_000_000)}\r\n`],
  ["empty lines", `From: a@ok.test\r\n\r\n${many("\r\n", 3_000_000)}`],
];

/** The longest that the loop was held up while `bytes` were relayed: milliseconds of processor time between two turns. */
async function longestHold(bytes: Buffer): Promise<number> {
  let longestMs = 0;
  let at = process.threadCpuUsage();
  const lap = (): void => {
    const { user, system } = process.threadCpuUsage(at);
    longestMs = Math.max(longestMs, (user + system) / 1_000);
    at = process.threadCpuUsage();
  };
  const data = (async function* () {
    for (let start = 0; start < bytes.length; start += 65_536) {
      await turn();
      lap();
      yield bytes.subarray(start, start + 65_536);
    }
  })();
  const ticks = setInterval(lap, 1);
  const envelope = { mailFrom: "", rcptTo: [], smtpUtf8: false };
  const sender = {
    account: newAccount(),
    test: false,
    apiKey: null,
    quotas: [],
  };
  const arrival = { ip: "192.0.2.1", helo: null, protocol: "ESMTPSA" };
  await rig.submission.relay(sender, envelope, data, arrival).catch((error: unknown) => {
    expect(String(error)).toMatch(/^(?:Refusal|MailSyntaxError|Error: |MailTooLarge)/);
  });
  clearInterval(ticks);
  lap();
  return longestMs;
}

test.each(hostile)("%s never hold up the loop for 100 ms", async (_name, text) => {
  const bytes = Buffer.from(text);
  const most = here(100);
  expect(await leastOf(most, () => longestHold(bytes))).toBeLessThan(most);
});
