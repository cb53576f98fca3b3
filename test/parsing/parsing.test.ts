import { afterEach, beforeEach, expect, test } from "vitest";
import type { Clock } from "../../src/clock.ts";
import { silentLog } from "../../src/log.ts";
import { readNotice } from "../../src/mail/notice.ts";
import { readReturned } from "../../src/mail/returned.ts";
import { BeyondLimit, createParsing, ParsingFailed, type Parsing } from "../../src/parsing/parsing.ts";
import { readingLimits } from "../../src/parsing/shares.ts";
import { callLimitMs, idleMs } from "../../src/parsing/worker.ts";

/** Its timers run when the test says so, without a turn of the loop before. */
let timers: { delayMs: number; run(): void }[];
let parsing: Parsing;
beforeEach(() => {
  timers = [];
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    after(delayMs, run) {
      const timer = { delayMs, run };
      timers.push(timer);
      return { cancel: () => void (timers = timers.filter((other) => other !== timer)) };
    },
  };
  parsing = createParsing({ clock, log: silentLog });
});
afterEach(() => parsing.stop());

function pass(delayMs: number): void {
  const due = timers.filter((timer) => timer.delayMs === delayMs);
  timers = timers.filter((timer) => !due.includes(timer));
  for (const { run } of due) run();
}

const piece = 64 * 1024;

/** A mail as the store gives it; `opened` hears where each reading of it began. */
function opener(mail: Buffer, opened: number[] = []): (offset: number) => AsyncIterable<Uint8Array> {
  return async function* (offset) {
    opened.push(offset);
    for (let at = offset; at < mail.length; at += piece) yield mail.subarray(at, at + piece);
  };
}

function reading(mail: Buffer, accountKey = 1, opened: number[] = []) {
  return parsing.readContent({ accountKey, open: opener(mail, opened), goOn: () => undefined });
}

async function whole(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return Buffer.concat(all).toString();
}

async function shown(mail: Buffer, opened?: number[]): Promise<unknown> {
  const { chunks, release } = await reading(mail, 1, opened);
  const json = await whole(chunks);
  release();
  return JSON.parse(json);
}

const head = 'Subject: x\r\nContent-Type: multipart/mixed; boundary="b"\r\n\r\n';

test.each([
  ["no text at all", "Subject: x\r\n\r\n", { text: null, html: null, attachments: [] }],
  ["text", "Subject: x\r\n\r\nhi\r\n", { text: "hi\n", html: null, attachments: [] }],
  [
    "html and a file",
    `${head}--b\r\nContent-Type: text/html\r\n\r\n<p>"&\r\n--b\r\nContent-Type: a/b\r\n\r\n12\r\n--b--\r\n`,
    { text: null, html: '<p>"&', attachments: [{ filename: null, content_type: "a/b", size_bytes: 2 }] },
  ],
])("a mail with %s is one JSON object", async (_, mail, expected) => {
  expect(await shown(Buffer.from(mail))).toMatchObject({
    headers: expect.arrayContaining([{ name: "Subject", value: "x" }]),
    ...expected,
  });
});

test("lists longer than one answer of the thread come whole, in their order", async () => {
  const files = Array.from({ length: 450 }, (_, i) => `--b\r\nContent-Type: a/b; name=f${i}\r\n\r\n\r\n`);
  const fields = Array.from({ length: 399 }, (_, i) => `X-${i}: ${i}\r\n`);
  const mail = (await shown(Buffer.from(`${fields.join("")}${head}${files.join("")}--b--\r\n`))) as {
    headers: { name: string }[];
    attachments: { filename: string }[];
  };
  expect(mail.headers.map(({ name }) => name)).toEqual([
    ...fields.map((_, i) => `X-${i}`),
    "Subject",
    "Content-Type",
  ]);
  expect(mail.attachments.map(({ filename }) => filename)).toEqual(files.map((_, i) => `f${i}`));
});

test("thousands of small texts are read in one go, and what lies far between two is passed over", async () => {
  const far = `--b\r\nContent-Type: a/b\r\n\r\n${"x".repeat(600_000)}\r\n`;
  const near = "--b\r\n\r\ny\r\n".repeat(2_000);
  const opened: number[] = [];
  const { text } = (await shown(Buffer.from(`${head}${near}${far}${near}--b--\r\n`), opened)) as {
    text: string;
  };
  expect(text).toBe(Array.from({ length: 4_000 }, () => "y").join("\n"));
  expect(opened).toHaveLength(3); // the scan, and two places
});

test("a mail beyond a limit is refused with its name", async () => {
  const mail = Buffer.from(`${head}${"--b\r\n\r\n".repeat(10_001)}`);
  await expect(reading(mail)).rejects.toThrow(new BeyondLimit("more than 10,000 parts"));
});

test("a limit that is met while the next piece is still being read is a refusal, and no stray rejection", async () => {
  const mail = Buffer.from(`${head}${"--b\r\n\r\n".repeat(40_000)}`);
  const stray: unknown[] = [];
  const onStray = (reason: unknown): void => void stray.push(reason);
  process.on("unhandledRejection", onStray);
  const refused = parsing.readContent({
    accountKey: 1,
    goOn: () => undefined,
    async *open(offset) {
      for (let at = offset; at < mail.length; at += piece) {
        yield mail.subarray(at, at + piece);
        // As long as it takes until the thread has answered all that it has.
        while (timers.some(({ delayMs }) => delayMs === callLimitMs)) await new Promise(setImmediate);
        await new Promise(setImmediate);
      }
    },
  });
  await expect(refused).rejects.toThrow(BeyondLimit);
  process.off("unhandledRejection", onStray);
  expect(stray).toEqual([]);
});

/**
 * The loop turned between any two pieces of a large mail, and no piece of the answer is large: what holds the loop is a
 * piece, whatever the mail's size and shape.
 */
test.each([
  ["empty lines", `Subject: x\r\n\r\n${"\r\n".repeat(1_500_000)}`],
  ["text", `Subject: x\r\n\r\n${`${"x".repeat(70)}\r\n`.repeat(40_000)}`],
  ["control characters", `Subject: x\r\n\r\n${"\u0001".repeat(3_000_000)}`],
])("a large mail of %s goes through the loop in pieces", async (_, text) => {
  const mail = Buffer.from(text);
  let turns = 0;
  let counting = true;
  const turn = (): void => {
    turns++;
    if (counting) setImmediate(turn);
  };
  setImmediate(turn);
  const { chunks, release } = await reading(mail);
  const pieces = Math.ceil(mail.length / piece);
  expect(turns).toBeGreaterThan(pieces / 2);
  for await (const chunk of chunks) {
    const before = turns;
    expect(chunk.length).toBeLessThanOrEqual(piece * 6);
    await new Promise(setImmediate);
    expect(turns).toBeGreaterThan(before);
  }
  counting = false;
  release();
});

test("a slow reader holds no more than a piece: nothing is read that he has not asked for", async () => {
  let given = 0;
  const mail = Buffer.from(`Subject: x\r\n\r\n${"x".repeat(2_000_000)}`);
  const { chunks, release } = await parsing.readContent({
    accountKey: 1,
    goOn: () => undefined,
    async *open(offset) {
      for (let at = offset; at < mail.length; at += piece) {
        given++;
        yield mail.subarray(at, at + piece);
      }
    },
  });
  const scanned = given;
  const reader = chunks[Symbol.asyncIterator]();
  await reader.next(); // {"text":
  await reader.next(); // "
  await reader.next();
  for (let i = 0; i < 100; i++) await new Promise(setImmediate);
  expect(given - scanned).toBe(1);
  await reader.return?.();
  release();
});

test("an account has its share of readings, until their answers are out, and others have theirs", async () => {
  const mail = Buffer.from("Subject: x\r\n\r\nhi");
  const own = await Promise.all(Array.from({ length: readingLimits.perAccount }, () => reading(mail)));
  let waits = true;
  const next = reading(mail).finally(() => (waits = false));
  await whole((await reading(mail, 2)).chunks);
  expect(waits).toBe(true);
  own[0]?.release();
  expect(await whole((await next).chunks)).toContain('"hi"');
});

test("a failure of the source is the caller's, and gives the share back", async () => {
  for (let i = 0; i <= readingLimits.perAccount; i++)
    await expect(
      parsing.readContent({
        accountKey: 1,
        goOn: () => undefined,
        // eslint-disable-next-line require-yield
        async *open() {
          throw new Error("gone");
        },
      }),
    ).rejects.toThrow("gone");
});

test("nothing more is read for a client that has gone", async () => {
  let pieces = 0;
  const mail = Buffer.alloc(20 * piece, "x");
  const goOn = (): void => {
    if (++pieces === 3) throw new Error("the client has gone");
  };
  await expect(parsing.readContent({ accountKey: 1, open: opener(mail), goOn })).rejects.toThrow("has gone");
  expect(pieces).toBe(3);
});

const bounce = Buffer.from(
  "From: MAILER-DAEMON@x.test\r\nSubject: Undelivered Mail\r\n\r\nThe following addresses had permanent fatal errors\r\n<a@b.test>\r\n550 5.1.1 user unknown\r\n",
);

const came = { nullSender: true, ownReturnPath: true, subjects: [] };

test("a report and a mail to the operator are read as mail/ reads them", async () => {
  expect(await parsing.readReturned(bounce, came)).toEqual(readReturned(bounce, came));
  expect(await parsing.readNotice(bounce)).toEqual(readNotice(bounce));
});

test("a thread that does not answer in time is ended: what it had fails, and the next call starts it again", async () => {
  const late = parsing.readReturned(bounce, came);
  pass(callLimitMs);
  await expect(late).rejects.toThrow(new ParsingFailed("it took longer than 10 seconds"));
  expect(await parsing.readReturned(bounce, came)).toEqual(readReturned(bounce, came));
});

test("an answer whose thread was ended breaks off; it never goes on with nothing", async () => {
  const { chunks, release } = await reading(Buffer.from("Subject: x\r\n\r\nhi"));
  const answer = chunks[Symbol.asyncIterator]();
  await answer.next(); // {"text":
  await answer.next(); // "
  const next = answer.next();
  while (!timers.some(({ delayMs }) => delayMs === callLimitMs)) await Promise.resolve();
  pass(callLimitMs);
  await expect(next).rejects.toThrow(ParsingFailed);
  const { chunks: others } = await reading(Buffer.from("Subject: y\r\n\r\nhi"));
  expect(await whole(others)).toContain('"hi"');
  release();
});

test("an idle thread ends, but not while an answer is on its way", async () => {
  const { chunks, release } = await reading(Buffer.from("Subject: x\r\n\r\nhi"));
  pass(idleMs);
  expect(await whole(chunks)).toContain('"hi"');
  release();
  await new Promise((resolve) => setImmediate(resolve));
  pass(idleMs);
  expect(await shown(Buffer.from("Subject: x\r\n\r\nagain"))).toMatchObject({ text: "again" });
});

test("a stop rejects what is under way", async () => {
  const late = parsing.readReturned(bounce, came);
  const ends = expect(late).rejects.toThrow("the program stops");
  await parsing.stop();
  await ends;
  await expect(parsing.readReturned(bounce, came)).rejects.toThrow("the program stops");
});
