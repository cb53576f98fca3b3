import { closeSync, fstatSync, mkdtempSync, openSync, readFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { makeKey } from "../src/access/keys.ts";
import { createLog, type Log, type LogOptions } from "../src/log.ts";
import { ManualClock } from "./support/clock.ts";
import { removeFolder } from "./support/folders.ts";

/** The file stays open: a write of the log's own timer may be under way. */
function logFile(options: Partial<LogOptions> | ((fd: number) => Partial<LogOptions>) = {}) {
  const directory = mkdtempSync(join(tmpdir(), "svc-log-"));
  onTestFinished(() => removeFolder(directory));
  const fd = openSync(join(directory, "log"), "w");
  const log = createLog({ level: "info", fd, ...(typeof options === "function" ? options(fd) : options) });
  /** Resolves when so many lines are there. */
  const read = async (lines = 1): Promise<string> => {
    log.flush();
    for (;;) {
      const text = readFileSync(join(directory, "log"), "utf8");
      if (text.endsWith("\n") && text.split("\n").length > lines) return text;
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return { log: log as Log, read };
}

const hostile = "\u001b[2J\u009b31m\u0085\u007f\u202efdp.exe\u2028{}\u2066";

test("what others wrote is escaped in the log: no control and no bidi character stands in a line, and its JSON is the same", async () => {
  const { log, read } = logFile();
  log.component("relay").info({ [hostile]: hostile, err: new Error(hostile) }, `a reply ${hostile} 漢字`);
  const text = await read();
  expect(text).toMatch(/^[\x20-\x7e漢字]+\n$/);
  expect(JSON.parse(text)).toMatchObject({
    level: "info",
    component: "relay",
    [hostile]: hostile,
    msg: `a reply ${hostile} 漢字`,
  });
});

test("in words a line has its time, level, component, text and fields, and nothing in it moves the cursor", async () => {
  const { log, read } = logFile({ format: "pretty" });
  log
    .component("relay")
    .warn({ ip: "192.0.2.1", why: "two words", said: `a\n${hostile}` }, "SMTP login refused");
  const text = await read();
  expect(text).toMatch(
    /^\d\d:\d\d:\d\d\.\d{3} WARN {2}relay: SMTP login refused ip=192\.0\.2\.1 why="two words" said="a\\n[\x20-\x7e]+"\n$/,
  );
});

test("in words the stack of an error stands below its line, a line each", async () => {
  const { log, read } = logFile({ format: "pretty" });
  log.error({ err: new Error("broken") }, "a job failed");
  const [first, second, ...rest] = (await read()).split("\n");
  expect(first).toMatch(/ERROR a job failed$/);
  expect(second).toBe("    Error: broken");
  expect(rest[0]).toMatch(/^ {4}at /);
});

test("auto is JSON where there is no terminal", async () => {
  const { log, read } = logFile({ format: "auto" });
  log.info({}, "x");
  expect(JSON.parse(await read())).toMatchObject({ msg: "x" });
});

const streamOf = (fd: number): string => {
  const { dev, ino } = fstatSync(fd, { bigint: true });
  return `${dev}:${ino}`;
};

test("a line to systemd's journal begins with its priority, one to another file does not", async () => {
  const journal = logFile((fd) => ({ env: { JOURNAL_STREAM: streamOf(fd) } }));
  journal.log.warn({}, "w");
  journal.log.error({}, "e");
  journal.log.info({}, "i");
  const lines = (await journal.read(3)).split("\n").slice(0, -1);
  expect(lines.map((line) => line.slice(0, 12))).toEqual(['<4>{"level":', '<3>{"level":', '<6>{"level":']);
  const elsewhere = logFile({ env: { JOURNAL_STREAM: "1:2" } });
  elsewhere.log.warn({}, "w");
  expect(await elsewhere.read()).toMatch(/^\{/);
});

test.each([
  ["an API key", (key: string) => ({ detail: `refused ${key} here` })],
  ["an Authorization field", (key: string) => ({ headers: { authorization: `Bearer ${key}` } })],
  ["a bearer of another form", (key: string) => ({ detail: `Authorization: Bearer ${key.slice(9)}` })],
  ["a login as base64", (key: string) => ({ detail: `Basic ${Buffer.from(key).toString("base64")}` })],
  ["a webhook's secret", (key: string) => ({ detail: `whsec_${Buffer.from(key).toString("base64")}` })],
  ["the password of an address", (key: string) => ({ url: `https://user:${key.slice(9)}@proxy.example/x` })],
  ["a member called password", (key: string) => ({ smart_host: { user: "u", password: key.slice(9) } })],
  [
    "a private key",
    (key: string) => ({ detail: `-----BEGIN PRIVATE KEY-----\n${key.slice(9)}\n-----END PRIVATE KEY-----` }),
  ],
  [
    "a member of JSON in a text",
    (key: string) => ({ detail: `answered {"user":"u","password": "${key.slice(9)}"}` }),
  ],
  ["an error's text", (key: string) => ({ err: new Error(`401 for ${key}`) })],
])("%s does not stand in the log, in neither form", async (_what, fieldsOf) => {
  const key = makeKey(false).value;
  for (const format of ["json", "pretty"] as const) {
    const { log, read } = logFile({ format });
    log.warn({ ...fieldsOf(key), to: "ann@a.example" }, `said ${key}`);
    const text = await read();
    expect(text).not.toContain(key.slice(9));
    expect(text).not.toContain(Buffer.from(key).toString("base64"));
    expect(text).toContain("[redacted]");
    expect(text).toContain("ann@a.example");
    if (format === "json") expect(() => JSON.parse(text) as unknown).not.toThrow();
  }
});

test("of a flood of one kind some lines are written and the rest are counted; other kinds are not held back", async () => {
  const clock = new ManualClock();
  const { log, read } = logFile({ clock });
  for (let n = 0; n < 1000; n++) log.warn({ n }, "SMTP login refused");
  log.warn({}, "the disk is full");
  await clock.advance(5000);
  for (let n = 0; n < 1000; n++) log.warn({ n }, "SMTP login refused");
  await clock.advance(10_000);
  const lines = (await read(302))
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const of = (text: string) => lines.filter(({ msg }) => msg === text);
  expect(of("SMTP login refused")).toHaveLength(300); // 200 at once, 20 in each of five seconds
  expect(of("the disk is full")).toHaveLength(1);
  expect(of("lines of the log were left out: too many of one kind")).toMatchObject([
    { lines: 1700, text: "SMTP login refused" },
  ]);
  expect(clock.pending).toBe(0);
});

test("what was left out is said before the program ends", async () => {
  const { log, read } = logFile({ clock: new ManualClock() });
  for (let n = 0; n < 201; n++) log.error({ n }, "broken");
  // At the end, or before what a write of the log's own timer had under way.
  expect(await read(201)).toContain('"lines":1,"text":"broken"');
});

test.each(["://", '"password', "a://b:c", "-----BEGIN A ", "token_", "\u202e"])(
  "a long line of %j is cut before anything is looked for in it: it holds nobody up",
  async (part) => {
    const { log, read } = logFile();
    log.warn({ detail: part.repeat(160_000), other: "stays" }, "x");
    const line = await read();
    expect(line.length).toBeLessThan(16_000);
    const { detail, msg, other } = JSON.parse(line) as Record<string, string>;
    expect([msg, other, detail]).toEqual(["x", "stays", expect.stringMatching(/ more characters\)$/)]);
  },
);

test("a secret in a line that is cut is replaced all the same, also where the cut goes through it", async () => {
  const secret = `svc_live_${"k".repeat(60)}`;
  const { log, read } = logFile();
  log.warn(
    { detail: `${"x".repeat(1_960)}${secret}${"y".repeat(20_000)}`, password: "p".repeat(20_000) },
    "x",
  );
  const line = await read();
  expect(line).not.toContain("kkkk");
  expect(line).not.toContain("pppp");
});

test.each([
  ["smtp://relay:", "k".repeat(60), "@mail.example.net "],
  ["svc_live_", "k".repeat(60), " "],
  ["Bearer ", "k".repeat(60), " "],
])("a secret after %j is replaced wherever the cut goes through it", async (before, secret, after) => {
  for (const kept of [1, 7, 12, 40, 60]) {
    const { log, read } = logFile();
    const front = " ".padStart(2_000 - before.length - kept, "x ");
    log.warn({ detail: `${front}${before}${secret}${after}${"y".repeat(20_000)}` }, "x");
    expect(await read()).not.toContain("k".repeat(Math.min(kept, 7)));
  }
});

test("of a line with very many fields the text and the part that wrote it are left", async () => {
  const { log, read } = logFile();
  const fields = Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`f${n}`, n]));
  log.component("relay").error(fields, "broken");
  expect(JSON.parse(await read())).toMatchObject({ component: "relay", msg: "broken", level: "error" });
});

test("one address that floods the log does not hide the others, however many lines of the same kind it causes", async () => {
  const clock = new ManualClock();
  const { log, read } = logFile({ clock });
  for (let n = 0; n < 5_000; n++) log.warn({ ip: "192.0.2.66" }, "SMTP login refused");
  for (let n = 0; n < 50; n++) log.warn({ ip: `192.0.2.${n}` }, "SMTP login refused");
  await clock.advance(10_000);
  const written = (await read(71)).split("\n").slice(0, -1);
  const from = (ip: string) => written.filter((line) => line.includes(`"ip":"${ip}"`)).length;
  expect([from("192.0.2.66"), from("192.0.2.0"), from("192.0.2.49")]).toEqual([20, 1, 1]);
  // What was on its way to the disk at the flush may stand behind it.
  expect(written.filter((line) => line.includes('"lines":4980,"text":"SMTP login refused"'))).toHaveLength(1);
});

test("the addresses of one IPv6 /64 flood the log as one", async () => {
  const clock = new ManualClock();
  const { log, read } = logFile({ clock });
  for (let n = 0; n < 300; n++) log.warn({ ip: `2001:db8::${n.toString(16)}` }, "SMTP login refused");
  log.warn({ ip: "2001:db8:0:1::1" }, "SMTP login refused");
  await clock.advance(10_000);
  const written = (await read(22)).split("\n").slice(0, -1);
  expect(written.filter((line) => line.includes('"ip":"2001:db8::')).length).toBe(20);
  expect(written.at(-2)).toContain("2001:db8:0:1::1");
});

test("a log that cannot be written ends nothing: its lines are still kept, and a flush comes back", async () => {
  const fd = openSync("/dev/full", "w");
  const log = createLog({ level: "info", fd });
  for (let i = 0; i < 3; i++) {
    log.info({ text: "x".repeat(5000) }, `line ${i}`);
    for (let turn = 0; turn < 100; turn++) await stat("/"); // what was written has failed by now
    log.flush();
  }
  expect(log.lines.last().at(-1)).toContain("line 2");
  closeSync(fd);
});
