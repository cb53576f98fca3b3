// `svc domains publish` with real primaries, BIND and Knot: the records stand in the zone and verify, what others have there
// stays, and who may not change the zone does not.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startAppliance, type Appliance } from "../support/appliance.ts";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";
import { primaries, type NameServer } from "../support/name-servers.ts";
import { missingPeers, startSplitResolver } from "../support/peers.ts";
import { createPrimary } from "../../src/dns/primary.ts";
import { parseTsigKey } from "../../src/dns/tsig-key.ts";
import { planPublication, publish } from "../../src/domains/publish.ts";
import { systemClock } from "../../src/clock.ts";
import type { DnsRecord } from "../../src/model/dns-record.ts";
import { readFileSync } from "node:fs";

const missing = missingPeers();
if (missing) console.warn(`SKIPPED: publishing with real name servers: ${missing}`);

/** What others have in the zone. */
const standing = `@ IN TXT "v=spf1 include:esp.test -all"
_dmarc IN TXT "a note of the owner"
bounce.shop IN TXT "v=spf1 include:esp.test ~all"
links.shop IN A 192.0.2.9
*.wild IN TXT "answers for all"
*.wild IN MX 5 mx.esp.test.
*.wild IN A 192.0.2.9
*.given IN MX 10 mail.svc.test.
*.links.given IN CNAME mail.svc.test.
svc1._domainkey.lent IN CNAME keys.esp.test.
bounce.old 900 IN TXT "site-verification=1"
bounce.old 900 IN TXT "v=spf1 a:mail.svc.test ip4:192.0.2.7 -all"
`;

describe.skipIf(missing !== null).each(primaries)("$name", ({ start }) => {
  let zone: NameServer;
  let dns: DnsServer;
  let resolver: { server: string; stop(): Promise<void> };
  let svc: Appliance;

  beforeAll(async () => {
    zone = await start("acme.test", standing);
    dns = await startDnsServer({ "mail.svc.test": { A: ["127.0.0.1"] } });
    resolver = await startSplitResolver(["acme.test"], zone.port, dns.port);
    svc = await startAppliance({ config: { dns: { servers: [resolver.server] } } });
  });

  afterAll(async () => {
    await svc?.stop();
    await Promise.all([resolver?.stop(), dns?.stop(), zone?.stop()]);
  });

  const added = async (name: string): Promise<DnsRecord[]> =>
    (await svc.admin("POST", "/v1/domains", { name })).json.records;
  const tracked = async (name: string, host: string): Promise<void> => {
    const set = await svc.cli("domains", "tracking", "set", name, "--host", host);
    expect(set.code, set.stderr).toBe(0);
  };
  const run = (name: string, key: keyof NameServer["keys"], ...flags: string[]) =>
    svc.cli("domains", "publish", name, "--server", zone.server, "--key-file", zone.keys[key], ...flags);
  const expectThere = async (records: readonly DnsRecord[]): Promise<void> => {
    for (const { name, type, value } of records)
      expect([name, await zone.records(name, type)]).toEqual([name, expect.arrayContaining([value])]);
  };

  test("a domain is shown first, then published, verified, and not published again", async () => {
    const records = await added("acme.test");
    const dry = await run("acme.test", "publish", "--dry-run");
    expect([dry.code, dry.stderr], dry.stderr).toEqual([0, expect.stringContaining("Nothing was changed")]);
    expect(dry.stdout).toContain(`zone acme.test at ${zone.server}\n+ TXT  svc1._domainkey.acme.test`);
    expect(dry.stdout.match(/^\+ /gm)).toHaveLength(records.length);
    const unasked = await run("acme.test", "publish");
    expect([unasked.code, unasked.stderr]).toEqual([2, expect.stringContaining("--yes")]);
    expect(await zone.records("bounce.acme.test", "MX")).toEqual([]);

    const ran = await run("acme.test", "publish", "--yes", "--wait");
    expect(ran.code, `${ran.stdout}\n${ran.stderr}\n${zone.log()}`).toBe(0);
    expect(ran.stderr).toContain("acme.test is verified");
    await expectThere(records);
    expect(await zone.records("acme.test", "TXT")).toEqual(["v=spf1 include:esp.test -all"]);
    expect(await zone.records("_dmarc.acme.test", "TXT")).toContain("a note of the owner");

    const again = await run("acme.test", "publish", "--yes");
    expect([again.code, again.stderr]).toEqual([0, expect.stringContaining("nothing to publish")]);
    expect(again.stdout.match(/^= /gm)).toHaveLength(records.length);
  });

  test("records of others are said and left: SPF, and the address of a link's name; the rest is published, exit 5", async () => {
    await added("shop.acme.test");
    await tracked("shop.acme.test", "links.shop.acme.test");
    const ran = await run("shop.acme.test", "publish", "--yes", "--json");
    expect(ran.code, ran.stderr).toBe(5);
    const { changes, published } = JSON.parse(ran.stdout.split("\n")[0] ?? "");
    expect(published).toBe(true);
    const conflicts = changes.filter(({ action }: { action: string }) => action === "conflict");
    expect(conflicts.map(({ name, reason }: Record<string, string>) => [name, reason])).toEqual([
      ["bounce.shop.acme.test", expect.stringContaining("another SPF record: v=spf1 include:esp.test ~all")],
      ["links.shop.acme.test", expect.stringContaining("other records")],
    ]);
    expect(await zone.records("bounce.shop.acme.test", "TXT")).toEqual(["v=spf1 include:esp.test ~all"]);
    expect(await zone.records("links.shop.acme.test", "A")).toEqual(["192.0.2.9"]);
    expect(await zone.records("bounce.shop.acme.test", "MX")).toEqual(["10 mail.svc.test"]);
    expect((await zone.records("svc1._domainkey.shop.acme.test", "TXT"))[0]).toMatch(/^v=DKIM1; k=rsa; p=/);
  });

  test("a key's name that is an alias is said; SPF of ours is renewed beside what stands there; a link's name is published", async () => {
    const [lent, old] = [await added("lent.acme.test"), await added("old.acme.test")];
    const alias = await run("lent.acme.test", "publish", "--dry-run");
    expect(alias.stdout).toContain("! TXT  svc1._domainkey.lent.acme.test");
    expect(alias.stdout).toContain("is an alias (CNAME) of keys.esp.test");
    expect(lent.length).toBe(old.length);
    await tracked("old.acme.test", "links.old.acme.test");
    const ran = await run("old.acme.test", "publish", "--yes", "--wait");
    expect(ran.code, `${ran.stdout}\n${ran.stderr}`).toBe(0);
    expect(ran.stdout).toContain("takes the place of v=spf1 a:mail.svc.test ip4:192.0.2.7 -all");
    expect(await zone.records("bounce.old.acme.test", "TXT")).toEqual([
      "site-verification=1",
      old.find(({ purpose }) => purpose === "spf")?.value,
    ]);
    expect(await zone.records("links.old.acme.test", "CNAME")).toEqual(["mail.svc.test"]);
  });

  test("wildcards, which answer for names that are not there, are no records of others", async () => {
    await added("wild.acme.test");
    await tracked("wild.acme.test", "links.wild.acme.test");
    expect(await zone.records("bounce.wild.acme.test", "MX")).toEqual(["5 mx.esp.test"]);
    const ran = await run("wild.acme.test", "publish", "--yes", "--wait");
    expect(ran.code, `${ran.stdout}\n${ran.stderr}`).toBe(0);
    expect(await zone.records("bounce.wild.acme.test", "MX")).toEqual(["10 mail.svc.test"]);
    expect(await zone.records("links.wild.acme.test", "CNAME")).toEqual(["mail.svc.test"]);
    expect(await zone.records("other.wild.acme.test", "MX")).toEqual(["5 mx.esp.test"]);
  });

  test("what a wildcard gives already is published, and once more without harm", async () => {
    await added("given.acme.test");
    await tracked("given.acme.test", "a.links.given.acme.test");
    for (let n = 0; n < 2; n++) {
      const ran = await run("given.acme.test", "publish", "--yes", "--wait");
      expect(ran.code, `${ran.stdout}\n${ran.stderr}`).toBe(0);
      expect(await zone.records("bounce.given.acme.test", "MX")).toEqual(["10 mail.svc.test"]);
      expect(await zone.records("a.links.given.acme.test", "CNAME")).toEqual(["mail.svc.test"]);
    }
  });

  test.each([
    [
      "reading",
      4,
      /REFUSED: the key reading may not make it|does not take the key reading: BADKEY.*no acl allows it/,
    ],
    ["forged", 4, /does not take the key publish: BADSIG: its secret differs/],
    ["unknown", 4, /does not take the key unknown: BADKEY: it does not know the key/],
  ] as const)("the key %s changes nothing", async (key, code, why) => {
    const name = `${key}.acme.test`;
    await added(name);
    const ran = await run(name, key, "--yes");
    expect([ran.code, ran.stderr.trim()]).toEqual([code, expect.stringMatching(why)]);
    expect(await zone.records(`bounce.${name}`, "MX")).toEqual([]);
  });

  test("a zone of others is not published to, exit 4 or 1 and why", async () => {
    await added("elsewhere.test");
    const ran = await run("elsewhere.test", "publish", "--yes");
    expect([1, 4]).toContain(ran.code);
    expect(ran.stderr).toMatch(/REFUSED|NOTAUTH|not the primary server/);
  });

  test("what changed since it was shown makes the update fail as a whole", async () => {
    const read = parseTsigKey(readFileSync(zone.keys.publish, "utf8"));
    if (!read.ok) throw new Error(read.found);
    const address = { host: "127.0.0.1", port: zone.port };
    const primary = createPrimary({ address, key: read.key, clock: systemClock });
    const records = await added("raced.acme.test");
    const plans = [await planPublication(primary, records), await planPublication(primary, records)];
    const [first, second] = plans.map((plan) => {
      if (plan.kind === "failed") throw new Error(plan.why);
      return plan.changes;
    });
    // The second has one thing to do that nobody did meanwhile.
    const dmarc = first?.filter(({ record }) => record.purpose !== "dmarc") ?? [];
    expect(await publish(primary, dmarc)).toEqual({ kind: "published" });
    expect(await publish(primary, second ?? [])).toMatchObject({
      kind: "failed",
      why: expect.stringContaining("changed meanwhile; nothing was done"),
    });
    expect(await zone.records("_dmarc.raced.acme.test", "TXT")).toEqual([]);
  });
});
