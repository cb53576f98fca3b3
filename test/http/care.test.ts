// The operator's routes of retention and of the database's check, of the whole program on a store on disk.
import { readdirSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startProgram, type Program } from "../support/program.ts";

let program: Program;
beforeAll(async () => {
  program = await startProgram({ config: { retention: { audit: "1d" } } });
});
afterAll(() => program.stop());

/** The state of `path` once what runs there has ended. */
async function ended(path: string) {
  for (;;) {
    const state = await program.admin("GET", path);
    if (state.running === null) return state;
    await new Promise((done) => setImmediate(done));
  }
}

test("a check of the database finds it sound, and leaves nothing behind", async () => {
  expect(await program.admin("GET", "/v1/database/check")).toEqual({ running: null, last: null });
  const begun = await program.admin("POST", "/v1/database/check");
  expect(begun.running.progress).toBeGreaterThanOrEqual(0);
  const { last } = await ended("/v1/database/check");
  expect(last).toMatchObject({
    started_at: begun.running.started_at,
    error: null,
    found: {
      sound: true,
      faults: [],
      dangling_rows: 0,
      files: { named: 0, missing: 0, cut_short: 0, unnamed: 0 },
    },
  });
  expect(readdirSync(program.dataDir).filter((name) => name.startsWith(".check"))).toEqual([]);
});

test("a run of retention says what it deleted and returned", async () => {
  const begun = await program.admin("POST", "/v1/retention");
  expect(begun.running).not.toBe(null);
  const { last } = await ended("/v1/retention");
  expect(last).toMatchObject({ started_at: begun.running.started_at, error: null });
  expect(last.deleted).toMatchObject({ content: 0, messages: 0, file_bytes: 0 });
});

test("what is old enough is counted", async () => {
  const none = { rows: 0, more: false };
  expect(await program.admin("GET", "/v1/retention/expired")).toEqual({
    content: none,
    messages: none,
    events: none,
    audit: none,
  });
});
