// Where mail for a domain goes.
import { expect, test } from "vitest";
import { hostAddresses, mailHosts } from "../../src/dns/mx.ts";
import type { DnsAnswer, MxRecord, Resolver } from "../../src/dns/resolver.ts";

const found = <T>(...records: T[]): DnsAnswer<T> => ({
  kind: "found",
  records,
  ttlSeconds: 60,
  authenticated: false,
});
const nodata = { kind: "nodata" } as const;
const nxdomain = { kind: "nxdomain" } as const;
const failed = { kind: "failed", why: "silence" } as const;
const mx = (preference: number, exchange: string): MxRecord => ({ preference, exchange });

/** A resolver whose every name has these answers. */
function resolverOf(answers: {
  mx?: DnsAnswer<MxRecord>;
  a?: DnsAnswer<string>;
  aaaa?: DnsAnswer<string>;
}): Resolver {
  const none = (): Promise<DnsAnswer<string>> => Promise.resolve(nodata);
  return {
    mx: () => Promise.resolve(answers.mx ?? nodata),
    a: () => Promise.resolve(answers.a ?? nodata),
    aaaa: () => Promise.resolve(answers.aaaa ?? nodata),
    txt: none,
    cname: none,
    ptr: none,
    tlsa: () => Promise.resolve(nodata),
    stop: () => undefined,
  };
}
const hostsOf = async (answer: DnsAnswer<MxRecord>, random = Math.random): Promise<string[] | string> => {
  const result = await mailHosts(resolverOf({ mx: answer }), "d.test", random);
  return result.kind === "hosts" ? result.hosts.map((host) => host.host) : result.kind;
};

test("lower preferences come first", async () => {
  expect(await hostsOf(found(mx(20, "c.test"), mx(0, "a.test"), mx(10, "b.test")))).toEqual([
    "a.test",
    "b.test",
    "c.test",
  ]);
});

test("equal preferences share the first place evenly, behind nobody of a higher one", async () => {
  let first = 0;
  for (let i = 0; i < 1000; i++) {
    const hosts = await hostsOf(found(mx(10, "a.test"), mx(10, "b.test"), mx(20, "c.test")));
    if (hosts[0] === "a.test") first++;
    expect(hosts[2]).toBe("c.test");
  }
  expect(first).toBeGreaterThan(350);
  expect(first).toBeLessThan(650);
});

test("the order of equals is the drawing's", async () => {
  const draws = [0.9, 0.1];
  expect(await hostsOf(found(mx(10, "a.test"), mx(10, "b.test")), () => draws.shift() ?? 0)).toEqual([
    "b.test",
    "a.test",
  ]);
});

test("a host that is named twice is tried once, where it stands first", async () => {
  expect(await hostsOf(found(mx(30, "a.test"), mx(20, "b.test"), mx(10, "a.test")))).toEqual([
    "a.test",
    "b.test",
  ]);
});

test("a null MX takes no mail, one among others is ignored", async () => {
  expect(await hostsOf(found(mx(0, "")))).toBe("null_mx");
  expect(await hostsOf(found(mx(0, ""), mx(10, "a.test")))).toEqual(["a.test"]);
});

test("without any MX the domain itself is the host, if it has an address", async () => {
  expect(await mailHosts(resolverOf({ aaaa: found("2001:db8::1") }), "d.test", Math.random)).toEqual({
    kind: "hosts",
    hosts: [{ host: "d.test", preference: 0 }],
    implicit: true,
    authenticated: false,
  });
  expect(await mailHosts(resolverOf({}), "d.test", Math.random)).toMatchObject({ kind: "no_mail_host" });
});

test("addresses of the domain are no way around a failed MX look-up", async () => {
  expect(await mailHosts(resolverOf({ mx: failed, a: found("192.0.2.1") }), "d.test", Math.random)).toEqual(
    failed,
  );
});

test("an address look-up that failed leaves it open whether the domain takes mail", async () => {
  expect(await mailHosts(resolverOf({ a: failed }), "d.test", Math.random)).toEqual(failed);
  expect(await mailHosts(resolverOf({ aaaa: failed }), "d.test", Math.random)).toEqual(failed);
});

test("a name that does not exist has no mail host", async () => {
  expect(await mailHosts(resolverOf({ mx: nxdomain, a: found("192.0.2.1") }), "d.test", Math.random)).toEqual(
    nxdomain,
  );
});

test.each([
  "192.0.2.1",
  "2001:db8::1",
  "a..b",
  "x".repeat(64),
  `${"abcdefghi.".repeat(26)}test`,
  "a\0b.test",
  "a b.test",
  "\r\nrset.test",
])("the target %j is not a host, and falls away", async (target) => {
  expect(await hostsOf(found(mx(0, target), mx(10, "ok.test")))).toEqual(["ok.test"]);
  const alone = await mailHosts(
    resolverOf({ mx: found(mx(0, target)), a: found("192.0.2.1") }),
    "d.test",
    Math.random,
  );
  expect(alone).toMatchObject({ kind: "no_mail_host", why: expect.not.stringMatching(/[\r\n\0]/) });
});

test("a target with an underscore is tried", async () => {
  expect(await hostsOf(found(mx(0, "mx_1.test")))).toEqual(["mx_1.test"]);
});

test("both families of addresses are found; one that failed does not hide the other", async () => {
  expect(
    await hostAddresses(resolverOf({ a: found("192.0.2.1"), aaaa: found("2001:db8::1") }), "h.test"),
  ).toEqual({
    kind: "addresses",
    addresses: [
      { address: "192.0.2.1", family: 4 },
      { address: "2001:db8::1", family: 6 },
    ],
    authenticated: false,
  });
  expect(await hostAddresses(resolverOf({ a: failed, aaaa: found("2001:db8::1") }), "h.test")).toMatchObject({
    kind: "addresses",
  });
});

test("no address and could-not-tell are kept apart", async () => {
  expect(await hostAddresses(resolverOf({ a: nxdomain, aaaa: nodata }), "h.test")).toEqual({ kind: "none" });
  expect(await hostAddresses(resolverOf({ a: nodata, aaaa: failed }), "h.test")).toEqual(failed);
});
