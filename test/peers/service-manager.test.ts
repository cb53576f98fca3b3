// What a service manager hears from the running program, on a real notify socket and through systemd-notify.
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { afterAll, afterEach, expect, test } from "vitest";
import { startAppliance, type Appliance } from "../support/appliance.ts";
import { openNotifySocket, type NotifySocket } from "../support/notify-socket.ts";
import { removeFolder } from "../support/folders.ts";

const missing = ["systemd-notify", "/usr/bin/python3"].filter(
  (name) => spawnSync("sh", ["-c", `command -v ${name}`]).status !== 0,
);
if (missing.length > 0 && process.env["CI"])
  throw new Error(`no ${missing.join(", no ")}: run .ci/peers.sh as root`);
if (missing.length > 0) console.warn(`SKIPPED: tests of the notify socket: no ${missing.join(", no ")}`);

/** Short enough that a hang is noticed before SQLite gives up a lock (5 s), long enough for a busy machine. */
const watchdogMs = 3000;
const folder = mkdtempSync(join(tmpdir(), "svc-notify-"));
let socket: NotifySocket | null = null;
let svc: Appliance | null = null;

afterEach(async () => {
  await svc?.stop();
  await socket?.stop();
  [socket, svc] = [null, null];
});
afterAll(() => removeFolder(folder));

async function start(name: string): Promise<{ manager: NotifySocket; svc: Appliance }> {
  socket = await openNotifySocket(name, watchdogMs);
  const env = { NOTIFY_SOCKET: name, WATCHDOG_USEC: String(watchdogMs * 1000) };
  svc = await startAppliance({ env });
  return { manager: socket, svc };
}

test.skipIf(missing.length > 0).each([
  ["a path", () => join(folder, "notify")],
  ["the abstract namespace", () => `@svc-${randomUUID()}`],
])("start, reload, life and stop are told to a socket in %s, in their order", async (_place, name) => {
  const { manager, svc } = await start(name());
  const ready = await manager.hears("READY=1");
  expect(manager.heard().slice(0, ready)).toEqual([
    "STATUS=Starting",
    expect.stringContaining(`http 127.0.0.1:${svc.httpPort}`),
    "READY=1",
  ]);
  const alive = await manager.hears("WATCHDOG=1");
  await manager.hears("WATCHDOG=1", alive);
  svc.process.kill("SIGHUP");
  const reloading = await manager.hears("RELOADING=1");
  const served = await manager.hears("READY=1", reloading);
  await svc.kill("SIGTERM");
  await manager.hears("STATUS=Stopping", await manager.hears("STOPPING=1", served));
  expect(manager.heard()).not.toContain("watchdog timeout");
});

test.skipIf(missing.length > 0)(
  "a program that is stopped is not said to be alive, and is again when it goes on",
  async () => {
    const { manager, svc } = await start(`@svc-${randomUUID()}`);
    await manager.hears("WATCHDOG=1");
    svc.process.kill("SIGSTOP");
    const noticed = await manager.hears("watchdog timeout");
    svc.process.kill("SIGCONT");
    await manager.hears("WATCHDOG=1", noticed);
  },
);

test.skipIf(missing.length > 0)("a writer that hangs while the event loop runs is noticed", async () => {
  const { manager, svc } = await start(`@svc-${randomUUID()}`);
  await manager.hears("WATCHDOG=1");
  const other = new Sqlite(join(svc.dataDir, "svc.db"));
  other.exec("BEGIN IMMEDIATE");
  const writing = svc.admin("POST", "/v1/maintenance", {});
  const noticed = await manager.hears("watchdog timeout");
  expect((await svc.admin("GET", "/v1/status")).status).toBe(200);
  other.close();
  await writing;
  await manager.hears("WATCHDOG=1", noticed);
  expect(svc.log()).toContain("the store's writer does not answer");
});
