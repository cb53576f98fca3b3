// What is done to the data directory of a stopped service: the migration, and whose rights root uses for it.
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { loadConfig, type Config } from "../src/config.ts";
import { silentLog } from "../src/log.ts";
import { backupOffline, doctorOffline, migrate } from "../src/offline.ts";
import { isRoot } from "../src/owner.ts";
import { openWriting, prepareFiles } from "../src/store/sqlite/engine/open.ts";
import { lockDirectory } from "../src/store/sqlite/engine/lock.ts";
import { joinSteps, runMigrations } from "../src/store/sqlite/engine/migrate.ts";
import { migrations } from "../src/store/sqlite/migrations.ts";
import { removeFolder } from "./support/folders.ts";

const { first, newest } = migrations;
/** Of a program that knows one version more. */
const later = joinSteps([migrations.steps, { [newest + 1]: "ALTER TABLE accounts ADD COLUMN colour TEXT" }]);
const other = 65_534;
let dir: string;
let dataDir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "svc-offline-"));
  dataDir = join(dir, "data");
  chmodSync(dir, 0o755);
  onTestFinished(() => removeFolder(dir));
});

/** A database as this program leaves it. */
function newDatabase(): void {
  mkdirSync(dataDir, { mode: 0o700 });
  const path = prepareFiles(dataDir);
  const db = openWriting(path);
  runMigrations(db, path, migrations);
  db.close();
}

const versionOf = (file: string): unknown => {
  const db = new Sqlite(join(dataDir, file), { readonly: true });
  try {
    return db.pragma("user_version", { simple: true });
  } finally {
    db.close();
  }
};

test("an older database is brought to the newest schema, and stands beside itself as it was", async () => {
  newDatabase();
  const name = `svc.db.v${newest}.bak`;
  const copy = join(dataDir, name);
  const [from, to] = [newest, newest + 1];
  expect(await migrate({ dataDir, dryRun: true, schema: later })).toEqual({ from, to, copy: null });
  expect([versionOf("svc.db"), existsSync(copy)]).toEqual([from, false]);
  expect(await migrate({ dataDir, dryRun: false, schema: later })).toEqual({ from, to, copy });
  expect([versionOf("svc.db"), versionOf(name)]).toEqual([to, from]);
  expect(await migrate({ dataDir, dryRun: false, schema: later })).toEqual({ from: to, to, copy: null });
});

test("a database of a newer program is refused as it is", async () => {
  newDatabase();
  const db = new Sqlite(join(dataDir, "svc.db"));
  db.pragma(`user_version = ${newest + 1}`);
  db.close();
  for (const dryRun of [true, false])
    await expect(migrate({ dataDir, dryRun })).rejects.toThrow(
      `has schema version ${newest + 1}; this program knows versions up to ${newest}`,
    );
  expect(versionOf("svc.db")).toBe(newest + 1);
});

test("a database of a version that was never released is refused as it is, and what to do is said", async () => {
  newDatabase();
  const db = new Sqlite(join(dataDir, "svc.db"));
  db.pragma(`user_version = ${first - 1}`);
  db.close();
  for (const dryRun of [true, false])
    await expect(migrate({ dataDir, dryRun })).rejects.toThrow(
      `has schema version ${first - 1}, which was never released; this program knows versions from ${first}. Send what is queued with the program that wrote it, then start with another data directory.`,
    );
  expect(versionOf("svc.db")).toBe(first - 1);
});

test("neither a running service's database is migrated, nor a directory without one", async () => {
  await expect(migrate({ dataDir, dryRun: false })).rejects.toThrow("there is nothing to migrate");
  expect(existsSync(dataDir)).toBe(false);
  newDatabase();
  const lock = lockDirectory(dataDir);
  await expect(migrate({ dataDir, dryRun: false })).rejects.toThrow("is in use by");
  lock.release();
  expect(versionOf("svc.db")).toBe(newest);
});

function configOfDirectory(): Config {
  const loaded = loadConfig({
    flags: { data_dir: dataDir },
    env: {},
    home: dir,
    uid: 1000,
    machineName: "mail.svc.test",
    readFile: () => null,
    listDir: () => [],
  });
  if ("faults" in loaded) throw new Error("the test's configuration has faults");
  return loaded.config;
}

const backUp = (to: string) =>
  backupOffline({
    config: configOfDirectory(),
    log: silentLog,
    to,
    content: "all",
    onProgress: () => undefined,
  });

/** Checks that ask nobody outside. */
const only = [
  "sending-addresses",
  "domains",
  "queue",
  "database",
  "certificate",
  "backups",
  "file-modes",
  "blocklists",
];
const examine = async (schema = migrations) => {
  const found = await doctorOffline({
    config: configOfDirectory(),
    log: silentLog,
    wanted: { only, skip: [], domain: null },
    schema,
  });
  return Object.fromEntries(found.map((one) => [one.id, one]));
};
const inDirectory = (): string[] =>
  readdirSync(dataDir)
    .filter((name) => !name.startsWith("svc.db-"))
    .toSorted();

test("the doctor looks at a stopped service's database, and says what only a running one knows", async () => {
  newDatabase();
  const found = await examine();
  const statuses = Object.entries(found).map(([id, { status }]) => [id, status]);
  expect(Object.fromEntries(statuses)).toEqual({
    "sending-addresses": "ok",
    blocklists: "unknown",
    domains: "warn",
    certificate: "ok",
    queue: "ok",
    database: "ok",
    backups: "warn",
    "file-modes": "ok",
  });
  expect(found["blocklists"]?.saw).toBe("the running service alone asks the blocklists");
});

test("the doctor opens the database as a start does: others can no longer read it", async () => {
  newDatabase();
  chmodSync(join(dataDir, "svc.db"), 0o644);
  expect((await examine())["file-modes"]?.status).toBe("ok");
  expect(statSync(join(dataDir, "svc.db")).mode & 0o777).toBe(0o600);
});

test("the doctor makes no database, and changes no schema", async () => {
  mkdirSync(dataDir, { mode: 0o700 });
  expect((await examine())["database"]).toMatchObject({
    status: "fail",
    saw: `${dataDir} has no database`,
    mend: expect.stringContaining("svc init"),
  });
  expect(inDirectory()).toEqual([]);
  removeFolder(dataDir);
  newDatabase();
  const found = await examine(later);
  expect(found["database"]).toMatchObject({ status: "warn", mend: expect.stringContaining("svc migrate") });
  expect(found["queue"]).toMatchObject({ status: "unknown", saw: expect.stringContaining("not open") });
  expect(found["sending-addresses"]?.status).toBe("unknown");
  expect([versionOf("svc.db"), inDirectory().includes("tls")]).toEqual([newest, false]);
});

test("a database that cannot be read fails, and the other checks go on", async () => {
  mkdirSync(dataDir, { mode: 0o700 });
  writeFileSync(join(dataDir, "svc.db"), "no database ".repeat(1000), { mode: 0o600 });
  const found = await examine();
  expect(found["database"]).toMatchObject({ status: "fail", mend: expect.stringContaining("svc restore") });
  expect(found["file-modes"]?.status).toBe("ok");
});

test("a database that is an empty file fails, and stays one", async () => {
  mkdirSync(dataDir, { mode: 0o700 });
  writeFileSync(join(dataDir, "svc.db"), "", { mode: 0o600 });
  const found = await examine();
  expect(found["database"]).toMatchObject({ status: "fail", mend: expect.stringContaining("svc restore") });
  expect(statSync(join(dataDir, "svc.db")).size).toBe(0);
});

test("an installed certificate that cannot be read is what the check says, and no line of the log", async () => {
  newDatabase();
  mkdirSync(join(dataDir, "tls"), { mode: 0o700 });
  writeFileSync(join(dataDir, "tls", "installed.pem"), "no certificate", { mode: 0o600 });
  expect((await examine())["certificate"]).toMatchObject({
    status: "fail",
    saw: expect.stringContaining("installed.pem"),
    why: expect.stringContaining("self-signed"),
    mend: expect.stringContaining("svc cert install"),
  });
});

test("a service that runs is not looked at from outside", async () => {
  newDatabase();
  const lock = lockDirectory(dataDir);
  onTestFinished(() => lock.release());
  await expect(examine()).rejects.toThrow("is in use by");
});

const asRoot = test.runIf(isRoot());
const giveAll = (place: string): void => {
  for (const name of ["", ...readdirSync(place, { recursive: true, encoding: "utf8" })])
    chownSync(join(place, name), other, other);
};
const ownersIn = (place: string): Set<number> =>
  new Set(
    ["", ...readdirSync(place, { recursive: true, encoding: "utf8" })].map(
      (name) => statSync(join(place, name)).uid,
    ),
  );

asRoot("root migrates with the rights of the directory's owner, whose the copy is", async () => {
  newDatabase();
  giveAll(dataDir);
  await migrate({ dataDir, dryRun: false, schema: later });
  expect(versionOf("svc.db")).toBe(newest + 1);
  expect(ownersIn(dataDir)).toEqual(new Set([other]));
  expect(process.geteuid?.()).toBe(0);
});

asRoot("root backs up as the owner: the backup is that user's, in a folder that is made for it", async () => {
  newDatabase();
  giveAll(dataDir);
  const inside = await backUp(join(dataDir, "backups"));
  expect(ownersIn(inside.path)).toEqual(new Set([other]));
  expect(ownersIn(dataDir)).toEqual(new Set([other]));
  expect([process.geteuid?.(), process.getegid?.()]).toEqual([0, 0]);
});

asRoot("root's doctor leaves nothing of root's in the data directory", async () => {
  newDatabase();
  giveAll(dataDir);
  expect((await examine())["database"]?.status).toBe("ok");
  expect(ownersIn(dataDir)).toEqual(new Set([other]));
  expect(process.geteuid?.()).toBe(0);
});

asRoot("root makes no backup where a link of the service's user leads", async () => {
  newDatabase();
  giveAll(dataDir);
  const roots = join(dir, "roots");
  mkdirSync(roots, { mode: 0o755 });
  symlinkSync(roots, join(dataDir, "backups"));
  await expect(backUp(join(dataDir, "backups"))).rejects.toThrow("EACCES");
  expect(readdirSync(roots)).toEqual([]);
});

asRoot("root makes no folder where somebody else could change the way to it meanwhile", async () => {
  newDatabase();
  giveAll(dataDir);
  const theirs = join(dir, "theirs");
  mkdirSync(join(theirs, "roots"), { recursive: true, mode: 0o755 });
  chownSync(theirs, other, other);
  await expect(backUp(join(theirs, "roots/new"))).rejects.toThrow("EACCES");
  renameSync(join(theirs, "roots"), join(dir, "moved"));
  expect(readdirSync(join(dir, "moved"))).toEqual([]);
});
