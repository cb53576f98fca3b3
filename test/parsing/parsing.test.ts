import { mkdtemp, open, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Clock } from "../../src/clock.ts";
import { silentLog } from "../../src/log.ts";
import { readNotice } from "../../src/mail/notice.ts";
import { readReturned } from "../../src/mail/returned.ts";
import {
  BeyondLimit,
  createParsing,
  ParsingFailed,
  type ContentReading,
  type Parsing,
} from "../../src/parsing/parsing.ts";
import { readingLimits } from "../../src/parsing/shares.ts";
import { callLimitMs, idleMs } from "../../src/parsing/worker.ts";
import { removeFolder } from "../support/folders.ts";

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

let folder = "";
let files = 0;
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "svc-parsing-"))));
afterAll(() => removeFolder(folder));

function pass(delayMs: number): void {
  const due = timers.filter((timer) => timer.delayMs === delayMs);
  timers = timers.filter((timer) => !due.includes(timer));
  for (const { run } of due) run();
}

const piece = 64 * 1024;

/** A mail in memory, as the store gives a small one. */
const inMemory =
  (bytes: Buffer): ContentReading["open"] =>
  () =>
    Promise.resolve({ content: { kind: "bytes", bytes }, close: () => Promise.resolve() });

/** A mail in a file, as the store gives a large one; its handle, and whether it was closed. */
async function inFile(mail: Buffer) {
  const path = join(folder, `${++files}`);
  await writeFile(path, mail);
  const handle = await open(path, "r+");
  let closed = false;
  const opened = {
    content: { kind: "file" as const, fd: handle.fd },
    async close() {
      closed = true;
      await handle.close();
    },
  };
  return { handle, isClosed: () => closed, open: () => Promise.resolve(opened) };
}

function reading(mail: Buffer, accountKey = 1) {
  return parsing.readContent({ accountKey, open: inMemory(mail), goOn: () => undefined });
}

async function whole(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return Buffer.concat(all).toString();
}

async function shown(mail: Buffer): Promise<unknown> {
  const { chunks, release } = await reading(mail);
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

test("thousands of small texts come whole, also where much lies between two", async () => {
  const far = `--b\r\nContent-Type: a/b\r\n\r\n${"x".repeat(600_000)}\r\n`;
  const near = "--b\r\n\r\ny\r\n".repeat(2_000);
  const { text } = (await shown(Buffer.from(`${head}${near}${far}${near}--b--\r\n`))) as { text: string };
  expect(text).toBe(Array.from({ length: 4_000 }, () => "y").join("\n"));
});

test("a mail in a file reads like the same in memory, and the file is closed once its answer is out", async () => {
  const mail = Buffer.from(`${head}${`--b\r\n\r\n${"x".repeat(50_000)}\r\n`.repeat(9)}--b--\r\n`);
  const file = await inFile(mail);
  const { chunks, release } = await parsing.readContent({
    accountKey: 1,
    open: file.open,
    goOn: () => undefined,
  });
  expect(JSON.parse(await whole(chunks))).toEqual(await shown(mail));
  expect(file.isClosed()).toBe(false);
  release();
  while (!file.isClosed()) await new Promise(setImmediate);
});

test("a mail beyond a limit is refused with its name", async () => {
  const mail = Buffer.from(`${head}${"--b\r\n\r\n".repeat(10_001)}`);
  await expect(reading(mail)).rejects.toThrow(new BeyondLimit("more than 10,000 parts"));
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
  const file = await inFile(Buffer.from(`Subject: x\r\n\r\n${"x".repeat(2_000_000)}`));
  const { chunks, release } = await parsing.readContent({
    accountKey: 1,
    open: file.open,
    goOn: () => undefined,
  });
  const reader = chunks[Symbol.asyncIterator]();
  const next = async (): Promise<number> =>
    ((await reader.next()).value as Uint8Array | undefined)?.length ?? 0;
  await next(); // {"text":
  await next(); // "
  let seen = await next();
  for (let i = 0; i < 100; i++) await new Promise(setImmediate);
  await file.handle.truncate(piece);
  for (let length = 1; length > 0; seen += length) length = await next();
  expect(seen).toBeLessThan(2 * piece);
  release();
});

test("an account that has used up its processor time waits, and another does not wait for it", async () => {
  const large = Buffer.from(`Subject: x\r\n\r\n${"\r\n".repeat(2_000_000)}`);
  const waits = (): boolean => timers.some(({ delayMs }) => delayMs !== callLimitMs && delayMs !== idleMs);
  let [begun, ended] = [0, 0];
  while (!waits()) {
    if (begun === ended) {
      begun++;
      void shown(large).then(() => ended++);
    }
    await new Promise(setImmediate);
  }
  expect(begun).toBe(ended + 1);
  const { chunks } = await reading(Buffer.from("Subject: x\r\n\r\nhi"), 2);
  expect(await whole(chunks)).toContain('"hi"');
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
        open: () => Promise.reject(new Error("gone")),
      }),
    ).rejects.toThrow("gone");
});

test("nothing more is read for a client that has gone, and its file is closed", async () => {
  const file = await inFile(Buffer.alloc(200 * piece, "\r\n"));
  let turns = 0;
  const goOn = (): void => {
    if (++turns === 2) throw new Error("the client has gone");
  };
  await expect(parsing.readContent({ accountKey: 1, open: file.open, goOn })).rejects.toThrow("has gone");
  expect(turns).toBe(2);
  while (!file.isClosed()) await new Promise(setImmediate);
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
