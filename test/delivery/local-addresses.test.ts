import type { NetworkInterfaceInfo } from "node:os";
import { expect, test } from "vitest";
import type { ListenAddress } from "../../src/config.ts";
import { localAddresses, portsOf } from "../../src/delivery/local-addresses.ts";

const face = (address: string, internal: boolean): NetworkInterfaceInfo => ({
  address,
  netmask: "255.0.0.0",
  family: "IPv4",
  mac: "00:00:00:00:00:00",
  internal,
  cidr: `${address}/8`,
});
const interfaces = {
  lo: [face("127.0.0.1", true), face("127.0.0.2", true)],
  eth0: [face("192.0.2.10", false)],
};

test.each<[string, ListenAddress[], string, number, boolean]>([
  ["an outward address of this machine, at any port", [], "192.0.2.10", 2525, true],
  ["an address of another machine", [{ host: "0.0.0.0", port: 25 }], "192.0.2.11", 25, false],
  ["loopback without a listener", [], "127.0.0.1", 25, false],
  ["the loopback address of a listener", [{ host: "127.0.0.2", port: 25 }], "127.0.0.2", 25, true],
  ["another loopback address than the listener's", [{ host: "127.0.0.2", port: 25 }], "127.0.0.1", 25, false],
  ["another port than the listener's", [{ host: "127.0.0.2", port: 25 }], "127.0.0.2", 26, false],
  ["loopback, where all addresses are listened at", [{ host: "0.0.0.0", port: 25 }], "127.0.0.1", 25, true],
  ["loopback, with a listener at a socket alone", [{ path: "/run/smtp.sock" }], "127.0.0.1", 25, false],
])("%s", (_what, listeners, address, port, ours) => {
  expect(localAddresses(listeners, interfaces)(address, port)).toBe(ours);
});

test("the ports are those of the TCP listeners", () => {
  expect(portsOf([{ host: "::", port: 587 }, { path: "/run/smtp.sock" }, { host: "::1", port: 25 }])).toEqual(
    [587, 25],
  );
});
