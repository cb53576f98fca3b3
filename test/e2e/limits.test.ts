// `svc limits` from the outside: what the operator sets holds at once for mail that waits, is kept over a restart, and
// says what holds and why.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../support/appliance.ts";
import { startWorld, type World } from "../support/world.ts";
import { removeFolder } from "../support/folders.ts";

let world: World;
const home = mkdtempSync(join(tmpdir(), "svc-limits-"));
const shapingFile = join(home, "shaping.yaml");
beforeAll(async () => {
  writeFileSync(shapingFile, "groups: { file.test: { per_second: 0.02 } }");
  world = await startWorld({
    domains: {
      "slow.test": "127.0.0.61",
      "busy.test": "127.0.0.62",
      "clear.test": "127.0.0.63",
      "file.test": "127.0.0.64",
    },
    config: { outbound: { shaping_file: shapingFile } },
  });
});
afterAll(async () => {
  await world?.stop();
  removeFolder(home);
});

const queue = async (domain: string, count: number): Promise<string> => {
  const to = Array.from({ length: count }, (_, i) => `r${i}@${domain}`);
  const body = { from: "a@ok.test", to, subject: "x", text: "x" };
  const { status, json } = await world.svc.admin("POST", "/v1/messages", body);
  expect(status).toBe(202);
  return json.id;
};
const shaping = async (name: string) => (await world.svc.admin("GET", `/v1/shaping/${name}`)).json;

test("a rate that is set holds back mail at once, and lets it go at once when it is raised", async () => {
  const { receiver, svc } = world;
  const set = await svc.cli("limits", "set", "slow.test", "--connections", "1", "--per-second", "0.02");
  expect(set.code).toBe(0);
  const id = await queue("slow.test", 40);
  await receiver("slow.test").waitForMails(1);
  const waits = (await svc.admin("GET", `/v1/messages/${id}/waits`)).json.data;
  expect(waits.map(({ rule }: { rule: string }) => rule)).toContain("rate");
  expect((await svc.cli("messages", "trace", id)).stderr).toContain("the rate at slow.test allows");
  expect(await shaping("slow.test")).toMatchObject({
    connections: 1,
    per_second: 0.02,
    messages_per_connection: 100,
    origin: "set",
    mx_group: "slow.test",
    from: { connections: { rule: "slow.test", origin: "set" }, messages_per_connection: { rule: "default" } },
    now: [{ group: "slow.test", attempts_limit: 1, factor: 1 }],
  });
  expect(receiver("slow.test").mails.length).toBeLessThan(3);
  const raised = await svc.cli("limits", "set", "slow.test", "--per-second", "1000");
  expect(raised.stdout).toContain("1000");
  await receiver("slow.test").waitForMails(40);
  const audit = (await svc.admin("GET", "/v1/audit?limit=100")).json.data;
  expect(audit).toContainEqual(
    expect.objectContaining({
      action: "shaping.update",
      target: "slow.test",
      detail: expect.objectContaining({ per_second: 1000 }),
    }),
  );
});

test("a receiver that names its limit of connections is seen by which reply, and since when", async () => {
  const { receiver, svc } = world;
  const words = "421 4.3.2 The maximum number of concurrent server connections has exceeded a limit (S77719)";
  receiver("busy.test").options.reply = { mail: words };
  await queue("busy.test", 5);
  const slowed = await eventually(async () => {
    const { now } = await shaping("busy.test");
    return now[0]?.slowed_by ? now[0] : null;
  });
  expect(slowed).toMatchObject({ group: "busy.test", attempts_limit: 5, slowed_by: words });
  expect(Date.parse(slowed.slowed_since)).toBeLessThanOrEqual(Date.parse(slowed.slowed_at));
  const shown = await svc.cli("limits", "show", "busy.test");
  expect(shown.stdout).toContain("S77719");
  const listed = (await svc.admin("GET", "/v1/shaping")).json.data;
  expect(listed.find(({ name }: { name: string }) => name === "default").slowed).toBe(1);
  receiver("busy.test").options.reply = {};
  await receiver("busy.test").waitForMails(5);
});

test("mail for a domain that is to go over TLS waits while its server has none", async () => {
  const { receiver, svc } = world;
  expect((await svc.cli("limits", "set", "clear.test", "--tls", "require")).code).toBe(0);
  await queue("clear.test", 1);
  await eventually(async () => {
    const { data } = (await svc.admin("GET", "/v1/events?type=message.deferred")).json;
    return JSON.stringify(data).includes("r0@clear.test");
  });
  expect(receiver("clear.test").mails).toHaveLength(0);
  expect((await svc.cli("limits", "unset", "clear.test")).code).toBe(0);
  expect((await svc.cli("limits", "unset", "clear.test")).code).toBe(3);
  await receiver("clear.test").waitForMails(1);
});

test("a probe takes the road of mail up to RCPT, and ends with 7 where the recipient is not accepted", async () => {
  const { receiver, svc } = world;
  const before = receiver("slow.test").mails.length;
  const taken = await svc.cli("probe", "ann@slow.test");
  expect([taken.code, taken.stdout.includes("mx.slow.test"), taken.stdout.includes("127.0.0.61")]).toEqual([
    0,
    true,
    true,
  ]);
  expect(taken.stdout).toContain("RCPT TO:<ann@slow.test>");
  expect(receiver("slow.test").mails).toHaveLength(before);
  const refused = await svc.cli("probe", "permfail@slow.test");
  expect([refused.code, refused.stdout.includes("refused")]).toEqual([7, true]);
  expect((await svc.cli("probe", "not an address")).code).toBe(1);
});

test("what was set holds after a restart; what is wrong says what would be right", async () => {
  const { svc } = world;
  expect((await svc.cli("limits", "set", "google", "--per-second", "5")).code).toBe(0);
  await svc.kill("SIGTERM");
  await svc.restart();
  expect(await shaping("google")).toMatchObject({ per_second: 5, connections: 10, origin: "set" });
  expect((await svc.cli("limits", "list")).stdout).toContain("google");
  const wrong = await svc.cli("limits", "set", "gogle", "--per-second", "5");
  expect([wrong.code, wrong.stderr.includes("or one of google, microsoft")]).toEqual([1, true]);
});

test("the shaping file is read again at SIGHUP, also for mail that waits; one with a fault is logged and changes nothing", async () => {
  const { receiver, svc } = world;
  const logged = (text: string) => eventually(async () => svc.log().includes(text), undefined, text);
  await queue("file.test", 40);
  await receiver("file.test").waitForMails(1);
  expect(await shaping("file.test")).toMatchObject({ per_second: 0.02, origin: "shaping_file" });

  writeFileSync(shapingFile, "groups: { file.test: { per_second: fast } }");
  svc.process.kill("SIGHUP");
  await logged("the shaping file is unusable");
  await logged("a number above 0, to 100000");
  expect(await shaping("file.test")).toMatchObject({ per_second: 0.02 });
  expect(receiver("file.test").mails.length).toBeLessThan(3);

  writeFileSync(shapingFile, "groups: { file.test: { per_second: 1000 } }");
  svc.process.kill("SIGHUP");
  await receiver("file.test").waitForMails(40);
  expect(await shaping("file.test")).toMatchObject({ per_second: 1000, origin: "shaping_file" });
  rmSync(shapingFile);
  svc.process.kill("SIGHUP");
  await logged("where there is no file");
  expect(await shaping("file.test")).toMatchObject({ per_second: 1000 });
});
