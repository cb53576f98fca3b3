// What is particular to the store on SQLite: one process a directory, what survives a stop and a kill, a full disk.
import { execFileSync, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import Sqlite from "better-sqlite3";
import { afterEach, beforeEach, expect, test } from "vitest";
import { migrations } from "../../src/store/sqlite/migrations.ts";
import { StoreLocked, StoreUnavailable } from "../../src/store/store.ts";
import type { Store } from "../../src/store/store.ts";
import { ManualClock } from "../support/clock.ts";
import {
  accept,
  beginBoot,
  inChunks,
  newDirectory,
  newEndpoint,
  newEvent,
  newMessage,
  openSqlite,
  owner,
  readAll,
  settlementOf,
} from "./fixtures.ts";
import { removeFolder } from "../support/folders.ts";

let dataDir: string;
let clock: ManualClock;
const stores: Store[] = [];

beforeEach(() => {
  dataDir = newDirectory();
  clock = new ManualClock();
});
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  removeFolder(dataDir);
});

async function open(directory = dataDir): Promise<{ store: Store; account: number }> {
  const store = await openSqlite(directory, clock);
  stores.push(store);
  return { store, account: (await store.accountByName("default"))?.key ?? 0 };
}

/** Runs a module text in a process of its own; resolves with its first line. */
async function startChild(
  script: string,
): Promise<{ child: ChildProcess; line: string; lines: AsyncIterator<string> }> {
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (!child.stdout) throw new Error("no stdout");
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const first = await lines.next();
  return { child, line: String(first.value), lines };
}

function killed(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.on("exit", () => resolve());
    child.kill("SIGKILL");
  });
}

const source = (name: string): string =>
  JSON.stringify(new URL(`../../src/store/${name}.ts`, import.meta.url).href);
/** The lock is referred to for as long as the child lives: collected as garbage it would be free. */
const holdLock = (directory: string): string =>
  `import { lockDirectory } from ${source("sqlite/engine/lock")}; let lock; lock = lockDirectory(${JSON.stringify(directory)}); console.log("held"); setInterval(() => lock, 1000);`;

test("what acknowledges is synced: synchronous is FULL in WAL mode, as read back", async () => {
  const { store } = await open();
  expect(await store.health()).toMatchObject({
    writable: true,
    full: false,
    schemaVersion: migrations.newest,
    engine: { journal_mode: "wal", synchronous: 2 },
  });
});

test("the data directory is its owner's alone", async () => {
  await open();
  expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  for (const name of readdirSync(dataDir))
    expect([name, statSync(join(dataDir, name)).mode & 0o077]).toEqual([name, 0]);
});

test("a directory that was there keeps its mode, as /tmp must", async () => {
  mkdirSync(dataDir, { recursive: true });
  chmodSync(dataDir, 0o755);
  await open();
  expect(statSync(dataDir).mode & 0o777).toBe(0o755);
});

test("a second store on the directory is refused at once and names the holder; the first is unharmed", async () => {
  const { store, account } = await open();
  const refusal = await openSqlite(dataDir, clock).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(StoreLocked);
  expect(String(refusal)).toContain(`process ${process.pid}`);
  const other = await startChild(
    holdLock(dataDir)
      .replace("lock = ", "try { lock = ")
      .replace('console.log("held")', "} catch (e) { console.log(e.message); process.exit() }"),
  );
  expect(other.line).toContain(`in use by process ${process.pid}`);
  await accept(store, newMessage({ accountKey: account, at: clock.now() }));
});

test("the lock of a killed process is free", async () => {
  const { child, line } = await startChild(holdLock(dataDir));
  expect(line).toBe("held");
  await expect(openSqlite(dataDir, clock)).rejects.toThrow(`process ${child.pid}`);
  await killed(child);
  const { store } = await open();
  expect(await store.accountByName("default")).not.toBeNull();
});

test("what was acknowledged before a kill -9 is there, and what was leased is taken back at once, however long its lease", async () => {
  const script = `
    import { accept, beginBoot, newMessage, openSqlite, owner } from ${JSON.stringify(new URL("./fixtures.ts", import.meta.url).href)};
    import { ManualClock } from ${JSON.stringify(new URL("../support/clock.ts", import.meta.url).href)};
    const clock = new ManualClock();
    const store = await openSqlite(${JSON.stringify(dataDir)}, clock);
    const account = (await store.accountByName("default")).key;
    await beginBoot(store, owner);
    const run = async () => { for (;;) {
      const message = newMessage({ accountKey: account, at: clock.now(), lease: true });
      await accept(store, message);
      console.log(message.message.id);
    } };
    for (let i = 0; i < 8; i++) run();`;
  const { child, line, lines } = await startChild(script);
  const acknowledged = [line];
  for (let next = await lines.next(); !next.done && acknowledged.length < 300; next = await lines.next())
    acknowledged.push(next.value);
  await killed(child);
  for (let next = await lines.next(); !next.done; next = await lines.next()) acknowledged.push(next.value);
  const { store, account } = await open();
  const complete = acknowledged.filter((id) => id.length === 30); // the last line may be cut
  expect(complete.length).toBeGreaterThanOrEqual(200);
  for (const id of complete) expect((await store.message(account, id))?.recipients).toHaveLength(1);
  await beginBoot(store, "another boot");
  expect(await store.takeBackLeases("another boot", clock.now(), "~")).toBeGreaterThanOrEqual(
    complete.length,
  );
  const check = new Sqlite(join(dataDir, "svc.db"), { readonly: true });
  expect(check.pragma("integrity_check", { simple: true })).toBe("ok");
  check.close();
});

test("a store that is closed and opened again has everything, and deliveries in flight are taken back", async () => {
  const first = await open();
  const { store, account } = first;
  const endpoint = await store.createEndpoint(newEndpoint(account, clock.now()));
  const secret = await store.secret("verp");
  const [job] = await accept(
    store,
    newMessage({ accountKey: account, at: clock.now(), lease: true, text: "kept" }),
  );
  if (!job) throw new Error("no job");
  await store.settle(settlementOf(job, clock.now()));
  await store.recordEvent(newEvent({ accountKey: account, receivedAt: clock.now() }));
  await beginBoot(store, owner);
  const claim = {
    owner,
    accountKey: endpoint.accountKey,
    endpointKey: endpoint.key,
    limit: 1,
    now: clock.now(),
  };
  expect((await store.claimDeliveries(claim)).deliveries).toHaveLength(1);
  await store.close();
  await store.close();
  await expect(store.recordEvent(newEvent({ accountKey: account, receivedAt: 1 }))).rejects.toBeInstanceOf(
    StoreUnavailable,
  );
  expect(existsSync(join(dataDir, "svc.db-wal"))).toBe(false);

  const { store: again } = await open();
  expect(Buffer.from(await again.secret("verp")).equals(secret)).toBe(true);
  expect(await again.accountByName("default")).toMatchObject({ key: account });
  const shown = await again.message(account, job.message.id);
  expect(shown?.recipients[0]?.state).toBe("delivered");
  if (!shown?.content) throw new Error("no content");
  expect((await readAll(again.openContent(shown.content))).toString()).toBe("kept");
  await beginBoot(again, "boot-2");
  expect(await again.takeBackDeliveries("boot-2", clock.now())).toBe(1);
  const { deliveries } = await again.claimDeliveries(claim);
  expect(deliveries.map(({ attempt }) => attempt)).toEqual([1]);
  const { deliveries: rest } = await again.claimDeliveries({ ...claim, limit: 9, now: clock.now() });
  expect(rest.map(({ attempt }) => attempt)).toEqual([2]);
});

test("under the lock every boot before is dead: its row goes, and what it leased is taken back, however long its lease was", async () => {
  const boots = (): string[] => {
    const check = new Sqlite(join(dataDir, "svc.db"), { readonly: true });
    const ids = check.prepare<[], { id: string }>("SELECT id FROM boots ORDER BY id").all();
    check.close();
    return ids.map(({ id }) => id);
  };
  const { store, account } = await open();
  await beginBoot(store, owner);
  await beginBoot(store, "idle");
  await accept(store, newMessage({ accountKey: account, at: clock.now(), lease: true }));
  expect(boots()).toEqual([owner, "idle"].toSorted());
  await store.close();
  await (await open()).store.close(); // a command that opens the directory and takes no lease
  const { store: next } = await open();
  expect(boots()).toEqual([]);
  await beginBoot(next, "next");
  expect(await next.takeBackLeases("next", clock.now(), "~")).toBe(1);
  expect(await next.takeBackLeases("next", clock.now(), "~")).toBe(0);
});

test("close answers what is queued before it ends", async () => {
  const { store, account } = await open();
  const calls = Array.from({ length: 500 }, () =>
    store.acceptMessage(newMessage({ accountKey: account, at: clock.now() })),
  );
  const closing = store.close();
  expect((await Promise.all(calls)).every(({ kind }) => kind === "accepted")).toBe(true);
  await closing;
});

test("files that no message names are swept at start, the others stay", async () => {
  const { store, account } = await open();
  const bytes = Buffer.alloc(100_000, 1);
  const [named, orphan] = [
    await store.putContent(inChunks(bytes, 9000)),
    await store.putContent(inChunks(bytes, 9000)),
  ];
  if (named.kind !== "spool" || orphan.kind !== "spool") throw new Error("not spooled");
  const message = newMessage({ accountKey: account, at: clock.now(), content: named });
  await accept(store, message);
  await store.close();
  const fileOf = (name: string): string => join(dataDir, "spool", name.slice(0, 2), name);
  mkdirSync(join(dataDir, "spool", "zz"));
  expect(existsSync(fileOf(orphan.name))).toBe(true);
  const { store: again } = await open();
  expect(existsSync(fileOf(orphan.name))).toBe(false);
  expect((await readAll(again.openContent(named))).equals(bytes)).toBe(true);
});

test("a file name that was not made here is never opened", async () => {
  const { store } = await open();
  const ref = { kind: "spool", name: "../../svc.db", sizeBytes: 1 } as const;
  await expect(readAll(store.openContent(ref))).rejects.toThrow("not a spool file's name");
});

test("a database that is none is refused at start, and the lock is free again", async () => {
  writeFileSync(join(dataDir, "svc.db"), "this is not a database, however long it may be".repeat(100));
  await expect(openSqlite(dataDir, clock)).rejects.toThrow("not a database");
  rmSync(join(dataDir, "svc.db"));
  await open();
});

const whyNoMount = process.getuid?.() === 0 ? mountRefusal() : "a small disk can be mounted only by root";

/** null where a small tmpfs can be mounted. */
function mountRefusal(): string | null {
  const point = newDirectory();
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", point], { stdio: "pipe" });
    execFileSync("umount", [point]);
    return null;
  } catch (error) {
    return `mount: ${String(error)}`;
  }
}

test("a full disk refuses and keeps what it has; with room again it goes on without a restart", async (context) => {
  if (whyNoMount !== null) return context.skip(whyNoMount);
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=24m", "tmpfs", dataDir]);
  try {
    const { store, account } = await open();
    const filler = join(dataDir, "filler");
    writeFileSync(filler, Buffer.alloc(12 * 1024 * 1024));
    const acknowledged: string[] = [];
    const text = "x".repeat(60_000);
    let refusal: unknown = null;
    while (refusal === null) {
      const batch = Array.from({ length: 8 }, () =>
        newMessage({ accountKey: account, at: clock.now(), text }),
      );
      const results = await Promise.allSettled(batch.map((message) => store.acceptMessage(message)));
      results.forEach((result, i) => {
        if (result.status === "rejected") refusal = result.reason;
        else acknowledged.push(batch[i]?.message.id ?? "");
      });
    }
    expect(refusal).toBeInstanceOf(StoreUnavailable);
    expect(refusal).toMatchObject({ why: "full" });
    expect(await store.full()).toBe(true);
    expect(await store.health()).toMatchObject({ writable: false });
    await expect(store.putContent(inChunks(Buffer.alloc(20_000_000), 100_000))).rejects.toMatchObject({
      why: "full",
    });
    for (const id of acknowledged) expect(await store.message(account, id)).not.toBeNull();

    rmSync(filler);
    const wrote = new Promise((resolve) => store.onCommit(resolve));
    await clock.advance(2000);
    await wrote;
    expect(await store.full()).toBe(false);
    await accept(store, newMessage({ accountKey: account, at: clock.now(), text }));
    for (const id of acknowledged) expect((await store.message(account, id))?.recipients).toHaveLength(1);
    await store.close();
    const check = new Sqlite(join(dataDir, "svc.db"), { readonly: true });
    expect(check.pragma("integrity_check", { simple: true })).toBe("ok");
    check.close();
  } finally {
    for (const store of stores.splice(0)) await store.close();
    execFileSync("umount", [dataDir]);
  }
});

test("under the low-water mark new mail is to be refused though writes still go through", async (context) => {
  if (whyNoMount !== null) return context.skip(whyNoMount);
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=60m", "tmpfs", dataDir]);
  try {
    const store = await openSqlite(dataDir, clock, { minFreeShare: 0.05 });
    stores.push(store);
    expect(await store.full()).toBe(false);
    writeFileSync(join(dataDir, "filler"), Buffer.alloc(25 * 1024 * 1024));
    expect(await store.full()).toBe(false); // looked at less than a second ago
    await clock.advance(1000);
    expect(await store.full()).toBe(true);
    await store.noteUse({ apiKeys: [], smtpCredentials: [], at: 1 });
    rmSync(join(dataDir, "filler"));
    await clock.advance(1000);
    expect(await store.full()).toBe(false);
    await store.close();
  } finally {
    for (const store of stores.splice(0)) await store.close();
    execFileSync("umount", [dataDir]);
  }
});
