// A backup of the running program under load, and what a restore makes of it: nothing that was accepted before is missing,
// nothing is sent by itself, and what the operator releases arrives once.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, freePort, runCli, startAppliance, type Appliance } from "../support/appliance.ts";
import { tokenOf } from "../support/ledger.ts";
import { startSending, type Sending } from "../support/sending.ts";

let sending: Sending;
let restored: Appliance | null = null;
const address = { address: "127.0.0.78", port: await freePort() };

beforeAll(async () => {
  sending = await startSending("one.test", address, { outbound: { retry: ["1h"] } });
});
afterAll(async () => {
  await restored?.stop();
  await sending?.stop();
});

let tokens = 0;
async function send(to: string, size = 10): Promise<string> {
  const token = `token-${++tokens}-`;
  const body = { from: "a@ok.test", to, subject: "x", text: `${token} ${"word ".repeat(size / 5)}` };
  const { status, text } = await sending.svc.api(sending.key, "POST", "/v1/messages", body);
  expect(status, text).toBe(202);
  return token;
}

const held = async (svc: Appliance): Promise<number> =>
  (await svc.admin("GET", "/v1/status")).json.queue.held as number;

test("a backup under load has all that was accepted before it; restored mail is held, and is sent once when it is released", async () => {
  const { svc, receiver, dns } = sending;
  receiver.options.reply = { rcpt: "451 4.7.1 later" };
  const waiting = [await send("ann@one.test"), await send("bob@one.test", 200_000)];
  await eventually(async () => (await svc.admin("GET", "/v1/status")).json.queue.deferred === 2);
  receiver.options.reply = {};
  const sent = await send("tom@one.test", 100_000);
  await receiver.waitForMails(1);

  let loading = true;
  const load = (async () => {
    while (loading) await send("load@one.test");
  })();
  const to = join(svc.dir, "backups");
  const made = await svc.cli("backup", "--to", to, "--json");
  loading = false;
  await load;
  expect(made.stderr).toBe("");
  expect(made.code).toBe(0);
  const { path, schema, counts } = JSON.parse(made.stdout);
  expect(path).toMatch(/\/svc-\d{8}T\d{6}Z$/);
  expect(readdirSync(to)).toEqual([path.slice(to.length + 1)]);
  expect(readdirSync(path).toSorted()).toEqual(["backup.json", "config", "spool", "svc.db", "tls"]);
  expect([statSync(path).mode & 0o777, statSync(join(path, "svc.db")).mode & 0o777]).toEqual([0o700, 0o600]);
  expect(schema).toBe((await svc.admin("GET", "/v1/status")).json.store.schema_version);
  expect(counts.files).toBe(2);
  expect(counts.unsent_recipients).toBeGreaterThanOrEqual(2);
  expect(readFileSync(join(path, "config/svc.yaml"), "utf8")).toBe(
    readFileSync(join(svc.dir, "svc.yaml"), "utf8"),
  );

  // The server is lost.
  await svc.kill();
  const before = receiver.mails.length;
  const dataDir = join(svc.dir, "new");
  const config = ["--config", join(svc.dir, "svc.yaml")];
  const unasked = await runCli(["restore", path, "--data-dir", dataDir, ...config]);
  expect([unasked.code, existsSync(join(dataDir, "svc.db"))]).toEqual([2, false]);
  const done = await runCli(["restore", path, "--data-dir", dataDir, "--confirm", "restore", ...config]);
  expect(done.stderr).toContain("queue release --status held");
  expect(done.code).toBe(0);

  restored = await startAppliance({
    dataDir,
    config: {
      dns: { servers: [dns.server] },
      outbound: { port: address.port, allow_networks: ["127.0.0.0/8"], retry: ["1h"] },
    },
  });
  // A mail that was under way at the moment of the backup is held too; it may have been delivered since.
  const count = await held(restored);
  expect(count).toBe(counts.unsent_recipients);
  expect((await restored.cli("messages", "list", "--to", "tom@one.test", "--json")).stdout).toContain(
    '"delivered"',
  );
  const fresh = await restored.admin("POST", "/v1/messages", {
    from: "a@ok.test",
    to: "new@one.test",
    subject: "x",
    text: "token-0-",
  });
  await receiver.waitForMails(before + 1);
  expect(receiver.mails.slice(before).map(tokenOf)).toEqual(["token-0-"]);
  expect((await restored.api(sending.key, "GET", `/v1/messages/${fresh.json.id}`)).status).toBe(200);

  const release = await restored.cli("queue", "release", "--status", "held", "--yes");
  expect(release.stderr + release.stdout).toContain(`${count} recipient`);
  await restored.cli("queue", "retry", "--all", "--yes");
  await receiver.waitForMails(before + 1 + count);
  await eventually(async () => {
    const { queue } = (await restored!.admin("GET", "/v1/status")).json;
    return queue.held + queue.queued + queue.deferred + queue.sending === 0;
  });
  const arrived = receiver.mails.map(tokenOf);
  for (const token of [...waiting, sent]) expect(arrived.filter((one) => one === token)).toEqual([token]);
});

test("a backup without content keeps that of unsent mail only, and of a stopped service it is made with --offline", async () => {
  const svc = restored;
  if (!svc) throw new Error("nothing was restored");
  sending.receiver.options.reply = { rcpt: "451 4.7.1 later" };
  const body = { from: "a@ok.test", to: "eve@one.test", subject: "x", text: "unsent ".repeat(20_000) };
  expect((await svc.admin("POST", "/v1/messages", body)).status).toBe(202);
  await eventually(async () => (await svc.admin("GET", "/v1/status")).json.queue.deferred === 1);
  await svc.kill("SIGTERM");
  const to = join(svc.dir, "backups");
  const config = ["--config", join(svc.dir, "svc.yaml")];
  const online = await svc.cli("backup", "--to", to);
  expect([online.code, online.stderr]).toEqual([6, expect.stringContaining("--offline")]);
  const made = await runCli(["backup", "--offline", "--without-content", "--to", to, "--json", ...config]);
  expect(made.stderr).toBe("");
  const { path, content, counts } = JSON.parse(made.stdout);
  expect([content, counts.files]).toEqual(["unsent", 1]);
  expect(readFileSync(join(path, "svc.db")).includes("token-1-")).toBe(false);

  const again = await runCli(["restore", path, "--confirm", "restore", ...config]);
  expect(again.stderr).toContain("before-restore-");
  expect(again.code).toBe(0);
  await svc.restart();
  expect(await held(svc)).toBe(1);
  const running = await runCli(["restore", path, "--confirm", "restore", ...config]);
  expect([running.code, running.stderr]).toEqual([5, expect.stringContaining("in use by process")]);
});
