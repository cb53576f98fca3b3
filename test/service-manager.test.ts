// The watchdog's pings by a moved clock: when they are due, and when they are left out. What a real socket hears:
// test/peers/service-manager.test.ts.
import { chmodSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { silentLog, type Log } from "../src/log.ts";
import { createServiceManager } from "../src/service-manager.ts";
import { ManualClock } from "./support/clock.ts";
import { removeFolder } from "./support/folders.ts";

/** A systemd-notify that writes what it is to say into a file. */
function world(env: Record<string, string> = {}) {
  const dir = mkdtempSync(join(tmpdir(), "svc-manager-"));
  const said = join(dir, "said");
  const program = join(dir, "systemd-notify");
  writeFileSync(program, `#!/bin/sh\necho "$2 to $NOTIFY_SOCKET" >>'${said}'\n`);
  chmodSync(program, 0o755);
  const clock = new ManualClock();
  const logged: string[] = [];
  const log: Log = {
    ...silentLog,
    error: (_fields, text) => void logged.push(text),
    warn: ({ detail }, text) => void logged.push(`${text}: ${String(detail)}`),
  };
  const manager = createServiceManager({
    env: { NOTIFY_SOCKET: "/run/n", PATH: `${dir}:/usr/bin:/bin`, ...env },
    pid: 7,
    clock,
    log,
  });
  onTestFinished(() => {
    manager.end();
    removeFolder(dir);
  });
  const lines = (): string[] => (existsSync(said) ? readFileSync(said, "utf8").split("\n").slice(0, -1) : []);
  /** Resolves when `count` lines were said. */
  const says = async (count: number): Promise<string[]> => {
    while (lines().length < count) await new Promise((done) => setImmediate(done));
    return lines();
  };
  return { manager, clock, logged, lines, says };
}

const tenSeconds = { WATCHDOG_USEC: "9000000", WATCHDOG_PID: "7" };

test("it says that the program is alive three times within the time that the watchdog waits", async () => {
  const { manager, clock, says } = world(tenSeconds);
  let asked = 0;
  manager.watch(async () => void asked++);
  await clock.advance(6000);
  expect(asked).toBe(3);
  expect(await says(4)).toEqual(
    ["STATUS=Starting", ...Array<string>(3).fill("WATCHDOG=1")].map((line) => `${line} to /run/n`),
  );
});

test("a question that is not answered leaves the pings out and is logged; an answer brings them back", async () => {
  const { manager, clock, logged, says } = world(tenSeconds);
  const answer = Promise.withResolvers<void>();
  manager.watch(() => answer.promise);
  await clock.advance(3000);
  expect(logged).toEqual([expect.stringContaining("the store's writer does not answer")]);
  expect(await says(1)).toHaveLength(1);
  answer.resolve();
  await clock.advance(3000);
  expect((await says(3)).at(-1)).toContain("WATCHDOG=1");
});

test("a writer that refuses is alive: its disk may be full", async () => {
  const { manager, says } = world(tenSeconds);
  manager.watch(() => Promise.reject(new Error("full")));
  expect((await says(2)).at(-1)).toContain("WATCHDOG=1");
});

test.each([
  ["no watchdog is asked for", {}],
  ["the watchdog is another process's", { WATCHDOG_USEC: "9000000", WATCHDOG_PID: "8" }],
  ["its time is no number", { WATCHDOG_USEC: "soon" }],
])("nothing is said of life where %s", async (_why, env) => {
  const { manager, clock } = world(env);
  manager.watch(() => {
    throw new Error("it was asked");
  });
  await clock.advance(60_000);
  expect(clock.pending).toBe(0);
});

test("a line end in a status does not become a message of its own", async () => {
  const { manager, says } = world();
  manager.ready("Serving\nSTOPPING=1");
  expect(await says(3)).toEqual([
    "STATUS=Starting to /run/n",
    "STATUS=Serving STOPPING=1 to /run/n",
    "READY=1 to /run/n",
  ]);
});
