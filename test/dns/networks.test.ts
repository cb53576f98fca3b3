// Which addresses a stranger may make us dial.
import { expect, test } from "vitest";
import { createAllowList, isPublicAddress, parseNetwork } from "../../src/dns/networks.ts";

test.each([
  "8.8.8.8",
  "1.1.1.1",
  "100.63.255.255",
  "172.32.0.1",
  "2606:4700::1111",
  "2a00:1450:4001::1b",
  "::ffff:8.8.8.8",
  "64:ff9b::8.8.8.8",
])("%s is public", (address) => {
  expect(isPublicAddress(address)).toBe(true);
});

test.each([
  [
    "loopback",
    "127.0.0.1",
    "127.9.9.9",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "64:ff9b::127.0.0.1",
    "::127.0.0.1",
  ],
  [
    "private",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "fd00::1",
    "::ffff:10.0.0.1",
    "64:ff9b::a00:1",
  ],
  [
    "link-local and metadata",
    "169.254.169.254",
    "fe80::1",
    "fe80::1%lo",
    "fd00:ec2::254",
    "168.63.129.16",
    "100.100.100.200",
    "::ffff:169.254.169.254",
  ],
  ["shared", "100.64.0.1", "100.127.255.255"],
  ["multicast and broadcast", "224.0.0.1", "239.255.255.250", "ff02::1", "255.255.255.255"],
  [
    "documentation, benchmarking and reserved",
    "192.0.2.1",
    "198.51.100.1",
    "203.0.113.1",
    "198.18.0.1",
    "240.0.0.1",
    "192.0.0.1",
    "2001:db8::1",
    "3fff::1",
  ],
  ["unspecified", "0.0.0.0", "0.1.2.3", "::"],
  [
    "tunnels and old forms",
    "2002:7f00:1::",
    "2001::1",
    "fec0::1",
    "64:ff9b:1::7f00:1",
    "::ffff:0:127.0.0.1",
    "100::1",
    "5f00::1",
  ],
  ["no address", "", "localhost", "127.1", "0177.0.0.1", "2130706433", "0x7f.0.0.1", "1.2.3.4.5", "[::1]"],
])("%s is not public", (_, ...addresses) => {
  expect(addresses.filter(isPublicAddress)).toEqual([]);
});

test("an allow list covers what is in its networks, in whatever form the address comes", () => {
  const allowed = createAllowList(["127.0.0.0/8", "10.1.2.3", "fd00::/8"]);
  expect(["127.0.0.1", "::ffff:127.0.0.1", "10.1.2.3", "fd12::1"].every(allowed)).toBe(true);
  expect(["10.1.2.4", "::1", "8.8.8.8", "", "localhost"].some(allowed)).toBe(false);
  expect(createAllowList([])("127.0.0.1")).toBe(false);
  expect(createAllowList(["0.0.0.0/0"])("2001:db8::1")).toBe(false);
});

test("networks are read strictly, with a reason where they are none", () => {
  expect(parseNetwork("10.0.0.0/8")).toMatchObject({ ok: true, value: { prefix: 8 } });
  expect(parseNetwork("::ffff:10.0.0.0/104")).toMatchObject({ ok: true, value: { prefix: 8 } });
  for (const text of [
    "",
    "10.0.0.0/33",
    "10.0.0/8",
    "::1/129",
    "10.0.0.0/-1",
    "10.0.0.0/8/8",
    "::ffff:10.0.0.0/8",
    "fe80::1%lo/64",
    "lan",
  ]) {
    expect(parseNetwork(text)).toMatchObject({ ok: false, issue: expect.stringContaining(text) });
  }
  expect(() => createAllowList(["lan"])).toThrow("lan");
});
