// What an operator takes care of a running service with: prune, db check. What they ask, print and end with.
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Clock } from "../../src/clock.ts";
import { fakeDaemon, scratch, svc } from "./world.ts";

/** Time passes as soon as somebody waits for it. */
const clock: Clock = {
  now: () => 0,
  monotonic: () => 0,
  after(_ms, run) {
    setImmediate(run);
    return { cancel: () => undefined };
  },
};

/** A daemon whose act of `path` runs for two looks and has `last` then. */
async function daemonThatEnds(path: string, last: object | null) {
  let asked = 0;
  const running = { running: { started_at: "2026-11-27T09:00:00.000Z" }, last: null };
  const { socket } = await fakeDaemon({
    [`POST ${path}`]: { status: 202, json: running },
    [`GET ${path}`]: () => ({ json: ++asked < 3 ? running : { running: null, last } }),
  });
  return socket;
}

const deleted = { content: 5, messages: 0, files: 2, file_bytes: 3_000_000, returned_bytes: 1_000_000 };

test("prune waits for its end, and says how much was freed", async () => {
  const socket = await daemonThatEnds("/v1/retention", { error: null, deleted });
  const ran = await svc(["prune"], { socket, clock });
  expect([ran.code, ran.err]).toEqual([0, ""]);
  expect(ran.out).toMatch(/^freed [34](\.\d)? MB\n/);
  expect(ran.out).toMatch(/^content\s+5$/m);
  expect(ran.out).not.toContain("messages");
  const json = await svc(["prune", "--json"], {
    socket: await daemonThatEnds("/v1/retention", { error: null, deleted }),
    clock,
  });
  expect(JSON.parse(json.out)).toMatchObject({ deleted });
});

test("a prune that fails, or whose daemon was restarted, ends with 1; one that is not alone with 5", async () => {
  const failed = await daemonThatEnds("/v1/retention", { error: "no room", deleted });
  expect(await svc(["prune"], { socket: failed, clock })).toMatchObject({
    code: 1,
    err: expect.stringContaining("no room"),
  });
  const lost = await daemonThatEnds("/v1/retention", null);
  expect((await svc(["prune"], { socket: lost, clock })).code).toBe(1);
  const busy = await fakeDaemon({
    "POST /v1/retention": { status: 409, json: { code: "conflict", detail: "It runs." } },
  });
  expect((await svc(["prune"], { socket: busy.socket, clock })).code).toBe(5);
});

test("prune --dry-run deletes nothing and counts what is old enough", async () => {
  const none = { rows: 0, more: false };
  const { socket, seen } = await fakeDaemon({
    "GET /v1/retention/expired": {
      json: {
        content: { rows: 100_000, more: true },
        messages: { rows: 7, more: false },
        events: none,
        audit: none,
      },
    },
  });
  const ran = await svc(["prune", "--dry-run"], { socket });
  expect(ran.out).toMatch(/^content\s+at least 100000\nmessages\s+7\n/);
  expect(ran.err).toContain("still to be sent");
  expect(seen.map(({ method }) => method)).toEqual(["GET"]);
});

const sound = {
  sound: true,
  faults: [],
  dangling_rows: 0,
  files: { named: 3, missing: 0, cut_short: 0, unnamed: 1 },
  database_bytes: 5_000_000_000,
  log_bytes: 16_000_000,
};

test("db check shows what it found, and ends with 0 where all is well", async () => {
  const socket = await daemonThatEnds("/v1/database/check", { found: sound, error: null });
  const ran = await svc(["db", "check"], { socket, clock });
  expect([ran.code, ran.err]).toEqual([0, ""]);
  expect(ran.out).toMatch(/^database\s+intact, /);
  expect(ran.out).toMatch(/^files of content\s+3 named, 0 missing, 0 cut short$/m);
});

test.each([
  ["a damaged table", { faults: ["row 7 missing from index t_v"] }, "restore the newest backup"],
  ["a missing file", { files: { ...sound.files, missing: 1 } }, "from a backup's spool/"],
])("db check ends with 7 and says the mend: %s", async (_what, found, mend) => {
  const last = { found: { ...sound, sound: false, ...found }, error: null };
  for (const flags of [[], ["--json"]]) {
    const socket = await daemonThatEnds("/v1/database/check", last);
    const ran = await svc(["db", "check", ...flags], { socket, clock });
    expect([ran.code, ran.err]).toEqual([7, expect.stringContaining(mend)]);
    if (flags.length > 0) expect(JSON.parse(ran.out)).toMatchObject({ sound: false, ...found });
  }
});

test("a check that was not completed ends with 1, without a daemon with 6", async () => {
  const socket = await daemonThatEnds("/v1/database/check", { found: null, error: "the disk has 3 MB free" });
  expect(await svc(["db", "check"], { socket, clock })).toMatchObject({
    code: 1,
    err: expect.stringContaining("3 MB free"),
  });
  expect((await svc(["db", "check"], { socket: join(scratch(), "none.sock") })).code).toBe(6);
});
