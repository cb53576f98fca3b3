// The world as the running service shows it to the doctor.
import { expect, test } from "vitest";
import { isTime } from "../../src/doctor/network.ts";
import { createWorld, type WorldDeps } from "../../src/doctor/world.ts";
import { ManualClock } from "../support/clock.ts";

test("the accounts' domains are read one account a turn of the loop, and once for all checks", async () => {
  const accounts = Array.from({ length: 50 }, (_, key) => ({ key, name: `a${key}` }));
  let reads = 0;
  let inTurn = 0;
  let most = 0;
  const deps = {
    config: {
      outbound: { source: [], smartHost: null },
      dev: true,
      dns: { servers: ["127.0.0.1"] },
      operations: {},
      tls: { mode: "off" },
      relay: { trusted: [], starttls: [], implicitTls: [] },
      limits: {},
      http: { listen: [], trustedProxies: [] },
      inbound: { listen: [] },
      files: [],
      backup: {},
    },
    store: {
      listAccounts: () => Promise.resolve({ rows: accounts, next: null }),
      listDomains() {
        reads += 1;
        most = Math.max(most, (inTurn += 1));
        setImmediate(() => (inTurn = 0));
        return Promise.resolve([]);
      },
    },
    pools: { all: () => [] },
    dnsbl: { summary: () => ({ listed: [] }), zones: () => [] },
    certificate: () => null,
    certificates: () => Promise.resolve([]),
    clock: new ManualClock(),
  } as unknown as WorldDeps;
  const world = await createWorld(deps)({ domain: null });
  await Promise.all([world.domains(), world.domains(), world.domains()]);
  expect([reads, most]).toEqual([50, 1]);
});

test("a time server that asks for fewer requests, or has no time itself, says nothing of this machine's clock", () => {
  const reply = (leap: number, mode: number, stratum: number, seconds: number): Buffer => {
    const bytes = Buffer.alloc(48);
    bytes[0] = (leap << 6) | (4 << 3) | mode;
    bytes[1] = stratum;
    bytes.writeUInt32BE(seconds, 40);
    return bytes;
  };
  expect(isTime(reply(0, 4, 2, 3_900_000_000))).toBe(true);
  expect(isTime(reply(0, 4, 0, 0))).toBe(false); // the kiss of death
  expect(isTime(reply(3, 4, 2, 3_900_000_000))).toBe(false);
  expect(isTime(reply(0, 3, 2, 3_900_000_000))).toBe(false);
  expect(isTime(Buffer.alloc(20))).toBe(false);
});
