// `svc backup` and `svc restore` on the command line: what they ask, wait for, print and end with.
import { statSync, symlinkSync, writeFileSync } from "node:fs";
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

test.each([["backup"], ["db check"], ["doctor"]])("without a daemon %s names --offline", async (command) => {
  const ran = await svc(command.split(" "), { socket: join(scratch(), "none.sock") });
  expect([ran.code, ran.err]).toEqual([6, expect.stringContaining(`${command} --offline`)]);
});

test.each([
  ["backup", "--config"],
  ["db check", "--data-dir"],
  ["doctor", "--config"],
])("%s takes %s with --offline alone: the service that is asked has its own", async (command, flag) => {
  const ran = await svc([...command.split(" "), flag, "/etc/other"], {
    socket: join(scratch(), "none.sock"),
  });
  expect([ran.code, ran.out, ran.err]).toEqual([2, "", expect.stringContaining(`${flag} needs --offline`)]);
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
  checkOffline: () => Promise.reject(new Error("not here")),
  doctorOffline: () => Promise.reject(new Error("not here")),
  migrate: () => Promise.reject(new Error("not here")),
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

const refused = (path: string): Error =>
  Object.assign(new Error(`EACCES: permission denied, mkdir '${path}'`), { code: "EACCES", path });

test.each([
  [
    "root's directory",
    1000,
    "/new",
    "/ belongs to root. Run it so: sudo svc …, or use a directory of your own",
  ],
  [
    "root, whom the owner's rights do not suffice",
    0,
    "/new",
    "with the rights of the data directory's owner",
  ],
])("no permission ends with 4 and says who has it: %s", async (_whom, uid, path, advice) => {
  const daemon = module(() => Promise.reject(refused(path)));
  const ran = await svc(["restore", scratch(), "--data-dir", path, "--confirm", "restore"], { daemon, uid });
  expect([ran.code, ran.err]).toEqual([4, expect.stringContaining(advice)]);
  expect(ran.err).not.toContain("sudo -u svc");
});

test("a directory of another user names that user", async () => {
  const place = scratch();
  const uid = statSync(place).uid + 1;
  const daemon = module(() => Promise.reject(refused(join(place, "new"))));
  const ran = await svc(["restore", place, "--data-dir", place, "--confirm", "restore"], { daemon, uid });
  expect(ran.err).toContain(`${place} belongs to ${uid === 1 ? "root" : `user ${uid - 1}`}`);
});

const migrating = (migrate: DaemonModule["migrate"]): DaemonModule => ({ ...module(restoredTo), migrate });

/** A data directory, as far as the command line looks. */
function dataDirectory(): string {
  const place = scratch();
  writeFileSync(join(place, "svc.db"), "");
  return place;
}

test("a migration says from where to where it went and what it left beside; --json has the same", async () => {
  const daemon = migrating(async ({ dryRun }) => ({
    from: 3,
    to: 4,
    copy: dryRun ? null : "/data/svc.db.v3.bak",
  }));
  const place = dataDirectory();
  const args = ["migrate", "--data-dir", place];
  const done = await svc(args, { daemon });
  expect([done.code, done.out]).toEqual([0, `${place} is brought from schema version 3 to 4\n`]);
  expect(done.err).toContain("/data/svc.db.v3.bak");
  const planned = await svc([...args, "--dry-run"], { daemon });
  expect([planned.code, planned.out]).toEqual([0, `${place} would be brought from schema version 3 to 4\n`]);
  expect(JSON.parse((await svc([...args, "--json"], { daemon })).out)).toEqual({
    data_dir: place,
    from: 3,
    to: 4,
    copy: "/data/svc.db.v3.bak",
    dry_run: false,
  });
  const same = await svc(args, { daemon: migrating(async () => ({ from: 4, to: 4, copy: null })) });
  expect(same.out).toBe(`${place} has schema version 4 already\n`);
});

test("a migration of a running service ends with 5, one that fails with 1", async () => {
  const args = ["migrate", "--data-dir", dataDirectory()];
  const busy = migrating(() => Promise.reject(new StoreLocked("/data is in use by process 7")));
  const ran = await svc(args, { daemon: busy });
  expect([ran.code, ran.err]).toEqual([5, expect.stringContaining("systemctl stop svc-mail")]);
  const newer = migrating(() => Promise.reject(new Error("schema version 9; this program knows 4")));
  expect(await svc(args, { daemon: newer })).toMatchObject({
    code: 1,
    err: expect.stringContaining("version 9"),
  });
});

test("migrate: a data directory that cannot be looked into is not said to have no database", async () => {
  const loop = join(scratch(), "loop");
  symlinkSync(loop, loop);
  const ran = await svc(["migrate", "--data-dir", loop]);
  expect([ran.code, ran.err]).toEqual([1, expect.stringContaining("ELOOP")]);
});
