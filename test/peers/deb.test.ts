// The Debian package in a fresh Debian, into whose root it is installed: set up, send by REST and by SMTP, back up, purge,
// install again, restore; the messages are there, and what was unsent is held. Needs root and .ci/peers.sh.
import { execFileSync, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, freePort, freePorts, type Answer } from "../support/appliance.ts";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";
import { peersFolder } from "../support/peers.ts";
import { publish } from "../support/publish.ts";
import { startReceiver, type Receiver } from "../support/smtp-receiver.ts";
import { removeFolder } from "../support/folders.ts";

const project = join(import.meta.dirname, "../..");
const outboundPort = await freePort();
const debian = join(peersFolder, "debian-root.tar");
const amd64 = process.arch === "x64";
const runs = amd64 && existsSync(debian) && process.getuid?.() === 0;
if (!runs && process.env["CI"] && amd64) throw new Error(`no ${debian}: run .ci/peers.sh as root`);

let root: string;
let dns: DnsServer;
let receiver: Receiver;
let ports: number[];
let service: ChildProcess | null = null;
let log = "";

beforeAll(async () => {
  if (!runs) return;
  root = mkdtempSync(join(tmpdir(), "svc-debian-"));
  execFileSync("tar", ["-C", root, "-xf", debian]);
  chmodSync(root, 0o755);
  execFileSync("mount", ["-t", "proc", "proc", join(root, "proc")]);
  execFileSync(process.execPath, ["packaging/deb.ts", "amd64"], { cwd: project, stdio: "ignore" });
  const { version } = JSON.parse(readFileSync(join(project, "package.json"), "utf8")) as { version: string };
  execFileSync("cp", [join(project, `packaging/out/svc-mail_${version}-1_amd64.deb`), join(root, "svc.deb")]);
  dns = await startDnsServer({
    "one.test": { MX: ["10 mx.one.test"] },
    "mx.one.test": { A: ["127.0.0.79"] },
  });
  receiver = await startReceiver({ address: "127.0.0.79", port: outboundPort });
  ports = await freePorts(4);
});
afterAll(async () => {
  await stop();
  await receiver?.stop();
  await dns?.stop();
  if (!root) return;
  execFileSync("umount", ["-l", join(root, "proc")]);
  removeFolder(root);
});

const path = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" };
function inside(...command: string[]): { code: number | null; out: string; err: string } {
  const env = { ...path, HOME: "/root", DEBIAN_FRONTEND: "noninteractive" };
  const { status, stdout, stderr } = spawnSync("chroot", [root, ...command], { env, encoding: "utf8" });
  return { code: status, out: stdout, err: stderr };
}
function done(...command: string[]): string {
  const { code, out, err } = inside(...command);
  expect(code, `${command.join(" ")}: ${err}`).toBe(0);
  return out;
}

/** As the unit runs it, but for systemd: the user, its directories, and ports of the test's own. */
async function start(): Promise<void> {
  done("install", "-d", "-o", "svc", "-g", "svc", "/run/svc");
  const [http = 0, starttls = 0, tls = 0, inbound = 0] = ports;
  const env = {
    ...path,
    STATE_DIRECTORY: "/var/lib/svc",
    RUNTIME_DIRECTORY: "/run/svc",
    SVC_HTTP_LISTEN: `127.0.0.1:${http}`,
    SVC_RELAY_STARTTLS: `127.0.0.1:${starttls}`,
    SVC_RELAY_IMPLICIT_TLS: `127.0.0.1:${tls}`,
    SVC_INBOUND_LISTEN: `127.0.0.1:${inbound}`,
    SVC_DNS_SERVERS: dns.server,
    SVC_OUTBOUND_PORT: String(outboundPort),
    SVC_OUTBOUND_ALLOW_NETWORKS: "127.0.0.0/8",
    SVC_OUTBOUND_RETRY: "1h",
    SVC_LIMITS_MIN_FREE_SPACE: "0%",
  };
  const child = spawn("chroot", ["--userspec=svc:svc", root, "/usr/bin/svc", "serve"], {
    env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  service = child;
  child.stderr.on("data", (chunk: Buffer) => (log += chunk.toString()));
  await eventually(
    async () => {
      if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${log}`);
      return (await admin("GET", "/v1/status").catch(() => null))?.status === 200;
    },
    60_000,
    "the service answering",
  );
}

async function stop(): Promise<void> {
  if (!service || service.exitCode !== null) return;
  const gone = once(service, "exit");
  service.kill("SIGTERM");
  await gone;
  service = null;
}

/** Over the admin socket in the root. */
function admin(method: string, target: string, body?: unknown): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = body === undefined ? {} : { "content-type": "application/json" };
    const socketPath = join(root, "run/svc/admin.sock");
    const req = request({ socketPath, method, path: target, headers }, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => (text += chunk.toString()));
      response.on("end", () => {
        const json: unknown = text === "" ? null : JSON.parse(text);
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json });
      });
    });
    req.on("error", reject);
    req.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const statusOf = (name: string): { mode: number; owner: string } => ({
  mode: statSync(join(root, name)).mode & 0o777,
  owner: done("stat", "-c", "%U:%G", name).trim(),
});

test.runIf(runs)("installed, set up, used, backed up, purged, installed again and restored", async () => {
  done("dpkg", "-i", "/svc.deb");
  expect(done("svc", "--version")).toMatch(/^\d+\.\d+\.\d+\n$/);
  expect(statusOf("/var/lib/svc")).toEqual({ mode: 0o700, owner: "svc:svc" });
  expect(statusOf("/var/backups/svc")).toEqual({ mode: 0o700, owner: "svc:svc" });
  expect(done("dpkg-query", "-W", "-f", "${Conffiles}", "svc-mail")).toContain("/etc/svc/svc.yaml");
  expect(done("dpkg", "--verify", "svc-mail")).toBe("");

  const made = JSON.parse(done("svc", "init", "--hostname", "mail.svc.test", "--skip-network", "--json"));
  expect(statusOf("/var/lib/svc/svc.db")).toEqual({ mode: 0o600, owner: "svc:svc" });
  expect(readFileSync(join(root, "etc/svc/svc.yaml"), "utf8")).toContain('hostname: "mail.svc.test"');
  await start();
  await publish({ admin }, dns, "ok.test");

  const [http = 0, starttls = 0] = ports;
  const mail = { from: "a@ok.test", to: "ann@one.test", subject: "by REST", text: "Hello" };
  const key = `authorization: Bearer ${made.admin_key}`;
  const rest = ["-sk", "--fail-with-body", "-H", key, "-H", "content-type: application/json"];
  execFileSync("curl", [...rest, "-d", JSON.stringify(mail), `https://127.0.0.1:${http}/v1/messages`]);
  const { username, password } = made.smtp as { username: string; password: string };
  const login = ["--auth", "PLAIN", "--auth-user", username, "--auth-password", password];
  const server = ["--server", "127.0.0.1", "--port", String(starttls), "--tls", ...login];
  const bob = ["--from", "a@ok.test", "--to", "bob@one.test", "--header", "Subject: by SMTP"];
  execFileSync("swaks", [...server, ...bob]);
  await receiver.waitForMails(2);
  receiver.options.reply = { rcpt: "451 4.7.1 later" };
  await admin("POST", "/v1/messages", { ...mail, to: "eve@one.test", subject: "unsent" });
  await eventually(async () => (await admin("GET", "/v1/status")).json.queue.deferred === 1);
  receiver.options.reply = {};
  const byHand = done("svc", "backup").trim();
  expect(statusOf(byHand)).toEqual({ mode: 0o700, owner: "svc:svc" });
  await stop();

  // An upgrade keeps the configuration and the data.
  done("dpkg", "-i", "/svc.deb");
  expect(readFileSync(join(root, "etc/svc/svc.yaml"), "utf8")).toContain("mail.svc.test");

  const purged = inside("dpkg", "--purge", "svc-mail");
  expect([purged.code, purged.err]).toEqual([0, expect.stringContaining("the last backup is")]);
  for (const gone of ["var/lib/svc", "etc/svc", "usr/lib/svc-mail", "usr/bin/svc"])
    expect(existsSync(join(root, gone)), gone).toBe(false);
  const kept = readdirSync(join(root, "var/backups/svc")).toSorted();
  expect(kept.length).toBe(2);

  done("dpkg", "-i", "/svc.deb");
  const restored = inside("svc", "restore", `/var/backups/svc/${kept[1]}`, "--confirm", "restore");
  expect([restored.code, restored.err]).toEqual([0, expect.stringContaining("/etc/svc/svc.yaml is written")]);
  await start();
  const list = JSON.parse(done("svc", "messages", "list", "--json"));
  expect(list.data.map((one: { subject: string }) => one.subject).toSorted()).toEqual([
    "by REST",
    "by SMTP",
    "unsent",
  ]);
  expect((await admin("GET", "/v1/status")).json).toMatchObject({
    hostname: "mail.svc.test",
    queue: { held: 1 },
  });
  expect(receiver.mails.length).toBe(2);
  done("svc", "queue", "release", "--status", "held", "--yes");
  done("svc", "queue", "retry", "--all", "--yes");
  await receiver.waitForMails(3);
  await stop();
});

test.runIf(runs)("a purge that could make no last backup keeps the data", () => {
  writeFileSync(join(root, "etc/svc/svc.yaml"), "hostname: [\n");
  const { code, err } = inside("dpkg", "--purge", "svc-mail");
  expect([code, err]).toEqual([0, expect.stringContaining("the data is kept in /var/backups/svc/data-")]);
  const [data = ""] = readdirSync(join(root, "var/backups/svc")).filter((name) => name.startsWith("data-"));
  expect(readdirSync(join(root, "var/backups/svc", data))).toContain("svc.db");
});
