// Backups as directories: what one holds, when it has its name, which are kept, and what a restore refuses.
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createHash } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createBackups, type BackupDeps, type Backups } from "../../src/backup/backup.ts";
import { readManifest } from "../../src/backup/manifest.ts";
import { restoreBackup } from "../../src/backup/restore.ts";
import { silentLog } from "../../src/log.ts";
import type { CopyRequest, Restored, RestoreRequest, StoreCopy } from "../../src/model/backup.ts";
import { StoreUnavailable } from "../../src/store/store.ts";
import { ManualClock, settle } from "../support/clock.ts";
import { removeFolder } from "../support/folders.ts";

let dir: string;
let to: string;
let clock: ManualClock;
let failures: string[];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "svc-backup-"));
  to = join(dir, "backups");
  clock = new ManualClock();
  failures = [];
  mkdirSync(join(dir, "data/tls"), { recursive: true });
  writeFileSync(join(dir, "data/tls/key.pem"), "KEY");
  writeFileSync(join(dir, "svc.yaml"), "hostname: mail.svc.test\n");
});
afterEach(() => removeFolder(dir));

const database = "SQLite";
const copy: StoreCopy = {
  schema: 1,
  database: {
    path: "svc.db",
    bytes: database.length,
    sha256: createHash("sha256").update(database).digest("hex"),
  },
  counts: { messages: 2, unsentRecipients: 1, files: 0, fileBytes: 0, filesMissing: 0 },
};
const written = ({ directory }: CopyRequest): Promise<StoreCopy> => {
  writeFileSync(join(directory, "svc.db"), database);
  return Promise.resolve(copy);
};

function backupsWith(
  over: Partial<BackupDeps["config"]["backup"]>,
  copyInto = written,
  files = [join(dir, "svc.yaml")],
  log = silentLog,
): Backups {
  return createBackups({
    store: { copyInto },
    config: {
      dataDir: join(dir, "data"),
      hostname: "mail.svc.test",
      backup: { at: null, keep: 7, to, ...over },
      files,
    },
    version: "1.2.3",
    onFailed: (error) => void failures.push(error),
    clock,
    log,
  });
}

async function made(backups = backupsWith({})): Promise<string> {
  backups.begin({ to: null, content: "all" });
  while (backups.running()) await settle();
  const last = backups.last();
  if (!last?.backup) throw new Error(last?.error ?? "no backup");
  return last.backup.path;
}

test("a backup is a directory with the sums of its files, the certificate and the configuration", async () => {
  const path = await made();
  expect(path).toBe(join(to, "svc-20261127T090000Z"));
  expect(readdirSync(path).toSorted()).toEqual(["backup.json", "config", "svc.db", "tls"]);
  const manifest = await readManifest(path);
  expect(manifest).toMatchObject({
    format: 1,
    version: "1.2.3",
    schema: 1,
    created_at: "2026-11-27T09:00:00.000Z",
    hostname: "mail.svc.test",
    scheduled: false,
    content: "all",
    counts: { messages: 2, unsent_recipients: 1, files: 0, file_bytes: 0, files_missing: 0 },
  });
  expect(manifest.files.map(({ path: name, origin }) => [name, origin])).toEqual([
    ["svc.db", undefined],
    ["tls/key.pem", undefined],
    ["config/svc.yaml", join(dir, "svc.yaml")],
  ]);
});

test("it has no name of a backup before it is whole, and nothing stays of one that fails", async () => {
  const waiting = Promise.withResolvers<StoreCopy>();
  const backups = backupsWith({}, (request) => {
    request.onProgress(0.25);
    return waiting.promise;
  });
  backups.begin({ to: null, content: "all" });
  expect(() => backups.begin({ to: null, content: "all" })).toThrow("A backup is running");
  while (backups.running()?.progress !== 0.25) await settle();
  expect(readdirSync(to)).toEqual([expect.stringMatching(/^\.svc-.*\.partial$/)]);
  waiting.reject(new StoreUnavailable("full", "the disk is full"));
  while (backups.running()) await settle();
  expect(backups.last()).toMatchObject({ backup: null, error: "the disk is full" });
  expect(readdirSync(to)).toEqual([]);
});

test("a stop ends the backup that runs", async () => {
  const backups = backupsWith(
    {},
    ({ signal }) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("ended")))),
  );
  backups.begin({ to: null, content: "all" });
  while (!existsSync(to)) await settle();
  await backups.stop();
  expect([backups.running(), backups.last()?.backup]).toEqual([null, null]);
  expect(failures).toEqual([]);
});

test("the daily job keeps the newest of its own, and leaves what was made by hand", async () => {
  const backups = backupsWith({ at: "03:30", keep: 2 });
  await backups.start();
  expect(backups.newestAt()).toBe(null);
  const byHand = await made(backups);
  expect(backups.newestAt()).toBe(clock.now());
  const [job] = backups.jobs;
  expect(job?.cron).toBe("30 3 * * *");
  for (let day = 0; day < 4; day++) {
    await clock.advance(86_400_000);
    await job?.run();
  }
  const names = (await backups.list()).map(({ path }) => path);
  expect(names).toEqual([join(to, "svc-20261201T090000Z"), join(to, "svc-20261130T090000Z"), byHand]);
  const later = backupsWith({});
  await later.start();
  await later.list();
  expect([later.jobs, later.newestAt()]).toEqual([[], clock.now()]);
});

test("a folder that the service may not write is named with what to do", async () => {
  const denied = Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" });
  const backups = backupsWith({}, () => Promise.reject(denied));
  backups.begin({ to: null, content: "all" });
  while (backups.running()) await settle();
  expect(backups.last()?.error).toContain(`install -d -o svc -g svc -m 0700 ${to}`);
});

test("a backup.json that is a pipe or too large is none, and keeps nobody waiting", async () => {
  const path = await made();
  for (const name of ["svc-20261101T000000Z", "svc-20261102T000000Z"]) mkdirSync(join(to, name));
  execFileSync("mkfifo", [join(to, "svc-20261101T000000Z/backup.json")]);
  const large = join(to, "svc-20261102T000000Z");
  const text = readFileSync(join(path, "backup.json"), "utf8");
  writeFileSync(join(large, "backup.json"), text.padEnd(1_000_001));
  expect((await backupsWith({}).list()).map((one) => one.path)).toEqual([path]);
  await expect(readManifest(large)).rejects.toThrow("has 1000001 bytes, more than 1000000");
});

test("while a backup runs, the folder is not read for those who wait for it", async () => {
  const waiting = Promise.withResolvers<void>();
  const backups = backupsWith({}, async (request) => {
    await waiting.promise;
    return written(request);
  });
  const before = await made();
  await backups.list();
  backups.begin({ to: null, content: "all" });
  renameSync(before, join(to, "away"));
  expect((await backups.list()).map(({ path }) => path)).toEqual([before]);
  waiting.resolve();
  while (backups.running()) await settle();
  expect((await backups.list()).map(({ path }) => path)).toEqual([backups.last()?.backup?.path]);
});

test("the operator is told that the daily backup failed", async () => {
  const backups = backupsWith({ at: "03:30" }, () => Promise.reject(new Error("no room")));
  await backups.jobs[0]?.run();
  expect(failures).toEqual(["no room"]);
});

test("what a killed process left is removed a day later; what is no backup is left alone", async () => {
  const [old, young] = [".svc-20261101T000000Z-00000000.partial", ".svc-20261127T080000Z-00000001.partial"];
  for (const name of [old, young, "svc-20261101T000000Z", "mine"])
    mkdirSync(join(to, name), { recursive: true });
  utimesSync(join(to, old), 0, Date.parse("2026-11-01T00:00:00Z") / 1000);
  utimesSync(join(to, young), 0, clock.now() / 1000 - 60);
  const path = await made();
  expect(existsSync(join(to, old))).toBe(false);
  expect(readdirSync(to)).toContain(young);
  expect((await backupsWith({}).list()).map((one) => one.path)).toEqual([path]);
});

test("what another user's process left, and cannot be looked at, keeps no backup from being made", async () => {
  mkdirSync(to, { recursive: true });
  symlinkSync(join(dir, "nowhere"), join(to, ".svc-20261101T000000Z-00000000.partial"));
  expect(existsSync(await made())).toBe(true);
});

test("configuration files of one name in three folders are three files", async () => {
  const files = ["etc", "conf.d", "home"].map((folder) => join(dir, folder, "svc.yaml"));
  for (const file of files) {
    mkdirSync(dirname(file));
    writeFileSync(file, `# ${file}`);
  }
  const path = await made(backupsWith({}, written, files));
  await restoring(path).done;
  const kept = (await readManifest(path)).files.filter(({ origin }) => origin !== undefined);
  for (const { path: name, origin } of kept)
    expect(readFileSync(join(path, name), "utf8")).toBe(`# ${origin}`);
});

test("a configuration file that was removed since the start is left out, and the log says so", async () => {
  const [gone, kept] = [join(dir, "gone.yaml"), join(dir, "svc.yaml")];
  const warned: unknown[] = [];
  const log = { ...silentLog, warn: (fields: object) => void warned.push(fields) };
  const path = await made(backupsWith({}, written, [gone, kept], log));
  const origins = (await readManifest(path)).files.flatMap(({ origin }) => origin ?? []);
  expect([origins, warned]).toEqual([[kept], [{ path: gone }]]);
});

test("a configuration that cannot be read here does not undo what was restored", async () => {
  const path = await made();
  rmSync(join(dir, "svc.yaml"));
  mkdirSync(join(dir, "svc.yaml"));
  expect((await restoring(path).done).config.map(({ state }) => state)).toEqual(["different"]);
});

const nothing: Restored = { schema: 1, aside: null, held: [], filesMissing: 0 };

function restoring(from: string, over: Partial<Parameters<typeof restoreBackup>[0]> = {}) {
  const asked: RestoreRequest[] = [];
  const done = restoreBackup({
    from,
    dataDir: join(dir, "new"),
    now: clock.now(),
    restoreStore(request) {
      asked.push(request);
      return nothing;
    },
    isConfigFile: (path) => path === join(dir, "svc.yaml"),
    setsNothing: (text) => text.startsWith("#"),
    ...over,
  });
  return { asked, done };
}

test("a restore hands the store a verified backup, and never overwrites a configuration", async () => {
  const path = await made();
  const first = restoring(path);
  expect((await first.done).config.map(({ state }) => state)).toEqual(["same"]);
  expect(first.asked).toMatchObject([
    { from: path, createdAt: clock.now(), counts: { files: 0, filesMissing: 0 }, others: ["tls"] },
  ]);
  const yaml = join(dir, "svc.yaml");
  writeFileSync(yaml, "hostname: other.test\n");
  expect((await restoring(path).done).config.map(({ state }) => state)).toEqual(["different"]);
  for (const before of ["# only comments\n", null]) {
    if (before === null) rmSync(yaml);
    else writeFileSync(yaml, before);
    expect((await restoring(path).done).config.map(({ state }) => state)).toEqual(["written"]);
    expect(readFileSync(yaml, "utf8")).toBe("hostname: mail.svc.test\n");
  }
  rmSync(yaml);
  const elsewhere = await restoring(path, { isConfigFile: () => false }).done;
  expect([elsewhere.config[0]?.state, existsSync(yaml)]).toEqual(["different", false]);
});

test("a configuration that was replaced in the backup since it was verified is not written", async () => {
  const path = await made();
  rmSync(join(dir, "svc.yaml"));
  writeFileSync(join(dir, "shadow"), "# a secret of root");
  const swap = (): Restored => {
    rmSync(join(path, "config/svc.yaml"));
    symlinkSync(join(dir, "shadow"), join(path, "config/svc.yaml"));
    return nothing;
  };
  const { config } = await restoring(path, { restoreStore: swap }).done;
  expect([config[0]?.state, existsSync(join(dir, "svc.yaml"))]).toEqual(["different", false]);
});

test.each<[string, (path: string) => void, RegExp]>([
  ["without backup.json", (path) => rmSync(join(path, "backup.json")), /has no backup\.json/],
  ["with another backup.json", (path) => rewrite(path, () => "{}"), /is not what svc backup writes/],
  [
    "of a later format",
    (path) => rewrite(path, (text) => text.replace('"format": 1', '"format": 2')),
    /formats up to 1/,
  ],
  [
    "without a sum of its database",
    (path) => rewrite(path, (text) => text.replace('"path": "svc.db"', '"path": "other"')),
    /is not what svc backup writes/,
  ],
  [
    "without its counts",
    (path) => rewrite(path, (text) => text.replace(/"counts": \{[^}]*\}/, '"counts": null')),
    /is not what svc backup writes/,
  ],
  [
    "that leads out of itself",
    (path) => rewrite(path, (text) => text.replace('"path": "tls/key.pem"', '"path": "tls/../../x"')),
    /is not what svc backup writes/,
  ],
  [
    "whose database was changed",
    (path) => writeFileSync(join(path, "svc.db"), "SQLitE"),
    /is not the file that was written/,
  ],
  [
    "whose folder is a link",
    (path) => {
      renameSync(join(path, "tls"), join(dir, "elsewhere"));
      symlinkSync(join(dir, "elsewhere"), join(path, "tls"));
    },
    /cannot be read/,
  ],
  ["without its key", (path) => rmSync(join(path, "tls/key.pem")), /cannot be read/],
])("a backup %s is refused, and the store is not asked", async (_what, spoil, words) => {
  const path = await made();
  chmodSync(join(path, "backup.json"), 0o600);
  spoil(path);
  const { asked, done } = restoring(path);
  await expect(done).rejects.toThrow(words);
  expect(asked).toEqual([]);
});

function rewrite(path: string, by: (text: string) => string): void {
  const file = join(path, "backup.json");
  writeFileSync(file, by(readFileSync(file, "utf8")));
}
