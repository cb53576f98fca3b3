// A data directory that is in use, damaged or not the one it was: the program says so and touches nothing, and what
// it cannot read it never answers with 2xx.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { program } from "../support/appliance.ts";
import { createLedger, type Ledger } from "../support/ledger.ts";
import { startWorld, type World } from "../support/world.ts";

const pageSize = 4096;
let world: World;
let ledger: Ledger;
let database: string;

beforeAll(async () => {
  ledger = createLedger();
  world = await startWorld({ domains: { "one.test": "127.0.0.38" } });
  database = join(world.svc.dataDir, "svc.db");
});
afterAll(() => world?.stop());

async function send(text = ""): Promise<string> {
  const token = ledger.token();
  const { status, json } = await world.send({ to: "r@one.test", text: `${token}\n${text}` });
  expect(status).toBe(202);
  ledger.acknowledge(token);
  return json.id;
}

const settled = () => ledger.settle(() => world.receiver("one.test").mails);

/** `svc serve` on the same data, with other ports, until it ends by itself: its exit code, what it said. */
async function secondServe(): Promise<{ code: number | null; said: string }> {
  const args = ["serve", "--data-dir", world.svc.dataDir, "--socket", join(world.svc.dir, "second.sock")];
  const env = {
    SVC_HOSTNAME: "mail.svc.test",
    SVC_HTTP_LISTEN: "127.0.0.1:0",
    SVC_RELAY_STARTTLS: "127.0.0.1:0",
  };
  const child = spawn(program, args, {
    env: { ...process.env, ...env, SVC_RELAY_IMPLICIT_TLS: "127.0.0.1:0" },
  });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, said };
}

/** What a start on the data as they are now ends with. */
const refusal = (): Promise<string> =>
  world.svc.restart().then(
    () => "it started",
    (error: Error) => error.message,
  );

function damagePages(wanted: (page: number) => boolean): void {
  const bytes = readFileSync(database);
  for (let page = 0; page < bytes.length / pageSize; page++)
    if (wanted(page))
      for (let i = 0; i < 64; i++) bytes[page * pageSize + i] = 0xff ^ (bytes[page * pageSize + i] ?? 0);
  writeFileSync(database, bytes);
}

test("a second serve on the same data ends and names the first, which goes on", async () => {
  await send();
  const { code, said } = await secondServe();
  expect(code).toBe(1);
  expect(said).toContain(`${world.svc.dataDir} is in use by process ${world.svc.process.pid}`);
  await send();
  await settled();
});

test("a database that is none, cut short or broken at its root is refused with what to do", async () => {
  for (let i = 0; i < 30; i++) await send("x".repeat(20_000));
  await settled();
  await world.svc.kill("SIGTERM");
  const whole = readFileSync(database);
  const damages: (() => void)[] = [
    () => damagePages((page) => page === 0),
    () => damagePages((page) => page > 0),
    () => truncateSync(database, pageSize * Math.floor(whole.length / pageSize / 2)),
    () => writeFileSync(database, "a text, and no database".repeat(1000)),
  ];
  for (const damage of damages) {
    damage();
    const said = await refusal();
    expect(said).toContain("svc serve ended with 1");
    expect(said).toContain(`${database} is damaged: `);
    expect(said).toContain("Restore the data directory");
    expect(said).not.toContain("    at ");
    writeFileSync(database, whole);
  }
  await world.svc.restart();
  await send();
  await settled();
});

test("an empty database beside a spool of messages is not taken for a first start", async () => {
  await send("kept in a file\n".repeat(10_000));
  await settled();
  await world.svc.kill("SIGTERM");
  const whole = readFileSync(database);
  rmSync(database);
  expect(await refusal()).toContain("svc.db is empty, and the spool beside it");
  writeFileSync(database, whole);
  await world.svc.restart();
  const [message] = (await world.svc.admin("GET", "/v1/messages")).json.data;
  expect((await world.svc.admin("GET", `/v1/messages/${message.id}/content`)).status).toBe(200);
});

test("damage that shows only later: reads of it fail with a logged reason, the process stays and stops well", async () => {
  const ids: string[] = [];
  for (let i = 0; i < 40; i++) ids.push(await send("x".repeat(20_000)));
  await settled();
  await world.svc.kill("SIGTERM");
  const { length } = readFileSync(database);
  damagePages((page) => page > length / pageSize / 3); // the schema is whole, most content is not
  await world.svc.restart();
  const pid = world.svc.process.pid;
  const seen = new Set<number>();
  for (const id of ids) {
    for (const path of ["", "/content"]) {
      const answer = await world.svc.admin("GET", `/v1/messages/${id}${path}`);
      seen.add(answer.status);
      if (answer.status === 200) expect(answer.json.id ?? answer.json.text).toBeDefined();
      else expect(answer.json).toMatchObject({ status: 500, code: "internal_error" });
    }
  }
  expect(seen).toContain(500);
  expect(world.svc.log()).toContain("database disk image is malformed");
  const sends = await Promise.all(Array.from({ length: 5 }, () => world.send({ to: "r@one.test" })));
  for (const { status } of sends) expect([202, 503]).toContain(status);
  expect([world.svc.process.pid, world.svc.process.exitCode]).toEqual([pid, null]);
  await world.svc.kill("SIGTERM");
  expect(world.svc.process.exitCode).toBe(0);
});
