// Real clients of REST and SMTP: swaks and curl over each port, and the order of sync and acknowledgement on the
// real disk, seen by strace.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, startAppliance, type Appliance } from "../support/appliance.ts";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";
import { missingPeers } from "../support/peers.ts";
import { publish } from "../support/publish.ts";
import { removeFolder } from "../support/folders.ts";

const missing = missingPeers();
if (missing) console.warn(`SKIPPED: tests with real clients: ${missing}`);

describe.skipIf(missing !== null)("real clients", () => {
  let dns: DnsServer;
  let svc: Appliance;
  let login: { username: string; password: string };

  beforeAll(async () => {
    dns = await startDnsServer();
    svc = await startAppliance({ config: { dns: { servers: [dns.server] } } });
    await publish(svc, dns, "ok.test");
    login = (await svc.admin("POST", "/v1/smtp_credentials", { name: "swaks", test: true })).json;
  });
  afterAll(async () => {
    await svc?.stop();
    await dns?.stop();
  });

  const swaks = async (...args: string[]): Promise<string> => {
    const child = spawn("swaks", [
      "--server",
      "127.0.0.1",
      "--from",
      "shop@ok.test",
      "--to",
      "ann@one.test",
      ...args,
    ]);
    let said = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => (said += chunk.toString()));
    await once(child, "close");
    return said;
  };

  test.each([
    ["STARTTLS, AUTH PLAIN", () => ["--port", String(svc.starttlsPort), "--tls", "--auth", "PLAIN"]],
    ["STARTTLS, AUTH LOGIN", () => ["--port", String(svc.starttlsPort), "--tls", "--auth", "LOGIN"]],
    ["implicit TLS, AUTH PLAIN", () => ["--port", String(svc.tlsPort), "--tlsc", "--auth", "PLAIN"]],
  ])("swaks over %s is told the message's id, and the inbox shows the mail", async (_way, args) => {
    const said = await swaks(...args(), "--auth-user", login.username, "--auth-password", login.password);
    const id = /250 2\.0\.0 queued as (msg_[0-9a-z]{26})/.exec(said)?.[1];
    expect(id, said).toBeDefined();
    await eventually(async () => {
      const { json } = await svc.admin("GET", "/v1/inbox");
      return json.data.some((mail: { message_id: string }) => mail.message_id === id);
    });
  });

  test("swaks with a wrong password is refused, and without TLS it is offered no AUTH", async () => {
    const port = ["--port", String(svc.starttlsPort)];
    const wrong = await swaks(
      ...port,
      "--tls",
      "--auth",
      "PLAIN",
      "--auth-user",
      login.username,
      "--auth-password",
      "wrong",
    );
    expect(wrong).toContain("535 5.7.8");
    const clear = await swaks(...port);
    expect(clear).toContain("530 5.7.0");
    expect(clear).not.toMatch(/250[ -]AUTH/);
  });

  test("curl sends over SMTPS", async () => {
    const mail = "From: shop@ok.test\r\nTo: ann@one.test\r\nSubject: curl\r\n\r\nHello\r\n";
    const url = `smtps://127.0.0.1:${svc.tlsPort}`;
    const args = [
      "-sS",
      "-k",
      "--url",
      url,
      "--mail-from",
      "shop@ok.test",
      "--mail-rcpt",
      "ann@one.test",
      "-T",
      "-",
    ];
    const child = spawn("curl", [...args, "--user", `${login.username}:${login.password}`]);
    let complaint = "";
    child.stderr.on("data", (chunk: Buffer) => (complaint += chunk.toString()));
    child.stdin.end(mail);
    const [code] = await once(child, "close");
    expect(code, complaint).toBe(0);
  });

  test.each([
    ["TLS 1.0", "-tls1"],
    ["TLS 1.1", "-tls1_1"],
  ])("%s is refused at the handshake on each port, 1.2 is taken", (_name, flag) => {
    const ports: [number, string[]][] = [
      [svc.httpPort, []],
      [svc.tlsPort, []],
      [svc.starttlsPort, ["-starttls", "smtp"]],
    ];
    for (const [port, starttls] of ports) {
      const connect = (version: string[]) =>
        spawnSync("openssl", ["s_client", "-connect", `127.0.0.1:${port}`, ...starttls, ...version], {
          input: "",
        }).stdout.toString();
      expect(connect([flag, "-cipher", "ALL@SECLEVEL=0"])).toMatch(/Cipher is \(NONE\)/);
      expect(connect(["-tls1_2"])).toMatch(/Cipher is ECDHE/);
    }
  });
});

describe.skipIf(missing !== null)("durability, seen by strace", () => {
  test(
    "each of 100 requests is answered 202 only after a sync that came after its own write",
    { timeout: 120_000 },
    async () => {
      const dns = await startDnsServer();
      const trace = join(mkdtempSync(join(tmpdir(), "svc-strace-")), "trace");
      const svc = await startAppliance({ config: { dns: { servers: [dns.server] } } });
      await publish(svc, dns, "ok.test");
      const calls = "trace=fsync,fdatasync,pwrite64,write,writev,sendto,sendmsg";
      const pid = String(svc.process.pid);
      const strace = spawn("strace", ["-f", "-p", pid, "-s", "9000", "-e", calls, "-o", trace]);
      await once(strace.stderr, "data"); // "attached"
      const ids: string[] = [];
      try {
        // Over the admin socket the answer is readable in the trace; the acceptance is the same on every listener.
        const send = (i: number) =>
          svc.admin("POST", "/v1/messages", {
            from: "a@ok.test",
            to: `r${i}@nowhere.test`,
            subject: `number ${i}`,
            text: "Hi",
          });
        for (let i = 0; i < 20; i++) {
          const answers = await Promise.all(Array.from({ length: 5 }, (_, j) => send(i * 5 + j)));
          for (const { status, json } of answers) {
            expect(status).toBe(202);
            ids.push(json.id);
          }
        }
      } finally {
        const gone = once(strace, "exit");
        strace.kill("SIGINT");
        await gone;
        await svc.stop();
        await dns.stop();
      }
      const order = readTrace(readFileSync(trace, "utf8"));
      removeFolder(dirname(trace));
      const bare = ids.filter((id) => {
        const [written, answered] = [order.written.get(id), order.answered.get(id)];
        if (written === undefined || answered === undefined) return true;
        return !order.syncs.some(({ begun, done }) => begun > written && done < answered);
      });
      expect(ids).toHaveLength(100);
      expect(bare).toEqual([]);
    },
  );
});

/** Line numbers: where each message's row was first written, where its 202 was, and where each sync began and ended. */
function readTrace(text: string) {
  const written = new Map<string, number>();
  const answered = new Map<string, number>();
  const syncs: { begun: number; done: number }[] = [];
  const open = new Map<string, number>();
  for (const [line, entry] of text.split("\n").entries()) {
    const thread = entry.split(" ", 1)[0] ?? "";
    const ids = entry.match(/msg_[0-9a-z]{26}/g) ?? [];
    if (/ pwrite64\(/.test(entry)) {
      for (const id of ids) if (!written.has(id)) written.set(id, line);
    } else if (/HTTP\/1\.1 202/.test(entry)) {
      for (const id of ids) if (!answered.has(id)) answered.set(id, line);
    } else if (/ (?:fsync|fdatasync)\(/.test(entry)) {
      if (/unfinished/.test(entry)) open.set(thread, line);
      else if (entry.endsWith("= 0")) syncs.push({ begun: line, done: line });
    } else if (/<\.\.\. (?:fsync|fdatasync) resumed>.*= 0$/.test(entry)) {
      syncs.push({ begun: open.get(thread) ?? line, done: line });
    }
  }
  return { written, answered, syncs };
}
