import { beforeEach, expect, test } from "vitest";
import { createSecurity, securityRule, type Security } from "../../src/access/security.ts";
import { silentLog } from "../../src/log.ts";
import type { AuditEntry } from "../../src/model/audit.ts";
import { ManualClock } from "../support/clock.ts";

let clock: ManualClock;
let rows: AuditEntry[];
let security: Security;
let fails: boolean;
let warned: number;
beforeEach(() => {
  clock = new ManualClock();
  rows = [];
  fails = false;
  warned = 0;
  const recordAudit = async (entries: AuditEntry[]): Promise<void> => {
    if (fails) throw new Error("the disk is full");
    rows.push(...entries);
  };
  const log = { ...silentLog, warn: () => void warned++ };
  security = createSecurity({ store: { recordAudit }, clock, log });
});

const bearer = (id: string) => ({ kind: "key" as const, id, accountKey: 1 });
const at = (ip: string) => ({ ip, requestId: "req_1" });
const times = (): number[] => rows.map((row) => row.times);

test("the first of a kind, source and key is recorded at once, what follows once a minute with how many", async () => {
  for (let i = 0; i < 1000; i++) security.notice("scope_mismatch", bearer("key_1"), at("192.0.2.1"));
  expect(times()).toEqual([1]);
  expect(rows[0]).toMatchObject({
    action: "security.scope_mismatch",
    actor: "key_1",
    actorKind: "key",
    sourceIp: "192.0.2.1",
    requestId: "req_1",
    accountKey: 1,
  });
  await clock.advance(60_000);
  expect(times()).toEqual([1, 999]);
  for (let i = 0; i < 5; i++) security.notice("scope_mismatch", bearer("key_1"), at("192.0.2.1"));
  expect(times()).toEqual([1, 999]);
  await clock.advance(60_000);
  expect(times()).toEqual([1, 999, 5]);
  await clock.advance(120_000);
  expect([times(), clock.pending]).toEqual([[1, 999, 5], 0]);
  security.notice("scope_mismatch", bearer("key_1"), at("192.0.2.1"));
  expect(times()).toEqual([1, 999, 5, 1]);
  expect(warned).toBe(2);
});

test("addresses of one IPv6 /64 are one source, other keys and kinds are recorded apart", () => {
  for (let i = 0; i < 9; i++) security.notice("revoked_key", bearer("key_1"), at(`2001:db8::${i}`));
  security.notice("revoked_key", bearer("key_2"), at("2001:db8::1"));
  security.notice("disabled_key", bearer("key_1"), at("2001:db8::1"));
  expect(rows.map(({ sourceIp }) => sourceIp)).toEqual(Array(3).fill("2001:db8:0:0::/64"));
});

test("an attack from any number of sources writes some rows a minute, and every one of it is counted", async () => {
  const minutes = 3;
  for (let minute = 0; minute < minutes; minute++) {
    for (let i = 0; i < 20_000; i++)
      security.notice("source_locked", null, at(`10.${minute}.${i >> 8}.${i & 255}`));
    await clock.advance(60_000);
  }
  await security.stop();
  expect(rows.length).toBeLessThanOrEqual((minutes + 1) * (2 * securityRule.mostRows + 1));
  expect(times().reduce((sum, one) => sum + one, 0)).toBe(minutes * 20_000);
});

test("what a minute has gathered is written when the program stops", async () => {
  for (let i = 0; i < 3; i++) security.notice("expired_key", bearer("key_1"), at("192.0.2.1"));
  await security.stop();
  expect([times(), clock.pending]).toEqual([[1, 2], 0]);
});

test("a use is recorded once for each key, address and day", async () => {
  for (const ip of ["192.0.2.1", "192.0.2.2", "192.0.2.1", "2001:db8::1", "2001:db8::2"])
    for (const key of ["key_1", "key_2"]) security.used(bearer(key), at(ip));
  expect(rows).toHaveLength(6);
  expect(new Set(rows.map(({ action }) => action))).toEqual(new Set(["keys.used"]));
  await clock.advance(86_400_000);
  security.used(bearer("key_1"), at("192.0.2.1"));
  security.used(bearer("key_1"), at("192.0.2.1"));
  expect(rows).toHaveLength(7);
});

test("a key that is used from everywhere is recorded of some addresses a day", () => {
  for (let i = 0; i < 5000; i++) security.used(bearer("key_1"), at(`10.0.${i >> 8}.${i & 255}`));
  expect(rows).toHaveLength(securityRule.mostAddresses);
});

test("a log that cannot be written refuses no request", async () => {
  fails = true;
  security.notice("revoked_key", bearer("key_1"), at("192.0.2.1"));
  security.used(bearer("key_1"), at("192.0.2.1"));
  await security.stop();
  expect([rows.length, warned]).toEqual([0, 3]);
});
