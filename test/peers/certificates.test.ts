// Certificates ordered from pebble while clients use every port: it checks the names over the listener of port 80, rejects
// nonces, waits before it looks, is gone, and comes back without our account.
import { X509Certificate } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { get as httpGet } from "node:http";
import { Agent, get as httpsGet } from "node:https";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, freePort, startAppliance, type Appliance } from "../support/appliance.ts";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";
import { startPebble, type Pebble } from "../support/pebble.ts";
import { missingPeers } from "../support/peers.ts";
import { publish } from "../support/publish.ts";
import { connectSmtp, type SmtpClient } from "../support/smtp-client.ts";

const missing = missingPeers();
if (missing) console.warn(`SKIPPED: certificates from pebble: ${missing}`);

const host = "mail.svc.test";
const api = "api.svc.test";

describe.skipIf(missing !== null)("certificates from an ACME server", () => {
  let dns: DnsServer;
  let pebble: Pebble;
  let svc: Appliance;
  let checkPort = 0;
  let root = "";

  beforeAll(async () => {
    dns = await startDnsServer({
      "acme.test": { A: ["127.0.0.1"], AAAA: [] },
      [host]: { A: ["127.0.0.1"], AAAA: [] },
      [api]: { A: ["127.0.0.1"], AAAA: [] },
    });
    checkPort = await freePort();
    pebble = await startPebble({ host: "acme.test", dnsServer: dns.server, httpPort: checkPort });
    const acme = {
      directory: pebble.directory,
      email: "ops@svc.test",
      http_listen: `127.0.0.1:${checkPort}`,
    };
    svc = await startAppliance({
      config: {
        hostname: host,
        public_url: `https://${api}`,
        dns: { servers: [dns.server] },
        tls: { mode: "acme", acme },
        // The clients of this test ask as fast as they are answered.
        limits: { rates: { open: { burst: 100_000, per_second: 100_000 } } },
      },
      env: { NODE_EXTRA_CA_CERTS: pebble.caFile },
    });
    root = await pebble.root();
  });
  afterAll(async () => {
    await svc?.stop();
    await pebble?.stop();
    await dns?.stop();
  });

  /** A whole session of a client that verifies the certificate; answers its serial number. */
  const sessions: Record<string, () => Promise<string>> = {
    https: () => fetched({ servername: host, agent: false }),
    smtp: async () => {
      const { client, serial } = await submission();
      await left(client);
      return serial;
    },
    smtps: async () => {
      const client = await connectSmtp({ port: svc.tlsPort, tls: { servername: host, ca: root } });
      expect((await client.answer()).code).toBe(220);
      expect((await client.command("EHLO client.test")).code).toBe(250);
      await left(client);
      return serialOf(client.socket as TLSSocket);
    },
    inbound: async () => {
      // Of many sources: one has 600 sessions a minute.
      const { client, serial } = await secured(svc.inboundPort, `127.0.1.${1 + (inboundSessions++ % 250)}`);
      await left(client);
      return serial;
    },
  };
  const left = async (client: SmtpClient): Promise<void> =>
    expect((await client.command("QUIT")).code).toBe(221);
  const serialOf = (socket: TLSSocket): string => {
    if (!socket.authorized) throw new Error(`not verified: ${String(socket.authorizationError)}`);
    return (socket.getPeerX509Certificate()?.serialNumber ?? "").toLowerCase();
  };
  let inboundSessions = 0;
  const secured = async (
    port: number,
    localAddress = "127.0.0.1",
  ): Promise<{ client: SmtpClient; serial: string }> => {
    const client = await connectSmtp({ port, localAddress });
    expect((await client.answer()).code).toBe(220);
    expect((await client.command("EHLO client.test")).code).toBe(250);
    expect((await client.command("STARTTLS")).code).toBe(220);
    const serial = serialOf(await client.secure({ servername: host, ca: root }));
    expect((await client.command("EHLO client.test")).code).toBe(250);
    return { client, serial };
  };
  const submission = () => secured(svc.starttlsPort);
  const fetched = (how: { servername: string; agent: Agent | false }): Promise<string> =>
    new Promise((resolve, reject) => {
      const at = { host: "127.0.0.1", port: svc.httpPort, path: "/healthz", ca: root };
      httpsGet({ ...at, ...how }, (res) => {
        const serial = serialOf(res.socket as TLSSocket);
        res.resume();
        res.on("end", () =>
          res.statusCode === 200 ? resolve(serial) : reject(new Error(`status ${res.statusCode}`)),
        );
        res.on("error", reject);
      }).on("error", reject);
    });
  const plain = (path: string, name: string): Promise<{ status: number; location: string | undefined }> =>
    new Promise((resolve, reject) => {
      const at = { host: "127.0.0.1", port: checkPort, path, headers: { host: name }, agent: false } as const;
      httpGet(at, (res) => {
        res.resume();
        res.on("end", () => resolve({ status: res.statusCode ?? 0, location: res.headers.location }));
      }).on("error", reject);
    });
  const entry = async (name: string) => {
    const { stdout } = await svc.cli("cert", "show", name, "--json");
    return JSON.parse(stdout) as Record<string, unknown>;
  };

  test("the certificate of both host names is ordered by itself, and served on all ports", async () => {
    const issued = await eventually(async () => {
      const shown = await entry(host);
      return shown["source"] === "acme" ? shown : null;
    });
    for (const [port, session] of Object.entries(sessions))
      expect([port, await session()]).toEqual([port, issued["serial"]]);
    expect(issued).toMatchObject({ names: `DNS:${host}, DNS:${api}`, last_error: null, failures: 0 });
    expect(issued["issuer"]).toContain("Pebble");
    expect(issued["listeners"]).toEqual([
      `http ${svc.httpPort}`,
      `smtp ${svc.starttlsPort}`,
      `smtps ${svc.tlsPort}`,
      `inbound ${svc.inboundPort}`,
    ]);
    const [from, until, renew] = ["not_before", "not_after", "renew_at"].map((key) =>
      Date.parse(String(issued[key])),
    );
    expect(((renew ?? 0) - (from ?? 0)) / ((until ?? 0) - (from ?? 0))).toBeGreaterThan(0.63);
    expect(((renew ?? 0) - (from ?? 0)) / ((until ?? 0) - (from ?? 0))).toBeLessThan(0.67);
    for (const file of readdirSync(join(svc.dataDir, "tls")))
      expect([file, statSync(join(svc.dataDir, "tls", file)).mode & 0o777]).toEqual([file, 0o600]);
  });

  test("a renewal is served on all ports with no failed request, and sessions from before go on", async () => {
    const before = String((await entry(host))["serial"]);
    const kept = new Agent({ keepAlive: true, maxSockets: 1 });
    expect(await fetched({ servername: host, agent: kept })).toBe(before);
    const early = {
      submission: (await submission()).client,
      inbound: (await secured(svc.inboundPort)).client,
    };

    const done = new Map<string, { requests: number; renewed: number }>();
    const failures: string[] = [];
    const use = async (port: string, session: () => Promise<string>): Promise<void> => {
      const count = { requests: 0, renewed: 0 };
      done.set(port, count);
      while (count.renewed < 5 && failures.length === 0) {
        try {
          if ((await session()) !== before) count.renewed += 1;
          count.requests += 1;
        } catch (error) {
          failures.push(`${port}: ${String(error)}`);
        }
        await new Promise((next) => setImmediate(next));
      }
    };
    const clients = Object.entries(sessions).map(([port, session]) => use(port, session));
    const { code, stdout } = await svc.cli("cert", "renew", "--json");
    expect(code).toBe(0);
    const renewed = JSON.parse(stdout) as Record<string, unknown>;
    expect(renewed).toMatchObject({ name: host, source: "acme", last_error: null, renewing: false });
    expect(renewed["serial"]).not.toBe(before);
    await Promise.all(clients);
    expect(failures).toEqual([]);
    for (const [port, session] of Object.entries(sessions))
      expect([port, await session()]).toEqual([port, renewed["serial"]]);
    console.log("sessions during the renewal:", JSON.stringify(Object.fromEntries(done)));

    // On their old certificate still.
    expect(await fetched({ servername: host, agent: kept })).toBe(before);
    kept.destroy();
    for (const client of Object.values(early)) {
      expect((await client.command("NOOP")).code).toBe(250);
      await left(client);
    }
  });

  test("a verified tracking name gets a certificate of its own; a name that leads elsewhere keeps nobody waiting", async () => {
    await publish(svc, dns, "ok.test");
    await publish(svc, dns, "bad.test");
    // Its check fails: the DNS leads it to nobody.
    await verified("bad.test", "t.bad.test");
    dns.remove("t.bad.test");
    dns.set("t.bad.test", "A", ["127.0.0.99"]);
    await verified("ok.test", "t.ok.test");
    dns.set("t.ok.test", "A", ["127.0.0.1"]);
    // The job orders within a minute; asked for, it is done at once.
    expect((await svc.cli("cert", "renew", "t.ok.test")).code).toBe(0);
    const good = await entry("t.ok.test");
    expect(good["source"]).toBe("acme");
    expect(good).toMatchObject({ names: "DNS:t.ok.test", listeners: [`http ${svc.httpPort}`] });
    expect(await fetched({ servername: "t.ok.test", agent: false })).toBe(good["serial"]);
    expect(await sessions["https"]?.()).toBe((await entry(host))["serial"]);
    expect((await svc.cli("cert", "renew", "t.bad.test")).code).toBe(1);
    const bad = await entry("t.bad.test");
    expect(bad["source"]).toBe("self-signed");
    expect(bad["last_error"]).toMatch(/^t\.bad\.test: connection/);
    expect(Date.parse(String(bad["next_attempt_at"])) - Date.now()).toBeGreaterThan(13 * 60_000);
    const { stdout, stderr } = await svc.cli("status");
    expect(`${stdout}${stderr}`).toContain("No new certificate for t.bad.test: t.bad.test: connection");
  });
  const verified = async (domain: string, name: string): Promise<void> => {
    await svc.admin("PATCH", `/v1/domains/${domain}`, { tracking_domain: name });
    const { json } = await svc.admin("GET", `/v1/domains/${domain}`);
    const record = (json.records as { purpose: string; value: string }[]).find(
      (one) => one.purpose === "tracking",
    );
    dns.set(name, "CNAME", [record?.value ?? ""]);
    await svc.admin("POST", `/v1/domains/${domain}/verify`);
    dns.remove(name, "CNAME");
  };

  test("port 80 sends our names to https, and answers no other name and no token", async () => {
    expect(await plain("/docs?a=b", host)).toEqual({ status: 301, location: `https://${api}/docs?a=b` });
    expect(await plain("/c/x", "t.ok.test")).toEqual({ status: 301, location: "https://t.ok.test/c/x" });
    expect(await plain("/", "evil.test")).toEqual({ status: 404, location: undefined });
    expect(await plain("/.well-known/acme-challenge/AAAAAAAAAAAAAAAAAAAAAAAA", host)).toMatchObject({
      status: 404,
    });
  });

  test("a backup has the account's key and the certificates", async () => {
    const { code, stdout } = await svc.cli("backup");
    expect(code).toBe(0);
    const folder = join(stdout.trim(), "tls");
    for (const file of ["acme-account.pem", `acme-${host}.pem`, "acme-t.ok.test.pem", "acme.json"])
      expect([file, existsSync(join(folder, file))]).toEqual([file, true]);
  });

  test("without the ACME server the service starts with what it has, and says why nothing is renewed", async () => {
    const { serial } = await entry(host);
    await pebble.stop();
    await svc.kill("SIGKILL");
    await svc.restart();
    for (const [port, session] of Object.entries(sessions))
      expect([port, await session()]).toEqual([port, serial]);
    const refused = await svc.cli("cert", "renew");
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(`no new certificate for ${host}: acme.test`);
    expect(refused.stderr).toContain("The one before is served on.");
    expect(await sessions["smtps"]?.()).toBe(serial);
    // Of a second failure the operator is told.
    expect(svc.log()).not.toContain(`no new certificate for ${host}`);
    expect((await svc.cli("cert", "renew")).code).toBe(1);
    await eventually(async () => svc.log().includes(`no new certificate for ${host}`));
    expect((await svc.admin("GET", "/metrics")).text).toContain('svc_certificates_failing{names="host"} 1');
    const { stdout } = await svc.cli("doctor", "--only", "certificate", "--json");
    expect(JSON.parse(stdout)).toMatchObject({
      checks: [
        {
          id: "certificate",
          status: "warn",
          saw: expect.stringContaining("the last attempt failed: acme.test"),
        },
      ],
    });
  });

  test("a server that has forgotten the account, and issues from another root, is no trouble", async () => {
    await pebble.start();
    const other = await pebble.root();
    const { code, stdout } = await svc.cli("cert", "renew", host, "--json");
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { last_error: null, failures: 0 }]);
    root = other;
    for (const session of Object.values(sessions)) expect(await session()).toMatch(/^[0-9a-f]+$/);
    const stored = readFileSync(join(svc.dataDir, `tls/acme-${host}.pem`), "utf8");
    expect(new X509Certificate(stored).checkHost(host)).toBe(host);
  });

  test("an unknown name is exit 3, and one ordered too often exit 5", async () => {
    expect((await svc.cli("cert", "renew", "other.test")).code).toBe(3);
    expect((await svc.cli("cert", "show", "other.test")).code).toBe(3);
    const codes: number[] = [];
    for (let n = 0; n < 3; n++) codes.push((await svc.cli("cert", "renew")).code);
    // The first issue and two renewals before these.
    expect(codes).toEqual([0, 5, 5]);
  });
});
