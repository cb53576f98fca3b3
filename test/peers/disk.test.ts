// A disk that is full, nearly full, or that fails to sync: nothing is acknowledged that is not kept, what was
// acknowledged arrives once, and the appliance goes on by itself when the disk is well again. Needs root: a tmpfs of
// the test's own, and strace to fail the syncs of the running process.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { eventually, type Answer } from "../support/appliance.ts";
import { createLedger, type Ledger } from "../support/ledger.ts";
import { missingPeers } from "../support/peers.ts";
import { mountSmallDisk, type SmallDisk } from "../support/small-disk.ts";
import { startWorld, type World } from "../support/world.ts";

const missing = missingPeers();
if (missing) console.warn(`SKIPPED: tests of a failing disk: ${missing}`);

const megabyte = 1024 * 1024;
const large = "fifty bytes and their line end, again and again\r\n".repeat(megabyte / 49);
/** Mails of up to 64 KB live in the database, larger ones in files. */
const middling = large.slice(0, 200_000);

const plenty = { burst: 100_000, per_second: 100_000 };

let disk: SmallDisk;
let world: World;
let ledger: Ledger;

async function begin(minFreeSpace = "0%"): Promise<void> {
  world = await startWorld({
    domains: { "one.test": "127.0.0.31" },
    // A refused send is answered at once, so that a loop of them would empty the bucket before the disk has room.
    config: {
      limits: { min_free_space: minFreeSpace, rates: { "messages-write": plenty, account: plenty } },
    },
    dataDir: join(disk.path, "data"),
  });
}

/** Sends over REST; anything but 202 and a proper 503 is a failure of the test. */
async function send(text: string): Promise<Answer> {
  const token = ledger.token();
  const answer = await world.send({ to: "r@one.test", text: `${token}\n${text}` });
  if (answer.status === 202) ledger.acknowledge(token);
  else {
    expect(answer.json, answer.text).toMatchObject({ status: 503, code: "service_overloaded" });
    expect(Number(answer.headers["retry-after"])).toBeGreaterThanOrEqual(1);
  }
  return answer;
}

/** Sends over SMTP; answers the first reply that refuses, or the one to the dot. */
async function submit(text: string): Promise<string> {
  const token = ledger.token();
  const client = await world.smtp();
  const mail = `From: a@ok.test\r\nTo: r@one.test\r\nSubject: x\r\n\r\n${token}\r\n${text}\r\n.\r\n`;
  const reply = await client.submit("a@ok.test", ["r@one.test"], mail);
  client.end();
  if (reply.code === 250) ledger.acknowledge(token);
  return reply.text;
}

const acceptsAgain = (withinMs: number) =>
  eventually(async () => (await send("room?")).status === 202, withinMs, "mail being accepted again");

const mails = () => world.receiver("one.test").mails;

/** Everything acknowledged has arrived once; stopped, the database is whole. */
async function judge(): Promise<void> {
  await ledger.settle(mails);
  expect(world.svc.process.exitCode, world.svc.log()).toBeNull();
  await world.svc.kill("SIGTERM");
  expect(world.svc.process.exitCode).toBe(0);
  const db = new Sqlite(join(world.svc.dataDir, "svc.db"), { readonly: true });
  expect(db.pragma("integrity_check", { simple: true })).toBe("ok");
  db.close();
}

describe.skipIf(missing !== null)("a disk", () => {
  beforeEach(() => {
    ledger = createLedger();
    disk = mountSmallDisk(64);
  });
  afterEach(async () => {
    await world?.stop();
    disk.unmount();
  });

  test("that fills up: 503 and 452, reading goes on, and with room again it accepts within 10 s", async () => {
    await begin();
    disk.fill(disk.freeBytes() - 24 * megabyte);
    await eventually(async () => (await send(large)).status === 503, 60_000, "the disk being full");
    expect(ledger.acknowledged).toBeGreaterThan(15);
    disk.free();
    disk.fill(600 * 1024); // not enough for a large mail, and one line still fits
    await acceptsAgain(10_000);
    const client = await world.smtp();
    for (const line of ["MAIL FROM:<a@ok.test>", "RCPT TO:<r@one.test>"])
      expect((await client.command(line)).code).toBe(250);
    expect((await client.command("DATA")).code).toBe(354);
    disk.fill();
    client.send(`From: a@ok.test\r\nSubject: at the dot\r\n\r\n${middling}\r\n.\r\n`);
    expect((await client.answer()).text).toMatch(/^452 4\.3\.1 /);
    client.end();
    expect((await send("one line")).status).toBe(503);
    expect((await send(middling)).status).toBe(503);
    expect(await submit("one line")).toMatch(/^452 4\.3\.1 /);
    expect(await submit(middling)).toMatch(/^452 4\.3\.1 /);

    const { svc, key } = world;
    const listed = await svc.api(key, "GET", "/v1/messages");
    expect(listed.status).toBe(200);
    const id: string = listed.json.data[0].id;
    for (const path of [`/v1/messages/${id}`, `/v1/messages/${id}/content`, "/v1/events", "/healthz"])
      expect([path, (await svc.api(key, "GET", path)).status]).toEqual([path, 200]);
    expect((await svc.api(key, "GET", "/readyz")).status).toBe(503);
    expect((await svc.admin("GET", "/v1/status")).json).toMatchObject({
      ready: false,
      store: { full: true },
    });

    disk.free();
    await acceptsAgain(10_000);
    expect(await submit("one line")).toMatch(/^250 2\.0\.0 queued/);
    expect((await svc.api(key, "GET", "/readyz")).status).toBe(200);
    await judge();
  });

  test("that is full while exactly 100 mails wait: others are refused, and with room again the 100 arrive, once, without a restart", async () => {
    await begin();
    const { pid } = world.svc.process;
    const receiver = world.receiver("one.test");
    receiver.options.onRcpt = () => "451 4.3.0 not yet";
    for (let i = 0; i < 80; i++) expect((await send(i % 8 === 0 ? middling : "one line")).status).toBe(202);
    for (let i = 0; i < 20; i++) expect(await submit("one line")).toMatch(/^250 2\.0\.0 queued/);
    expect(ledger.acknowledged).toBe(100);
    // A mail that finds room in the log after all may be taken, and is one more to arrive; any other is refused rightly.
    const refused = { rest: 0, smtp: 0 };
    while (refused.rest < 10 || refused.smtp < 10) {
      disk.fill();
      if ((await send(refused.rest % 2 === 0 ? middling : "one line")).status !== 202) refused.rest += 1;
      const reply = await submit(refused.smtp % 2 === 0 ? middling : "one line");
      if (!reply.startsWith("250 ")) refused.smtp += 1;
      expect(reply).toMatch(/^(?:250 2\.0\.0 queued|452 4\.3\.1 )/);
    }
    const {
      scheduled,
      queued,
      deferred,
      sending,
      oldest_due_at: oldest,
    } = (await world.svc.admin("GET", "/v1/status")).json.queue;
    expect(scheduled + queued + deferred + sending).toBe(ledger.acknowledged);
    expect(oldest).not.toBeNull();
    receiver.options.onRcpt = () => undefined;
    disk.free();
    await ledger.settle(mails);
    expect([mails().length, world.svc.process.pid]).toEqual([ledger.acknowledged, pid]);
    await judge();
  });

  test("that a backup would fill: it ends with the reason, leaves nothing, and mail goes on", async () => {
    await begin();
    const other = mountSmallDisk(4);
    try {
      const to = join(other.path, "backups");
      // The first is refused before it begins, the second meets the end of the disk while it copies the files of content.
      for (let i = 0; i < 30; i++) expect((await send(middling)).status).toBe(202);
      other.fill(megabyte / 4);
      const refused = await world.svc.cli("backup", "--to", to);
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("MB free")]);
      other.free();
      const full = await world.svc.cli("backup", "--to", to);
      expect([full.code, full.stderr]).toEqual([1, expect.stringContaining("no space left")]);
      expect(readdirSync(to)).toEqual([]);
      expect((await world.svc.cli("backup", "--to", join(disk.path, "backups"))).code).toBe(0);
      expect((await send(middling)).status).toBe(202);
    } finally {
      other.unmount();
    }
    await judge();
  });

  test("that another program fills under load, three times: the database stays whole and nothing is lost", async () => {
    await begin();
    let loading = true;
    const worker = async (text: string): Promise<void> => {
      while (loading) await send(text);
    };
    const load = Promise.all([worker("one line"), worker("one line"), worker(middling.slice(0, 90_000))]);
    for (let cycle = 0; cycle < 3; cycle++) {
      const before = ledger.acknowledged;
      await eventually(async () => ledger.acknowledged > before + 20);
      disk.fill();
      await eventually(async () => (await send("one line")).status === 503);
      disk.free();
      await acceptsAgain(10_000);
    }
    loading = false;
    await load;
    await judge();
  });

  test("below the low-water mark: mail is refused before the disk is full, and deliveries go on", async () => {
    await begin("10%");
    for (let i = 0; i < 5; i++) expect((await send(middling)).status).toBe(202);
    disk.fill(39 * megabyte);
    await eventually(async () => (await send("one line")).status === 503);
    expect(await submit("one line")).toMatch(/^452 4\.3\.1 /);
    await ledger.settle(mails);
    await eventually(async () => {
      const { data } = (await world.svc.admin("GET", "/v1/events")).json;
      return data.filter((event: { event: string }) => event.event === "message.delivered").length >= 5;
    });
    disk.free();
    await acceptsAgain(10_000);
    await judge();
  });

  test.each([
    ["ends", "SIGINT"],
    ["is ended by a kill -9 of the appliance", "SIGKILL"],
  ] as const)(
    "that does not sync until that %s: nothing is acknowledged, all before it arrives",
    async (_how, signal) => {
      await begin();
      for (let i = 0; i < 10; i++) expect((await send("one line")).status).toBe(202);
      await eventually(async () => {
        const { queue } = (await world.svc.admin("GET", "/v1/status")).json;
        return queue.queued + queue.sending === 0;
      });
      const inject = "inject=fsync,fdatasync:error=EIO";
      const pid = String(world.svc.process.pid);
      const strace = spawn("strace", ["-f", "-p", pid, "-e", inject, "-o", "/dev/null"]);
      await once(strace.stderr, "data"); // "attached"
      try {
        for (let i = 0; i < 5; i++) {
          expect((await send("one line")).status).toBe(503);
          expect((await send(middling)).status).toBe(503);
        }
        expect(await submit("one line")).toMatch(/^45[12] 4\.3\.[01] /);
        expect(await submit(middling)).toMatch(/^45[12] 4\.3\.[01] /);
      } finally {
        const gone = once(strace, "exit");
        if (signal === "SIGKILL") await world.svc.kill("SIGKILL");
        else strace.kill("SIGINT");
        await gone;
      }
      const { exitCode, signalCode } = world.svc.process;
      expect(exitCode).not.toBe(0);
      if (exitCode !== null || signalCode !== null) await world.svc.restart();
      await acceptsAgain(10_000);
      await judge();
    },
  );
});
