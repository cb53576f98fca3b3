// TLS policies from the outside: a domain that enforces MTA-STS, and one with TLSA records. A mail host whose certificate
// is wrong gets no mail, in clear neither, and the attempt says why; once the certificate is right the mail arrives.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, freeAddress, freePort } from "../support/appliance.ts";
import { createAuthority, tlsaOf, type Authority, type Identity } from "../support/certificates.ts";
import { policyText, startPolicyHost, type PolicyHost } from "../support/policy-host.ts";
import { startWorld, type World } from "../support/world.ts";
import { removeFolder } from "../support/folders.ts";

const port = await freePort();
/** The port of a policy host is fixed (RFC 8461 §3.3), and only root may listen there, which CI does. */
const mayNotListen = process.getuid?.() !== 0 && !process.env["CI"];
let dir: string;
let world: World;
let authority: Authority;
let stranger: Identity;
let policyHost: PolicyHost;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "svc-tls-policy-"));
  authority = await createAuthority("the test's authority");
  stranger = await (await createAuthority("nobody's authority")).issue(["mx.sts.test", "mx.dane.test"]);
  const trusted = join(dir, "authority.pem");
  writeFileSync(trusted, authority.cert);
  world = await startWorld({
    port,
    domains: { "sts.test": "127.0.0.41", "dane.test": "127.0.0.42" },
    env: { NODE_EXTRA_CA_CERTS: trusted },
  });
  if (mayNotListen) return;
  const { key, cert } = await authority.issue(["mta-sts.sts.test"]);
  const address = freeAddress();
  policyHost = await startPolicyHost({ key, cert, address, port: 443 });
  world.dns.set("mta-sts.sts.test", "A", [address]);
});
afterAll(async () => {
  await world?.stop();
  await policyHost?.stop();
  removeFolder(dir);
});

const attemptsOf = async (id: string) =>
  (await world.svc.admin("GET", `/v1/messages/${id}/attempts`)).json.data;

/** The first attempt, once it is over. */
const firstAttempt = (id: string) =>
  eventually(async () => {
    const [attempt] = await attemptsOf(id);
    return attempt;
  });

test.skipIf(mayNotListen)(
  "under MTA-STS enforce a wrong certificate defers the mail, which arrives when the certificate is right",
  async () => {
    const receiver = world.receiver("sts.test");
    receiver.options.tls = stranger;
    policyHost.publish(policyText("enforce", ["mx.sts.test"]));
    world.dns.set("_mta-sts.sts.test", "TXT", ["v=STSv1; id=1;"]);

    const { id } = (await world.send({ to: "ann@sts.test" })).json;
    expect(await firstAttempt(id)).toMatchObject({
      outcome: "deferred",
      smtp_status: "4.7.5",
      smtp_response: expect.stringContaining("MTA-STS"),
      tls: { version: "TLSv1.3", verified: false, policy: "mta-sts" },
    });
    const traced = await world.svc.cli("messages", "trace", id);
    expect(traced.stdout).toContain("TLSv1.3, policy mta-sts");

    receiver.options.tls = await authority.issue(["mx.sts.test"]);
    await receiver.waitForMails(1);
    const delivered = await eventually(async () =>
      (await attemptsOf(id)).find((attempt: { outcome: string }) => attempt.outcome === "delivered"),
    );
    expect(delivered.tls).toMatchObject({ verified: true, policy: "mta-sts" });
    expect(receiver.mails.map(({ tls }) => tls)).toEqual([true]);
    expect(policyHost.asked).toEqual(["mta-sts.sts.test/.well-known/mta-sts.txt"]);
  },
);

test.skipIf(mayNotListen)("a restart keeps the policy, and no TLS on offer defers under it", async () => {
  await policyHost.stop();
  world.dns.remove("_mta-sts.sts.test");
  await world.svc.kill("SIGTERM");
  await world.svc.restart();
  const receiver = world.receiver("sts.test");
  receiver.mails.length = 0;
  const offered = receiver.options.tls;
  delete receiver.options.tls;
  const { id } = (await world.send({ to: "ann@sts.test" })).json;
  expect(await firstAttempt(id)).toMatchObject({
    outcome: "deferred",
    smtp_status: "4.7.5",
    tls: { version: null, cipher: null, verified: false, policy: "mta-sts" },
  });
  expect((await world.svc.cli("messages", "trace", id)).stdout).toContain("no TLS, policy mta-sts");
  if (offered) receiver.options.tls = offered;
  await receiver.waitForMails(1);
  expect(receiver.mails.map(({ tls }) => tls)).toEqual([true]);
});

test("under DANE a certificate that matches no TLSA record defers the mail, which arrives when one matches", async () => {
  const receiver = world.receiver("dane.test");
  const own = await (await createAuthority("its own authority")).issue(["whatever.test"]);
  receiver.options.tls = stranger;
  world.dns.authenticate(true);
  world.dns.set(`_${port}._tcp.mx.dane.test`, "TLSA", [tlsaOf(own.cert, 3)]);

  const { id } = (await world.send({ to: "ann@dane.test" })).json;
  expect(await firstAttempt(id)).toMatchObject({
    outcome: "deferred",
    smtp_status: "4.7.5",
    smtp_response: expect.stringContaining("TLSA"),
    tls: { version: "TLSv1.3", verified: false, policy: "dane" },
  });
  receiver.options.tls = own;
  await receiver.waitForMails(1);
  const delivered = await eventually(async () =>
    (await attemptsOf(id)).find((attempt: { outcome: string }) => attempt.outcome === "delivered"),
  );
  expect(delivered.tls).toMatchObject({ verified: true, policy: "dane" });
  expect(receiver.mails.map(({ tls }) => tls)).toEqual([true]);
  world.dns.authenticate(false);
});
