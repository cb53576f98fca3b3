// The operator's commands against the built program: a reload that drops no session, lock-outs that are cleared, the log
// and the audit log as they grow, and health as an exit code.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type PeerCertificate } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, program, runCli, startAppliance, type Appliance } from "../support/appliance.ts";
import { connectSmtp } from "../support/smtp-client.ts";
import { selfSigned } from "../support/webhook-receiver.ts";
import { removeFolder } from "../support/folders.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-operator-"));
const files = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") };
let svc: Appliance;

async function newCertificate(name: string): Promise<void> {
  const { key, cert } = await selfSigned({ names: [name] });
  writeFileSync(files.key, key);
  writeFileSync(files.cert, cert);
}

beforeAll(async () => {
  await newCertificate("mail.svc.test");
  svc = await startAppliance({ config: { tls: { mode: "files", ...files } } });
});
afterAll(async () => {
  await svc?.stop();
  removeFolder(folder);
});

const shown = async (port: number): Promise<string> => {
  const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const { fingerprint256 }: PeerCertificate = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
};

/** A command that goes on, and what it has printed. */
function following(...args: string[]): { child: ChildProcess; printed(): string } {
  const child = spawn(program, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, SVC_SOCKET: svc.socket },
  });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  return { child, printed: () => text };
}

test("a reload shows the new certificate on every port and drops no session; what needs a restart is named", async () => {
  const session = await connectSmtp({ port: svc.tlsPort, tls: true });
  expect((await session.answer()).code).toBe(220);
  expect((await session.command("EHLO client.test")).code).toBe(250);
  const before = await Promise.all([shown(svc.httpPort), shown(svc.tlsPort)]);
  await newCertificate("mail.svc.test");
  const file = join(svc.dir, "svc.yaml");
  const yaml = readFileSync(file, "utf8");
  const config = JSON.parse(yaml) as Record<string, object>;
  writeFileSync(file, JSON.stringify({ ...config, outbound: { max_age: "24h" }, guard: false }));

  const ran = await svc.cli("reload");
  expect([ran.code, ran.stdout]).toEqual([0, "reloaded the certificates and the shaping file\n"]);
  expect(ran.stderr).toContain("used from the next start: outbound.max_age, guard");
  const after = await Promise.all([shown(svc.httpPort), shown(svc.tlsPort)]);
  expect(new Set(after).size).toBe(1);
  expect(after).not.toContain(before[0]);
  expect((await session.command("NOOP")).code).toBe(250);
  expect((await session.command("QUIT")).code).toBe(221);

  writeFileSync(file, '{"outbound": {"max_age": "long"}}');
  const wrong = await svc.cli("reload");
  expect(wrong.code).toBe(78);
  expect(wrong.stderr).toContain(`${file}:1: outbound.max_age: found "long"`);
  writeFileSync(file, yaml);
  expect(await svc.cli("reload")).toMatchObject({ code: 0, stderr: "" });
});

test("a certificate that cannot be used is exit 1 and says why, and the old one goes on", async () => {
  const good = readFileSync(files.cert, "utf8");
  const before = await shown(svc.httpPort);
  writeFileSync(files.cert, "no certificate");
  const ran = await svc.cli("reload");
  expect([ran.code, ran.stdout]).toEqual([1, "reloaded the shaping file\n"]);
  expect(ran.stderr).toContain("the certificates: ");
  expect(await shown(svc.httpPort)).toBe(before);
  writeFileSync(files.cert, good);
  expect((await svc.cli("reload")).code).toBe(0);
});

test("a source that is locked out is listed, and cleared it may authenticate at once", async () => {
  const { key } = (await svc.admin("POST", "/v1/keys", { name: "shop", scope: "reporting" })).json;
  for (let n = 0; n < 50; n++)
    expect([401, 429]).toContain((await svc.api("svc_live_wrong", "GET", "/v1/events")).status);
  expect((await svc.api(key, "GET", "/v1/events")).status).toBe(403);
  expect((await svc.cli("lockouts", "list")).stdout).toMatch(/^127\.0\.0\.1\t50\t/m);
  expect((await svc.cli("lockouts", "clear", "127.0.0.1")).code).toBe(0);
  expect((await svc.api(key, "GET", "/v1/events")).status).toBe(200);
  expect((await svc.cli("lockouts", "clear", "127.0.0.1")).code).toBe(3);
  const { stdout } = await svc.cli("audit", "list", "--action", "lockouts.clear");
  expect(stdout).toContain("127.0.0.1");
});

test("the log is shown and followed, by component", async () => {
  const whole = await svc.cli("logs", "--json", "--lines", "2000");
  expect(whole.stdout).toContain('"msg":"svc started"');
  const access = (await svc.cli("logs", "--component", "access")).stdout.trimEnd().split("\n");
  expect(access).toEqual([
    expect.stringMatching(/^[-\d]+ [:\d]+Z WARN {2}access: locked out a source address .+ ip=127\.0\.0\.1/),
  ]);
  const { child, printed } = following("logs", "-f", "--lines", "0");
  await eventually(async () => {
    await svc.cli("reload");
    return printed().includes("INFO  tls: reloaded the certificates\n") || null;
  });
  const gone = once(child, "exit");
  child.kill("SIGINT");
  const [code, signal] = (await gone) as [number | null, string | null];
  expect(code ?? signal).toBe("SIGINT"); // 130 for a shell
});

test("the audit log is followed", async () => {
  const { child, printed } = following("--json", "audit", "tail", "--action", "keys.*");
  let made = 0;
  await eventually(async () => {
    await svc.admin("POST", "/v1/keys", { name: `tail ${++made}`, scope: "send" });
    return printed().includes('"action":"keys.create"') || null;
  });
  child.kill("SIGTERM");
  const rows = printed().trim().split("\n");
  expect(new Set(rows).size).toBe(rows.length);
});

test("the built program finds the pages and the unit that come with it", async () => {
  for (const topic of ["moving-in", "dns"])
    expect(await svc.cli("help", topic)).toMatchObject({
      code: 0,
      stderr: "",
      stdout: expect.stringContaining("svc domains"),
    });
  const unit = await runCli(["config", "systemd-unit"], { SVC_HOSTNAME: "mail.acme.example" });
  expect([unit.code, unit.stdout.split("\n")]).toEqual([
    0,
    expect.arrayContaining([`ExecStart=${program} serve`]),
  ]);
});

test("health is an exit code: in maintenance it is alive and not ready", async () => {
  expect(await svc.cli("healthcheck", "--ready")).toMatchObject({ code: 0, stdout: "ready\n" });
  await svc.cli("maintenance", "on");
  expect((await svc.cli("healthcheck", "--ready")).code).toBe(1);
  expect((await svc.cli("healthcheck", "--live")).code).toBe(0);
  await svc.cli("maintenance", "off");
  expect((await svc.cli("healthcheck", "--ready")).code).toBe(0);
});

test("top --json gives samples of what the service does", async () => {
  const { child, printed } = following("top", "--json", "--interval", "500ms");
  await eventually(async () => printed().split("\n").length > 2 || null);
  child.kill("SIGTERM");
  const [first = ""] = printed().split("\n");
  expect(JSON.parse(first)).toMatchObject({ per_second: { accepted: expect.any(Array) }, connections: 0 });
});

test("an output that takes no more is exit 1 in words, not a success and not a stack", () => {
  const ran = spawnSync("sh", ["-c", '"$0" help environment >/dev/full', program], { encoding: "utf8" });
  expect(ran.status).toBe(1);
  expect(ran.stderr).toMatch(/^svc: the output cannot be written, and is not whole: ENOSPC[^\n]*\n$/);
});
