// The store's copy of one moment while it is written to, what a restore makes of it, and what ends one before it is whole.
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  constants,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { BackupContent, Restored } from "../../src/model/backup.ts";
import { handToOwner, isRoot } from "../../src/owner.ts";
import { restoreStore } from "../../src/store/sqlite/restore.ts";
import type { Store } from "../../src/store/store.ts";
import { ManualClock, settle } from "../support/clock.ts";
import {
  accept,
  beginBoot,
  inChunks,
  minute,
  newDirectory,
  newMessage,
  openSqlite,
  owner,
  settlementOf,
} from "./fixtures.ts";
import { removeFolder } from "../support/folders.ts";

let dir: string;
let dataDir: string;
let target: string;
let clock: ManualClock;
let store: Store;
let account: number;

beforeEach(async () => {
  dir = newDirectory();
  [dataDir, target] = [join(dir, "data"), join(dir, "copy")];
  mkdirSync(target);
  clock = new ManualClock();
  store = await openSqlite(dataDir, clock);
  account = (await store.accountByName("default"))?.key ?? 0;
});
afterEach(async () => {
  await store.close();
  removeFolder(dir);
});

const never = new AbortController().signal;
const copyInto = (content: BackupContent = "all", signal = new AbortController().signal) =>
  store.copyInto({ directory: target, content, onProgress: () => undefined, signal });

const accepted = (wishes: Partial<Parameters<typeof newMessage>[0]> = {}) =>
  accept(store, newMessage({ accountKey: account, at: clock.now(), ...wishes }));

async function finished(text: string): Promise<void> {
  const content = { kind: "inline", bytes: Buffer.from(text) } as const;
  const [job] = await accepted({ lease: true, content });
  if (job) await store.settle(settlementOf(job, clock.now()));
}

const large = () => store.putContent(inChunks(Buffer.alloc(100_000, "large "), 10_000));
const inFile = (): Sqlite.Database => new Sqlite(join(target, "svc.db"), { readonly: true });

const noFiles = { files: 0, filesMissing: 0 };

const auditEntry = {
  actorKind: "operator",
  actor: null,
  sourceIp: null,
  requestId: null,
  action: "test",
  target: null,
  times: 1,
  detail: {},
} as const;

function restored(now = clock.now(), others: string[] = [], counts = noFiles): Restored {
  return restoreStore({
    counts,
    from: target,
    dataDir: join(dir, "new"),
    now,
    createdAt: clock.now(),
    stamp: "20261127T090000Z",
    others,
  });
}

test("a copy has all that was written before it and is one moment of what is written meanwhile", async () => {
  await Promise.all(Array.from({ length: 300 }, () => accepted({ text: "x".repeat(10_000) })));
  let copying = true;
  const writing = (async () => {
    // Two writes of one transaction are never seen apart.
    while (copying) await accepted({ to: ["ann@a.test", "bob@a.test"] });
  })();
  const copy = await copyInto();
  copying = false;
  await writing;
  const db = inFile();
  const { messages, recipients } = db
    .prepare("SELECT (SELECT count(*) FROM messages) messages, (SELECT count(*) FROM recipients) recipients")
    .get() as { messages: number; recipients: number };
  expect(messages).toBeGreaterThanOrEqual(300);
  expect(recipients - messages).toBe(messages - 300);
  expect(copy.counts).toMatchObject({ messages, unsentRecipients: recipients });
  expect(db.pragma("journal_mode", { simple: true })).toBe("delete");
  expect(readdirSync(target).toSorted()).toEqual(["spool", "svc.db"]);
  db.close();
});

test("files of content are in the copy, also those that retention removes while it is made", async () => {
  const content = await large();
  await accepted({ content });
  if (content.kind !== "spool") throw new Error("expected a file");
  const path = join("spool", content.name.slice(0, 2), content.name);
  const copying = copyInto();
  await store.dropContent(content);
  expect((await copying).counts).toMatchObject({ files: 1, fileBytes: 100_000, filesMissing: 0 });
  expect(readFileSync(join(target, path)).length).toBe(100_000);
  expect(statSync(join(target, path)).mode & 0o777).toBe(0o600);
  while (existsSync(join(dataDir, path))) await new Promise((resolve) => setImmediate(resolve));
});

test("a file of content that was cut short, or is missing, is refused by its name, and nothing is changed", async () => {
  const content = await large();
  await accepted({ content });
  if (content.kind !== "spool") throw new Error("expected a file");
  const path = join(target, "spool", content.name.slice(0, 2), content.name);
  const { counts } = await copyInto();
  expect(restored(clock.now(), [], counts).filesMissing).toBe(0);
  removeFolder(join(dir, "new"));
  writeFileSync(`${path}.cut`, readFileSync(path).subarray(0, 99_999)); // the link's file is the store's own
  renameSync(`${path}.cut`, path);
  expect(() => restored(clock.now(), [], counts)).toThrow(
    `${path} is not the file that was written: found 99999 bytes, expected 100000`,
  );
  rmSync(path);
  expect(() => restored(clock.now(), [], counts)).toThrow(
    `has 0 files of content and lacks 1 (${path} is one); backup.json says that it has 1 and lacks 0`,
  );
  expect(readdirSync(join(dir, "new")).toSorted()).toEqual(["svc.lock", "svc.pid"]);
});

test("a file of content that is not whole in the store does not spoil the backup: it counts as missing", async () => {
  const content = await large();
  await accepted({ content });
  if (content.kind !== "spool") throw new Error("expected a file");
  truncateSync(join(dataDir, "spool", content.name.slice(0, 2), content.name), 1);
  const { counts } = await copyInto();
  expect(counts).toMatchObject({ files: 0, fileBytes: 0, filesMissing: 1 });
  expect(restored(clock.now(), [], counts).filesMissing).toBe(1);
});

test("without the content of sent mail, nothing of it is in the file, and unsent mail has its own", async () => {
  await finished("a secret of sent mail");
  const content = await large();
  await accepted({ content });
  await accepted({ text: "still to be sent" });
  const copy = await copyInto("unsent");
  const bytes = readFileSync(join(target, "svc.db"));
  expect([bytes.includes("a secret of sent"), bytes.includes("still to be sent")]).toEqual([false, true]);
  expect(copy.counts).toMatchObject({ messages: 3, files: 1 });
});

test("one copy runs at a time, and closing the store ends it", async () => {
  await Promise.all(Array.from({ length: 50 }, () => accepted({ text: "x".repeat(60_000) })));
  const first = copyInto().catch((error: Error) => error.message);
  await expect(copyInto()).rejects.toThrow("a backup or a check is running");
  await store.close();
  expect(await first).toBe("the service stopped before the backup was complete");
});

test("an aborted copy rejects", async () => {
  const controller = new AbortController();
  controller.abort();
  await expect(copyInto("all", controller.signal)).rejects.toThrow("before the backup was complete");
});

test("a stop waits a second for a thread that hangs, and the copy rejects", async () => {
  const content = await large();
  await accepted({ content });
  if (content.kind !== "spool") throw new Error("expected a file");
  const file = join(dataDir, "spool", content.name.slice(0, 2), content.name);
  rmSync(file);
  execFileSync("mkfifo", [file]);
  const elsewhere = mkdtempSync("/dev/shm/svc-backup-"); // another disk: the file is copied, and a pipe is waited for
  try {
    const copying = store.copyInto({ directory: elsewhere, content: "all", onProgress() {}, signal: never });
    const ended = expect(copying).rejects.toThrow("before the backup was complete");
    while (!existsSync(join(elsewhere, "spool", content.name.slice(0, 2)))) await settle();
    const closed = store.close();
    await clock.advance(1000);
    await ended;
    await closed;
  } finally {
    writeFileSync(openSync(file, constants.O_RDWR | constants.O_NONBLOCK), ""); // lets the thread go
    removeFolder(elsewhere);
  }
});

test("a stop ends the check of a large table: the copy is cut short, and SQLite reads no further", async () => {
  await Promise.all(Array.from({ length: 100 }, () => accepted({ text: "x".repeat(60_000) })));
  const controller = new AbortController();
  let atStop = 0;
  const copying = store.copyInto({
    directory: target,
    content: "all",
    signal: controller.signal,
    onProgress(share) {
      if (share < 0.7) return;
      atStop = statSync(join(target, "svc.db")).size;
      controller.abort();
    },
  });
  await expect(copying).rejects.toThrow("before the backup was complete");
  expect(atStop).toBeGreaterThan(1_000_000);
  while (statSync(join(target, "svc.db")).size > 0) await settle();
});

test("a copy is refused where it would leave less space free than new mail needs", async () => {
  await store.close();
  store = await openSqlite(dataDir, clock, { minFreeShare: 1 });
  await expect(copyInto()).rejects.toMatchObject({
    why: "full",
    message: expect.stringMatching(/has \d+ MB free/),
  });
});

test("after a restore all unsent mail is held, keeps when it is due, and goes on from where it was", async () => {
  await beginBoot(store, owner);
  await finished("sent");
  await accepted({ to: ["due@a.test"] });
  await accepted({ to: ["later@a.test"], sendAt: clock.now() + 60 * minute });
  await accepted({ to: ["now@a.test"], lease: true });
  await copyInto();
  const done = restored(clock.now() + minute);
  expect(done).toMatchObject({ held: [{ account: "default", recipients: 3 }], aside: null, filesMissing: 0 });
  await store.close();
  store = await openSqlite(join(dir, "new"), clock);
  expect(await store.queueCounts()).toMatchObject({ held: 3, queued: 0, sending: 0 });
  const db = new Sqlite(join(dir, "new/svc.db"), { readonly: true });
  const rows = db
    .prepare(
      "SELECT key, to_address AS 'to', held_since AS since FROM recipients WHERE lease_owner IS NOT NULL",
    )
    .all() as { key: number; to: string; since: number }[];
  const since = new Map(rows.map((row) => [row.to, row.since - clock.now()]));
  expect([since.get("due@a.test"), since.get("later@a.test")]).toEqual([minute, 60 * minute]);
  const interrupted = db
    .prepare("SELECT outcome, ambiguous FROM attempts WHERE outcome = 'interrupted'")
    .all();
  expect(interrupted).toEqual([{ outcome: "interrupted", ambiguous: 1 }]);
  db.close();
  const released = await store.releaseQueued(
    account,
    rows.map(({ key }) => key),
    clock.now() + minute,
  );
  expect(released.changed).toBe(3);
});

test("numbers that were given after the backup are not given again", async () => {
  await accepted({ lease: true });
  await copyInto();
  const [later] = await accepted({ lease: true });
  const hourLater = clock.now() + 60 * minute;
  restored(hourLater);
  await store.close();
  store = await openSqlite(join(dir, "new"), clock);
  const [fresh] = await accepted({ lease: true });
  expect(fresh?.message.key).toBeGreaterThan((later?.message.key ?? 0) + 1_000_000 + 10_000 * 3600 - 10);
});

test("nor are those of the audit log, of which the backup had no row", async () => {
  const entry = { ...auditEntry, accountKey: account, at: clock.now() };
  const last = async (): Promise<number> => {
    await store.recordAudit([entry]);
    return (await store.listAudit({}, { limit: 1, cursor: null })).rows[0]?.seq ?? 0;
  };
  await copyInto();
  const later = await last();
  restored();
  await store.close();
  store = await openSqlite(join(dir, "new"), clock);
  expect(await last()).toBeGreaterThan(later + 1_000_000 - 10);
});

test("what stood in the directory is kept beside, and a second restore is one again", async () => {
  await accepted();
  await copyInto();
  expect(restored().aside).toBe(null);
  const again = restoreStore({
    counts: noFiles,
    from: target,
    dataDir: join(dir, "new"),
    now: clock.now(),
    createdAt: clock.now(),
    stamp: "20261127T090001Z",
    others: [],
  });
  expect(again.aside).toBe(join(dir, "new/before-restore-20261127T090001Z"));
  expect(readdirSync(again.aside ?? "").toSorted()).toEqual(["spool", "svc.db"]);
  expect(readdirSync(join(dir, "new")).filter((name) => name.endsWith(".partial"))).toEqual([]);
});

test("a damaged copy, one of a newer program, and a directory in use are refused, and nothing is changed", async () => {
  await accepted();
  await copyInto();
  const place = join(dir, "new");
  expect(() =>
    restoreStore({
      from: target,
      dataDir,
      now: 0,
      createdAt: 0,
      counts: noFiles,
      stamp: "x",
      others: [],
    }),
  ).toThrow("in use by process");
  const newer = new Sqlite(join(target, "svc.db"));
  newer.pragma("user_version = 99");
  newer.close();
  expect(() => restored()).toThrow("knows versions up to");
  truncateSync(join(target, "svc.db"), statSync(join(target, "svc.db")).size - 8192);
  expect(() => restored()).toThrow("is damaged");
  writeFileSync(join(target, "svc.db"), "no database");
  expect(() => restored()).toThrow("is damaged");
  expect(readdirSync(place).toSorted()).toEqual(["svc.lock", "svc.pid"]);
});

test("a folder of a backup that is a symbolic link is refused: root would hand another's files to the service", async () => {
  await accepted();
  await copyInto();
  mkdirSync(join(dir, "private"));
  writeFileSync(join(dir, "private/id_rsa"), "SECRET");
  for (const name of ["tls", "spool"]) {
    removeFolder(join(target, name));
    symlinkSync(join(dir, "private"), join(target, name));
    expect(() => restored(clock.now(), ["tls"])).toThrow(`${join(target, name)} is not a folder`);
    rmSync(join(target, name));
  }
  expect(readdirSync(join(dir, "new")).toSorted()).toEqual(["svc.lock", "svc.pid"]);
});

/** Of a user that is not root, in folders that it can reach; the copy in one that root alone can. */
async function ofAnother(): Promise<{ place: string; uid: number }> {
  const [place, uid] = [join(dir, "new"), 65_534];
  chmodSync(dir, 0o755);
  mkdirSync(place);
  chownSync(place, uid, uid);
  mkdirSync(join(dir, "private"), { mode: 0o700 });
  await accepted({ content: await large() });
  await copyInto();
  renameSync(target, join(dir, "private/copy"));
  target = join(dir, "private/copy");
  mkdirSync(join(target, "tls"), { mode: 0o700 });
  writeFileSync(join(target, "tls/key.pem"), "KEY", { mode: 0o600 });
  execFileSync("chown", ["-R", `${uid}:${uid}`, target]);
  return { place, uid };
}
const asRoot = test.runIf(isRoot());

asRoot("root restores with the rights of the directory's owner, whose all of it is then", async () => {
  const { place, uid } = await ofAnother();
  restored(clock.now(), ["tls"], { files: 1, filesMissing: 0 });
  const owners = readdirSync(place, { recursive: true }).map(
    (name) => statSync(join(place, String(name))).uid,
  );
  expect([new Set(owners), owners.length > 5]).toEqual([new Set([uid]), true]);
  expect([process.geteuid?.(), process.getegid?.()]).toEqual([0, 0]);
});

asRoot("a file in a backup that its owner cannot read is not read for it by root", async () => {
  const { place } = await ofAnother();
  writeFileSync(join(dir, "shadow"), "SECRET", { mode: 0o600 });
  linkSync(join(dir, "shadow"), join(target, "tls/stolen.pem"));
  expect(() => restored(clock.now(), ["tls"], { files: 1, filesMissing: 0 })).toThrow("EACCES");
  expect(readdirSync(place).toSorted()).toEqual(["svc.lock", "svc.pid"]);
  expect(process.geteuid?.()).toBe(0);
});

asRoot(
  "what root hands to the owner are its own files and folders, and nothing that a link leads to",
  async () => {
    const { place, uid } = await ofAnother();
    const theirs = join(dir, "theirs");
    mkdirSync(theirs);
    for (const name of ["a", "linked"]) writeFileSync(join(theirs, name), "");
    mkdirSync(join(place, "made"));
    writeFileSync(join(place, "made/file"), "");
    symlinkSync(theirs, join(place, "made/link"));
    linkSync(join(theirs, "linked"), join(place, "made/hard"));
    execFileSync("mkfifo", [join(place, "made/pipe")]);
    handToOwner(place, [join(place, "made"), join(place, "none")]);
    const ownerOf = (path: string): number => statSync(path).uid;
    expect(["made", "made/file"].map((name) => ownerOf(join(place, name)))).toEqual([uid, uid]);
    expect([theirs, join(theirs, "a"), join(theirs, "linked")].map(ownerOf)).toEqual([0, 0, 0]);
  },
);

test("files that root writes in the data directory are not written where a symbolic link leads", async () => {
  const theirs = join(dir, "theirs");
  writeFileSync(theirs, "precious", { mode: 0o644 });
  await accepted();
  await copyInto();
  mkdirSync(join(dir, "new"));
  for (const name of ["svc.pid", "svc.lock"]) {
    rmSync(join(dir, "new", name), { force: true });
    symlinkSync(theirs, join(dir, "new", name));
    try {
      restored();
    } catch {
      // or it is refused
    }
    expect(readFileSync(theirs, "utf8")).toBe("precious");
    expect(statSync(theirs).mode & 0o777).toBe(0o644);
  }
});

test("where an entry cannot be moved, the directory is as it was", async () => {
  await accepted();
  await copyInto();
  mkdirSync(join(target, "tls"));
  const place = join(dir, "new");
  mkdirSync(place);
  for (const name of ["svc.db", "svc.db-wal"]) writeFileSync(join(place, name), `old ${name}`);
  symlinkSync(join(dir, "nothing"), join(place, "tls")); // no folder can be moved onto it
  expect(() => restored(clock.now(), ["tls"])).toThrow("ENOTDIR");
  for (const name of ["svc.db", "svc.db-wal"])
    expect(readFileSync(join(place, name), "utf8")).toBe(`old ${name}`);
  expect(readdirSync(place).toSorted()).toEqual(["svc.db", "svc.db-wal", "svc.lock", "svc.pid", "tls"]);
});

test("a restore that was killed between its moves is undone by the next one, and nothing is started on what it left", async () => {
  await accepted();
  await copyInto();
  const place = join(dir, "new");
  for (const phase of ["aside", "in place"]) {
    removeFolder(place);
    const aside = join(place, "before-restore-20261127T080000Z");
    const partial = join(place, "restore-20261127T080000Z.partial");
    mkdirSync(aside, { recursive: true });
    mkdirSync(join(partial, "spool"), { recursive: true });
    writeFileSync(join(partial, "svc.db"), "restored");
    writeFileSync(join(aside, "svc.db"), "old");
    if (phase === "aside") writeFileSync(join(place, "svc.db-wal"), "acknowledged");
    else {
      writeFileSync(join(aside, "svc.db-wal"), "acknowledged");
      mkdirSync(join(aside, "spool"));
      renameSync(join(partial, "spool"), join(place, "spool"));
    }
    await expect(openSqlite(place, clock)).rejects.toThrow("a restore was cut short");
    const done = restored();
    expect(readFileSync(join(done.aside ?? "", "svc.db"), "utf8")).toBe("old");
    expect(readFileSync(join(done.aside ?? "", "svc.db-wal"), "utf8")).toBe("acknowledged");
    expect(readdirSync(place).toSorted()).toEqual([
      "before-restore-20261127T090000Z",
      "spool",
      "svc.db",
      "svc.lock",
      "svc.pid",
    ]);
  }
});
