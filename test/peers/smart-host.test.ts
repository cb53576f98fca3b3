// A Postfix with Cyrus SASL as the smart host: the login goes to it alone, and only where its certificate is verified.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, freePorts, startAppliance, type Appliance } from "../support/appliance.ts";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";
import { missingPeers, startPostfix, type Postfix } from "../support/peers.ts";
import { publish } from "../support/publish.ts";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { removeFolder } from "../support/folders.ts";

const missing = missingPeers();
if (missing) console.warn(`SKIPPED: a real smart host: ${missing}`);

const password = "correct horse, ü";

describe.skipIf(missing !== null)("a smart host", () => {
  const dir = mkdtempSync(join(tmpdir(), "svc-smart-host-"));
  const passwordFile = join(dir, "password");
  let dns: DnsServer;
  let postfix: Postfix;
  let svc: Appliance;
  let trusted = false;

  beforeAll(async () => {
    const address = "127.0.0.153";
    const [port = 0] = await freePorts(1, address);
    dns = await startDnsServer({ "relay.test": { A: [address] } });
    const login = { user: "acme", password };
    postfix = await startPostfix({ address, port, domain: "one.test", hostname: "relay.test", login });
    writeFileSync(passwordFile, "wrong\n", { mode: 0o600 });
    const smartHost = { host: "relay.test", port, user: "acme", password_file: passwordFile };
    svc = await startAppliance({
      config: { dns: { servers: [dns.server] }, outbound: { retry: ["1s"], smart_host: smartHost } },
      env: () => (trusted ? { NODE_EXTRA_CA_CERTS: postfix.certFile } : ({} as Record<string, string>)),
    });
    await publish(svc, dns, "ok.test");
  });

  afterAll(async () => {
    await svc?.stop();
    await Promise.all([postfix?.stop(), dns?.stop()]);
    removeFolder(dir);
  });

  test("mail waits while its certificate is not trusted, then while the password is wrong, and leaves with the right one", async () => {
    const { key } = (await svc.admin("POST", "/v1/keys", { name: "test", scope: "admin" })).json;
    const body = { from: "shop@ok.test", to: "ann@one.test", subject: "Hello", text: "Hi" };
    const { id } = (await svc.api(key, "POST", "/v1/messages", body)).json;
    const outcome = (wanted: RegExp) =>
      eventually(
        async () => {
          const { data } = (await svc.admin("GET", `/v1/messages/${id}/attempts`)).json;
          return data.find((attempt: unknown) => wanted.test(JSON.stringify(attempt)));
        },
        60_000,
        `an attempt with ${wanted}\n${postfix.log()}`,
      );
    await outcome(/4\.7\.5/);
    expect(postfix.log()).not.toMatch(/SASL|sasl_method|auth=/);

    trusted = true;
    await svc.kill("SIGTERM");
    await svc.restart();
    await outcome(/535 5\.7\.8/);
    expect(postfix.log()).toContain("SASL PLAIN authentication failed");
    expect(postfix.mails()).toEqual([]);

    writeFileSync(passwordFile, `${password}\n`);
    await svc.kill("SIGTERM");
    await svc.restart();
    await outcome(/"delivered"/);
    expect(postfix.log()).toContain("sasl_method=PLAIN, sasl_username=acme@relay.test");
    const mails = await eventually(async () => (postfix.mails().length > 0 ? postfix.mails() : null));
    expect(mails).toHaveLength(1);
    expect(mails[0]?.toString().match(/^DKIM-Signature: /gm)).toHaveLength(2);
    const { data } = (await svc.admin("GET", `/v1/events?message_id=${id}`)).json;
    expect(data.at(-1)).toMatchObject({
      event: "message.delivered",
      data: { receiving_mta: "relay.test", tls: { verified: true } },
    });
    const log = svc.log();
    for (const secret of [password, Buffer.from(`\0acme\0${password}`).toString("base64")])
      expect(log).not.toContain(secret);
    const doctor = await svc.cli("doctor", "--only", "port-25");
    expect([doctor.code, doctor.stdout], doctor.stderr).toEqual([
      0,
      expect.stringContaining(`the smart host relay.test:${postfix.port} answers`),
    ]);
  });
});
