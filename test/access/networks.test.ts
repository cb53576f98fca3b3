import { expect, test } from "vitest";
import { createNetworks, parseNetwork } from "../../src/access/networks.ts";
import { plainIp, sourceOf } from "../../src/model/ip-source.ts";

test("an IPv4-mapped peer is in the IPv4 network", () => {
  const networks = createNetworks(["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"]);
  expect(networks.has("10.200.3.4")).toBe(true);
  expect(networks.has("::ffff:10.200.3.4")).toBe(true);
  expect(networks.has("192.0.2.7")).toBe(true);
  expect(networks.has("192.0.2.8")).toBe(false);
  expect(networks.has("2001:db8:ffff::1")).toBe(true);
  expect(networks.has("2001:db9::1")).toBe(false);
});

test("what is not an address is in no network", () => {
  const networks = createNetworks(["0.0.0.0/0", "::/0"]);
  expect(networks.has("")).toBe(false);
  expect(networks.has("localhost")).toBe(false);
  expect(networks.has("1.2.3.4, 5.6.7.8")).toBe(false);
});

test.each([
  "",
  "10.0.0.0/33",
  "10.0.0.0/-1",
  "10.0.0.0/08",
  "10.0.0.0/8/8",
  "::/129",
  "fe80::1%eth0",
  "example.com",
  "10.0.0.0/",
])("%j is not a network", (text) => expect(parseNetwork(text)).toBeNull());

test("a zone is not part of an address", () => {
  expect(plainIp("fe80::1%eth0")).toBe("fe80::1");
  expect(plainIp("::ffff:192.0.2.1")).toBe("192.0.2.1");
});

test.each([
  ["192.0.2.1", "192.0.2.1"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:0db8:0001:0002::9", "2001:db8:1:2::/64"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["64:ff9b::192.0.2.1", "64:ff9b:0:0::/64"],
])("%s counts as %s", (ip, source) => expect(sourceOf(ip)).toBe(source));
