// `svc doctor` from the outside, on a machine without the Internet: a DNS of the test's own says what is right.
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runCli } from "../support/appliance.ts";
import { startSending, type Sending } from "../support/sending.ts";

let sending: Sending;

beforeAll(async () => {
  sending = await startSending(
    "one.test",
    { address: "127.0.0.24" },
    {
      records: {
        "mail.svc.test": { A: ["127.0.0.1"] },
        "1.0.0.127.in-addr.arpa": { PTR: ["mail.svc.test"] },
        "gmail.com": { MX: ["10 mx.one.test"] },
      },
    },
  );
});
afterAll(() => sending?.stop());

interface Found {
  id: string;
  status: string;
  saw: string;
  mend: string | null;
}
const doctor = async (...flags: string[]) => {
  const { code, stdout, stderr } = await sending.svc.cli("doctor", "--json", ...flags);
  return { code, stderr, checks: (stdout === "" ? [] : JSON.parse(stdout).checks) as Found[] };
};

test("what is right is ok, and what the DNS says wrong fails with what mends it; the exit code is 7", async () => {
  const { dns } = sending;
  const wanted = ["host-name", "port-25", "resolver", "domains", "dkim", "database", "queue", "file-modes"];
  const well = await doctor("--only", wanted.join());
  expect(well.checks.map(({ id, status }) => [id, status]).filter(([, status]) => status !== "ok")).toEqual(
    [],
  );
  expect(well.code).toBe(0);
  dns.set("1.0.0.127.in-addr.arpa", "PTR", ["vps1.hoster.test"]);
  dns.remove("gmail.com");
  const wrong = await doctor("--only", wanted.join());
  expect(wrong.code).toBe(7);
  expect(wrong.checks.find(({ id }) => id === "host-name")).toMatchObject({
    status: "fail",
    mend: expect.stringContaining("reverse name (PTR) to mail.svc.test"),
  });
  expect(wrong.checks.find(({ id }) => id === "port-25")?.status).toBe("unknown");
});

test("for a person: a line a check, what to do below it, and the next step last", async () => {
  const { code, stdout, stderr } = await sending.svc.cli(
    "doctor",
    "--only",
    "certificate,operator-mail,database",
  );
  expect(code).toBe(0);
  expect(stdout).toMatch(/^WARN +certificate +it is self-signed/m);
  expect(stdout).toMatch(
    /^WARN +operator-mail +operations\.email is not set\n +why it matters: .*\n +what to do: set operations\.email/m,
  );
  expect(stdout).toMatch(/^ok +database +journal wal, synchronous full/im);
  const strict = await sending.svc.cli("doctor", "--only", "operator-mail", "--strict");
  expect(strict.code).toBe(7);
  expect(strict.stderr).toContain("doctor --only operator-mail");
  expect(stderr).not.toContain("Error");
});

test("--list and --explain say what is right; an id that is none is a wrong command line", async () => {
  const { svc } = sending;
  expect((await svc.cli("doctor", "--list")).stdout).toContain("reverse-names");
  expect((await svc.cli("doctor", "--explain", "database")).stdout).toContain(
    "what is right: The database takes writes",
  );
  const wrong = await svc.cli("doctor", "--only", "ptr");
  expect([wrong.code, wrong.stderr.includes("expected host-name,")]).toEqual([2, true]);
});

test("every check ends, whatever the machine lacks", async () => {
  const { checks } = await doctor();
  expect(checks.length).toBeGreaterThan(20);
  expect(new Set(checks.map(({ status }) => status))).toEqual(new Set(["ok", "warn", "fail", "unknown"]));
});

test("--offline leaves a service that runs alone, and names the command that asks it", async () => {
  const { svc } = sending;
  const ran = await svc.cli("doctor", "--offline", "--config", join(svc.dir, "svc.yaml"));
  expect([ran.code, ran.stderr]).toEqual([5, expect.stringContaining("Without --offline")]);
});

test("of a stopped service --offline prints what the running one would, with the same exit code", async () => {
  const { svc } = sending;
  await svc.kill("SIGTERM");
  const config = ["--config", join(svc.dir, "svc.yaml")];
  const online = await runCli(["doctor", "--socket", svc.socket]);
  expect([online.code, online.stderr]).toEqual([6, expect.stringContaining("doctor --offline")]);
  const ran = await runCli(["doctor", "--offline", "--json", ...config]);
  expect([ran.code, ran.stderr]).toEqual([
    7,
    expect.stringContaining(`doctor --offline --config '${config[1]}' --only`),
  ]);
  const { checks } = JSON.parse(ran.stdout) as { checks: Found[] };
  const statusOf = (id: string) => checks.find((one) => one.id === id)?.status;
  expect(["ports", "database", "domains", "listeners"].map(statusOf)).toEqual(["ok", "ok", "ok", "unknown"]);
  expect(checks.length).toBeGreaterThan(20);
  const well = await runCli(["doctor", "--offline", "--only", "ports,database", ...config]);
  expect([well.code, well.stdout]).toEqual([0, expect.stringMatching(/^ok +ports +\d+ are free$/m)]);
});
