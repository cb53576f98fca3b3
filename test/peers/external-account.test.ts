// pebble that takes only accounts with an external one (RFC 8555 §7.3.4), as ZeroSSL, Google and Sectigo do.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { eventually, freePorts, startAppliance } from "../support/appliance.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { removeFolder } from "../support/folders.ts";
import { startPebble } from "../support/pebble.ts";
import { missingPeers } from "../support/peers.ts";

const missing = missingPeers();
if (missing) console.warn(`SKIPPED: external account binding: ${missing}`);

const host = "mail.svc.test";
const macKey = Buffer.from("thirty-two octets of a secret key").toString("base64url");

test.skipIf(missing !== null)("a certificate comes from a server that wants external accounts", async () => {
  const at = { A: ["127.0.0.1"], AAAA: [] };
  const dns = await startDnsServer({ "acme.test": at, [host]: at });
  onTestFinished(() => dns.stop());
  const [port = 0] = await freePorts(1);
  const pebble = await startPebble({
    host: "acme.test",
    dnsServer: dns.server,
    httpPort: port,
    externalAccounts: { "kid-1": macKey },
  });
  onTestFinished(() => pebble.stop());
  const folder = mkdtempSync(join(tmpdir(), "svc-eab-"));
  onTestFinished(() => removeFolder(folder));
  writeFileSync(join(folder, "mac"), `${macKey}\n`);
  const svc = await startAppliance({
    config: {
      hostname: host,
      public_url: `https://${host}`,
      dns: { servers: [dns.server] },
      tls: {
        mode: "acme",
        acme: {
          directory: pebble.directory,
          http_listen: `127.0.0.1:${port}`,
          eab_key_id: "kid-1",
          eab_mac_key_file: join(folder, "mac"),
        },
      },
    },
    env: { NODE_EXTRA_CA_CERTS: pebble.caFile },
  });
  onTestFinished(() => svc.stop());
  const issued = await eventually(async () => {
    const { stdout } = await svc.cli("cert", "show", host, "--json");
    const shown = JSON.parse(stdout) as Record<string, unknown>;
    return shown["source"] === "acme" ? shown : null;
  });
  expect(issued).toMatchObject({ last_error: null, failures: 0 });
});
