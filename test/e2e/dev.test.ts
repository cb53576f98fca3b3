// `svc serve --dev` as a person meets it: what it prints works, word for word.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, freePorts, program, runCli } from "../support/appliance.ts";
import { removeFolder } from "../support/folders.ts";

let dir: string;
let child: ChildProcess;
let printed = "";
let env: Record<string, string>;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "svc-dev-"));
  env = { SVC_SOCKET: join(dir, "admin.sock") };
  const [http, starttls, tls] = await freePorts(3);
  const ports = {
    SVC_HTTP_LISTEN: `127.0.0.1:${http}`,
    SVC_RELAY_STARTTLS: `127.0.0.1:${starttls}`,
    SVC_RELAY_IMPLICIT_TLS: `127.0.0.1:${tls}`,
  };
  child = spawn(
    program,
    ["serve", "--dev", "--data-dir", join(dir, "data"), "--socket", join(dir, "admin.sock")],
    {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...ports },
    },
  );
  child.stdout?.on("data", (chunk: Buffer) => (printed += chunk.toString()));
  let complaints = "";
  child.stderr?.on("data", (chunk: Buffer) => (complaints += chunk.toString()));
  await eventually(async () => {
    if (child.exitCode !== null) throw new Error(complaints);
    return printed.includes("curl ") && printed.includes("swaks ");
  });
});

afterAll(async () => {
  if (child.exitCode === null) {
    const gone = once(child, "exit");
    child.kill("SIGTERM");
    const [code] = await gone;
    expect(code).toBe(0);
  }
  removeFolder(dir);
});

/** The printed command that begins so, its continuation lines joined. */
function printedCommand(start: string): string {
  const text = printed.replaceAll(/\\\n\s*/g, " ");
  const line = text.split("\n").find((candidate) => candidate.trim().startsWith(start));
  if (!line) throw new Error(`no ${start} in:\n${printed}`);
  return line.trim();
}

async function shell(command: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const sh = spawn("sh", ["-c", command], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  let stdout = "";
  let stderr = "";
  sh.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  sh.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const [code] = (await once(sh, "close")) as [number];
  return { code, stdout, stderr };
}

test("svc status names every periodic job", async () => {
  const { stdout } = await runCli(["status", "--json"], env);
  const { jobs } = JSON.parse(stdout) as { jobs: { name: string }[] };
  expect(jobs.map(({ name }) => name)).toEqual([
    "recheck-domains",
    "renew-certificates",
    "nxdomain-recheck",
    "prune",
    "fold-stats",
    "guard",
    "release-held",
    "look-at-addresses",
    "end-warmups",
    "check-blacklists",
    "keep-tls-results",
    "send-tls-reports",
    "doctor",
    "rotate-tracking-keys",
  ]);
});

test("the printed curl is accepted, the inbox shows the mail and the events say delivered", async () => {
  const sent = await shell(printedCommand("curl "));
  expect(sent.code, sent.stderr).toBe(0);
  const { id } = JSON.parse(sent.stdout.slice(sent.stdout.indexOf("{"))) as { id: string };
  expect(id).toMatch(/^msg_/);
  const mail = await eventually(async () => {
    const inbox = await runCli(["inbox", "list", "--json"], env);
    const listed = JSON.parse(inbox.stdout) as { data: { message_id: string }[] };
    return listed.data.find((entry) => entry.message_id === id);
  });
  expect(mail).toBeDefined();
  const table = await runCli(["inbox", "list"], env);
  expect(table.stdout).toContain(id);
  const events = await runCli(["events", "list", "--json"], env);
  const all = (
    JSON.parse(events.stdout) as { data: { event: string; data: { message_id: string; test?: boolean } }[] }
  ).data;
  expect(all.find((event) => event.data.message_id === id)).toMatchObject({
    event: "message.delivered",
    data: { test: true },
  });
  const raw = await runCli(["inbox", "raw", id], env);
  expect(raw.stdout).toMatch(/^Message-ID: /im);
});

test("events tail shows an event as it happens", async () => {
  const tail = spawn(program, ["events", "tail", "--json"], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let seen = "";
  tail.stdout.on("data", (chunk: Buffer) => (seen += chunk.toString()));
  await eventually(async () => {
    await shell(printedCommand("curl "));
    return seen.includes("message.delivered");
  });
  const gone = once(tail, "exit");
  tail.kill("SIGINT");
  await gone;
  expect(JSON.parse(seen.split("\n")[0] ?? "")).toMatchObject({ event: "message.delivered" });
});

test("svc --version answers without loading the server", async () => {
  const { code, stdout } = await runCli(["--version"]);
  expect(code).toBe(0);
  expect(stdout.trim()).toMatch(/^\d+\.\d+\.\d+$/);
});

test("a command without a running daemon says what to run and ends with 6", async () => {
  const { code, stderr } = await runCli(["status"], { SVC_SOCKET: join(dir, "nobody.sock") });
  expect(code).toBe(6);
  expect(stderr).toContain("svc serve");
});
