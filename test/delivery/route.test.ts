import { expect, test } from "vitest";
import { groupOf } from "../../src/delivery/route.ts";
import { rig } from "./rig.ts";

const zone = {
  "null.test": { mx: ["0 ."] },
  "bare.test": { a: ["127.0.0.1"] },
  "web.test": {},
  "broken.test": "servfail" as const,
  "g.test": { mx: ["10 aspmx.l.google.com", "20 alt1.aspmx.l.google.com"] },
};

test.each([
  ["null.test", "bounced", 556, "5.1.10", "invalid_domain"],
  ["gone.test", "bounced", 550, "5.1.2", "invalid_domain"],
  ["web.test", "bounced", 550, "5.4.4", "routing_error"],
  ["broken.test", "deferred", 451, "4.4.3", "dns_failure"],
])("%s is %s without a connection", async (domain, kind, code, status, classification) => {
  const outcome = await rig({ port: 1, zone }).send(`a@${domain}`);
  expect(outcome).toMatchObject({ kind, reply: { code, status }, classification });
  expect(outcome.reply.text).toMatch(new RegExp(`^\\[local\\] .*${domain}`));
  if (outcome.kind === "bounced") expect(outcome.source).toBe("local");
  expect(outcome.trace).toMatchObject({ host: null, address: null, sendingIp: null, dialogue: [] });
});

test("a domain without MX is its own mail host, and MX hosts come lowest preference first", async () => {
  const { delivery } = rig({ port: 1, zone });
  expect(await delivery.route("bare.test", 1)).toMatchObject({
    kind: "hosts",
    group: "bare.test",
    hosts: [{ host: "bare.test" }],
  });
  expect(await delivery.route("g.test", 1)).toMatchObject({
    group: "google",
    hosts: [{ preference: 10 }, { preference: 20 }],
  });
});

test("a domain whose equal MX are under two names has one group, whatever their order", async () => {
  const two = { "two.test": { mx: ["10 mx.b.test", "10 mx.a.test", "5 mx.d.test", "5 mx.c.test"] } };
  const { delivery } = rig({ port: 1, zone: two });
  const groups = new Set<string>();
  for (let i = 0; i < 40; i++) {
    const route = await delivery.route("two.test", 1);
    if (route.kind === "hosts") groups.add(route.group);
  }
  expect([...groups]).toEqual(["two.test/c.test"]);
});

test("a domain whose hosts are of several groups has limits of its own, and shares none of theirs", async () => {
  const mixed = {
    "mixed.test": { mx: ["10 gone.google.com", "20 mx.mixed.test"] },
    "own.test": { mx: ["10 mx.own.test", "20 backup.isp.test"] },
    "google.test": { mx: ["10 aspmx.l.google.com", "20 aspmx2.googlemail.com"] },
  };
  const { delivery } = rig({ port: 1, zone: mixed });
  const groups = Object.keys(mixed).map(async (domain) => {
    const route = await delivery.route(domain, 1);
    return route.kind === "hosts" ? route.group : null;
  });
  expect(await Promise.all(groups)).toEqual(["mixed.test/google", "own.test", "google"]);
});

test.each([
  ["aspmx.l.google.com", "google"],
  ["alt1.gmr-smtp-in.l.googlemail.com", "google"],
  ["acme-test.mail.protection.outlook.com", "microsoft"],
  ["acme.a-v1.mx.microsoft", "microsoft"],
  ["hotmail-com.olc.protection.outlook.com", "microsoft"],
  ["mta5.am0.yahoodns.net", "yahoo"],
  ["mx1.mail.acme.test", "acme.test"],
  ["evil-google.com", "evil-google.com"],
  ["localhost", "localhost"],
  ["mx1.mail.shop.co.uk", "shop.co.uk"],
  ["mx.other.co.uk", "other.co.uk"],
])("%s shares the limits of %s", (host, group) => {
  expect(groupOf(host)).toBe(group);
});
