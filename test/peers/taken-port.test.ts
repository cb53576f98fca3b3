// Port 80 is another program's when the service starts: it serves with a certificate of its own, says what is in the way, and
// orders from pebble when the port is free.
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, freePorts, startAppliance, type Appliance } from "../support/appliance.ts";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";
import { startPebble, type Pebble } from "../support/pebble.ts";
import { missingPeers } from "../support/peers.ts";

const missing = missingPeers();
if (missing) console.warn(`SKIPPED: certificates with a taken port: ${missing}`);

const host = "mail.svc.test";

describe.skipIf(missing !== null)("port 80 is taken at the start", () => {
  let dns: DnsServer;
  let pebble: Pebble;
  let svc: Appliance;
  let other: Server;
  let port = 0;

  beforeAll(async () => {
    dns = await startDnsServer({
      "acme.test": { A: ["127.0.0.1"], AAAA: [] },
      [host]: { A: ["127.0.0.1"], AAAA: [] },
    });
    [port = 0] = await freePorts(1);
    pebble = await startPebble({ host: "acme.test", dnsServer: dns.server, httpPort: port });
    other = createServer((socket) => socket.destroy()).listen(port, "127.0.0.1");
    await once(other, "listening");
    const acme = { directory: pebble.directory, email: "ops@svc.test", http_listen: `127.0.0.1:${port}` };
    svc = await startAppliance({
      config: {
        hostname: host,
        public_url: `https://${host}`,
        dns: { servers: [dns.server] },
        tls: { mode: "acme", acme },
      },
      env: { NODE_EXTRA_CA_CERTS: pebble.caFile },
    });
  });
  afterAll(async () => {
    other?.close();
    await svc?.stop();
    await pebble?.stop();
    await dns?.stop();
  });

  const entry = async () =>
    JSON.parse((await svc.cli("cert", "show", host, "--json")).stdout) as Record<string, unknown>;
  const ports = async () =>
    JSON.parse((await svc.cli("doctor", "--only", "ports", "--json")).stdout) as Record<string, unknown>;
  const status = async () => {
    const { stdout, stderr } = await svc.cli("status");
    return `${stdout}${stderr}`;
  };
  const taken = () => `127.0.0.1:${port} is in use by another program; ss -ltnp 'sport = :${port}' names it`;

  test("it serves with its own certificate, and status, doctor and cert renew say which port is taken", async () => {
    expect(await entry()).toMatchObject({
      source: "self-signed",
      last_error: expect.stringContaining(taken()),
    });
    expect(await status()).toContain(`No new certificate for ${host}: tls.acme.http_listen: ${taken()}`);
    expect(await ports()).toMatchObject({
      checks: [
        {
          status: "fail",
          saw: `acme on 127.0.0.1:${port}: another program has the port`,
          why: expect.stringContaining("certificates are not ordered"),
          mend: expect.stringContaining(`ss -ltnp 'sport = :${port}'`),
        },
      ],
    });
    const refused = await svc.cli("cert", "renew");
    expect([refused.code, refused.stderr]).toEqual([5, expect.stringContaining(taken())]);
    expect(svc.log().split("the ACME server's checks cannot be answered there")).toHaveLength(2);
  });

  test("when the port is free the certificate comes, and nothing is said any more", async () => {
    await new Promise((done) => other.close(done));
    // The job looks within a minute.
    await eventually(async () => (await entry())["source"] === "acme", 150_000, "a certificate from pebble");
    expect(await entry()).toMatchObject({ last_error: null, failures: 0 });
    expect(await status()).not.toContain("No new certificate");
    expect(await ports()).toMatchObject({ checks: [{ status: "ok" }] });
  });
});
