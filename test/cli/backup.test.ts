// `svc backup` and `svc restore` on the command line: what they ask, wait for, print and end with.
import { join } from "node:path";
import { expect, test } from "vitest";
import type { DaemonModule } from "../../src/cli/daemon-contract.ts";
import type { Clock } from "../../src/clock.ts";
import { StoreLocked } from "../../src/store/store.ts";
import { fakeDaemon, scratch, svc } from "./world.ts";

const counts = { messages: 3, unsent_recipients: 1, files: 2, file_bytes: 2048, files_missing: 0 };
const backup = {
  path: "/var/backups/svc/svc-20261127T090000Z",
  created_at: "2026-11-27T09:00:00.000Z",
  counts,
};
const runningState = {
  running: { to: "/x", content: "all", started_at: "2026-11-27T09:00:00.000Z", progress: 0.4 },
  last: null,
  data: [],
};
const ended = (last: object) => ({
  running: null,
  last: { ended_at: "x", backup: null, error: null, ...last },
  data: [],
});

/** Time passes as soon as somebody waits for it. */
const atOnce: Clock = {
  now: () => 0,
  monotonic: () => 0,
  after(_ms, run) {
    setImmediate(run);
    return { cancel: () => undefined };
  },
};

async function daemonThatEnds(last: object) {
  let asked = 0;
  return fakeDaemon({
    "POST /v1/backups": { status: 202, json: runningState },
    "GET /v1/backups": () => ({ json: ++asked < 3 ? runningState : ended(last) }),
  });
}

test("it waits until the backup is made, and prints where", async () => {
  const { socket, seen } = await daemonThatEnds({ backup });
  const ran = await svc(["backup", "--to", "here", "--without-content"], {
    socket,
    clock: atOnce,
    cwd: "/srv",
  });
  expect([ran.code, ran.out]).toEqual([0, `${backup.path}\n`]);
  expect(ran.err).toContain("3 messages, 1 unsent recipients, 2 files");
  expect(seen[0]?.body).toEqual({ to: "/srv/here", content: "unsent" });
});

test("on a terminal it shows how far it is, and under --json nothing but the body", async () => {
  const { socket } = await daemonThatEnds({ backup });
  expect((await svc(["backup"], { socket, clock: atOnce, tty: true })).err).toContain("backing up: 40 %");
  const json = await svc(["backup", "--json"], { socket, clock: atOnce, tty: true });
  expect([JSON.parse(json.out), json.err]).toEqual([backup, ""]);
});

test("a backup that fails ends with 1 and the cause, and with 5 while another one runs", async () => {
  const { socket } = await daemonThatEnds({ error: "the disk has 3 MB free" });
  const failed = await svc(["backup"], { socket, clock: atOnce });
  expect([failed.code, failed.err]).toEqual([1, expect.stringContaining("the disk has 3 MB free")]);
  const busy = await fakeDaemon({
    "POST /v1/backups": { status: 409, json: { code: "conflict", detail: "A backup is running." } },
  });
  expect((await svc(["backup"], { socket: busy.socket })).code).toBe(5);
});

test("without a daemon it names --offline", async () => {
  const ran = await svc(["backup"], { socket: join(scratch(), "none.sock") });
  expect([ran.code, ran.err]).toEqual([6, expect.stringContaining("backup --offline")]);
});

const manifest = {
  format: 1,
  version: "1",
  schema: 1,
  created_at: "2026-11-27T09:00:00.000Z",
  hostname: "mail.acme.example",
  scheduled: false,
  content: "all" as const,
  counts,
  files: [],
};
const module = (restore: DaemonModule["restore"]): DaemonModule => ({
  serve: () => Promise.reject(new Error("not here")),
  initialise: () => Promise.reject(new Error("not here")),
  backupOffline: () => Promise.reject(new StoreLocked("/data is in use by process 7")),
  restore,
});
const restoredTo: DaemonModule["restore"] = () =>
  Promise.resolve({
    manifest,
    schema: 1,
    aside: "/data/before-restore-x",
    held: [
      { account: "default", recipients: 2 },
      { account: "shop", recipients: 1 },
    ],
    filesMissing: 0,
    config: [],
  });

test("a restore wants the word, does nothing without it, and says how the held mail is released", async () => {
  const from = scratch();
  const args = ["restore", from, "--data-dir", "/data"];
  const daemon = module(restoredTo);
  const unasked = await svc(args, { daemon });
  expect([unasked.code, unasked.err]).toEqual([2, expect.stringContaining("--confirm restore")]);
  expect((await svc([...args, "--confirm", "yes"], { daemon })).code).toBe(2);
  const done = await svc([...args, "--confirm", "restore"], { daemon });
  expect([done.code, done.out]).toEqual([
    0,
    "/data is as it was at 2026-11-27T09:00:00.000Z on mail.acme.example\n",
  ]);
  expect(done.err).toContain("/data/before-restore-x");
  expect(done.err).toContain("3 recipients were unsent then, and are held");
  expect(done.err).toContain("queue release --status held --account shop");
});

test("a missing backup ends with 3, a running service with 5", async () => {
  const confirm = ["--data-dir", "/data", "--confirm", "restore"];
  expect((await svc(["restore", "/nowhere", ...confirm], { daemon: module(restoredTo) })).code).toBe(3);
  const daemon = module(() => Promise.reject(new StoreLocked("/data is in use by process 7")));
  const busy = await svc(["restore", scratch(), ...confirm], { daemon });
  expect([busy.code, busy.err]).toEqual([5, expect.stringContaining("systemctl stop svc-mail")]);
});
