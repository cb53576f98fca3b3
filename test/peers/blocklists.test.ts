// The DNSBL monitor of the built program against rbldnsd. The names that the addresses say in EHLO are the test DNS's.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, freePort, startAppliance, type Appliance } from "../support/appliance.ts";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";
import { missingPeers, startRbldnsd, startSplitResolver, type Rbldnsd } from "../support/peers.ts";

const missing = missingPeers();
if (missing) console.warn(`SKIPPED: the DNSBL monitor against rbldnsd: ${missing}`);

/** Each with its test address: rbldnsd has that of IPv6 by itself, beside the IPv4 one. */
const clean4 = ":127.0.0.2:Listed by test, see https://bl.test/$\n127.0.0.2\n";
const clean6 = ":127.0.0.3:An IPv6 network\n";

let rbldnsd: Rbldnsd;
let dns: DnsServer;
let resolver: Awaited<ReturnType<typeof startSplitResolver>>;
let svc: Appliance;

describe.skipIf(missing !== null)("rbldnsd", () => {
  beforeAll(async () => {
    const port = await freePort();
    const zones = ["bl.test:ip4set:bl4", "bl.test:ip6trie:bl6", "all.test:ip4trie:all4"];
    const all4 = ":127.0.0.2:Everything\n0.0.0.0/0\n";
    rbldnsd = await startRbldnsd(port, zones, { bl4: clean4, bl6: clean6, all4 });
    dns = await startDnsServer({
      "out4.test": { A: ["11.22.33.44"] },
      "out6.test": { AAAA: ["2a00:1234::1"] },
    });
    resolver = await startSplitResolver(["bl.test", "all.test"], port, dns.port);
    const listed = [{ zone: "bl.test", name: "Test", codes: ["127.0.0.2-127.0.0.9"] }, "all.test"];
    svc = await startAppliance({
      config: { dns: { servers: [resolver.server] }, dnsbl: { interval: "1s", zones: listed } },
    });
    for (const [address, hostname] of [
      ["127.0.0.44", "out4.test"],
      ["::1", "out6.test"],
    ])
      await svc.admin("POST", "/v1/ip_pools/default/ips", { ip_address: address, hostname });
  });
  afterAll(async () => {
    await svc?.stop();
    await resolver?.stop();
    await Promise.all([rbldnsd?.stop(), dns?.stop()]);
  });

  /** Checks until the addresses are listed as wanted, in their order; what is shown at bl.test then. */
  const checkUntil = (wanted: boolean[]) =>
    eventually(
      async () => {
        const { data } = (await svc.admin("POST", "/v1/blacklists/check", {})).json;
        const listed = data.map((row: { listed: boolean }) => row.listed);
        if (listed.join() !== wanted.join()) return null;
        return data.map(({ blacklists }: { blacklists: { blacklist_zone: string }[] }) =>
          blacklists.find(({ blacklist_zone: zone }) => zone === "bl.test"),
        );
      },
      30_000,
      `listed: ${wanted.join()}`,
    );

  test("an IPv4 and an IPv6 address are listed with code and reason, and taken off again", async () => {
    await checkUntil([false, false]);
    rbldnsd.write("bl4", `${clean4}11.22.33.0/24\n`);
    rbldnsd.write("bl6", `${clean6}2a00:1234::/32\n`);
    const [four, six] = await checkUntil([true, true]);
    expect(four).toMatchObject({
      return_codes: [{ code: "127.0.0.2", meaning: null }],
      listing_reason: "Listed by test, see https://bl.test/11.22.33.44",
    });
    expect(six).toMatchObject({
      return_codes: [{ code: "127.0.0.3", meaning: null }],
      listing_reason: "An IPv6 network",
    });
    rbldnsd.write("bl4", clean4);
    rbldnsd.write("bl6", clean6);
    await checkUntil([false, false]);
    const events = (await svc.admin("GET", "/v1/events?event=ip.blacklisted,ip.delisted")).json.data;
    expect(events.map((event: { event: string }) => event.event)).toEqual([
      "ip.blacklisted",
      "ip.blacklisted",
      "ip.delisted",
      "ip.delisted",
    ]);
  });

  test("a zone that lists everything is not believed", async () => {
    const tested = await svc.admin("POST", "/v1/blacklists/zones/all.test/test");
    expect(tested.json).toMatchObject({ health: "broken", detail: expect.stringContaining("127.0.0.1") });
  });
});
