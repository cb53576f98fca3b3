import { expect, onTestFinished, test } from "vitest";
import { createMaintenance } from "../../src/maintenance/maintenance.ts";
import { createStatus } from "../../src/status/status.ts";
import type { Dnsbl } from "../../src/dnsbl/dnsbl.ts";
import { zonesOf } from "../../src/dnsbl/zones.ts";
import type { PoolProblem } from "../../src/pools/problems.ts";
import { queueNameOf } from "../../src/queue/queue-name.ts";
import { accept, minute, newDirectory, newMessage, openSqlite } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";

async function bench() {
  const clock = new ManualClock();
  const store = await openSqlite(newDirectory(), clock);
  onTestFinished(() => store.close());
  const maintenance = createMaintenance({ store, clock });
  const problems: PoolProblem[] = [];
  const dnsbl: { summary: Dnsbl["summary"]; zones: Dnsbl["zones"] } = {
    summary: () => ({ addresses: 0, listed: [] }),
    zones: () => [],
  };
  const status = createStatus({
    store,
    config: { hostname: "mail.svc.test", dev: false },
    clock,
    version: "0",
    startedAt: clock.now(),
    maintenance,
    poolProblems: () => problems,
    certificateTroubles: () => [{ name: "mail.svc.test", error: "dns: no address", nextAt: clock.now() }],
    dnsbl: { summary: () => dnsbl.summary(), zones: () => dnsbl.zones() },
    listeners: () => [],
    jobs: () => [],
  });
  const { key } = (await store.accountByName("default")) ?? { key: 0 };
  return { clock, store, maintenance, problems, dnsbl, status, key };
}

test("the status shows held mail and paused accounts, pools that cannot send and why, and is not ready in maintenance", async () => {
  const { clock, store, maintenance, problems, status, key } = await bench();
  const at = clock.now();
  expect(await status()).toMatchObject({
    ready: true,
    maintenance: null,
    paused_accounts: [],
    certificate_problems: [
      { name: "mail.svc.test", error: "dns: no address", next_attempt_at: new Date(at).toISOString() },
    ],
  });
  await accept(store, newMessage({ accountKey: key, at, to: ["a@x.test", "b@x.test"] }));
  await store.pauseAccount(key, at, "too many bounces");
  await store.claimDue({ owner: "boot", queueName: "x.test", limit: 9, now: at });
  await store.setMaintenance({ since: at, until: at + minute });
  await maintenance.reload();
  const iso = (ms: number) => new Date(ms).toISOString();
  expect(await status()).toMatchObject({
    ready: false,
    maintenance: { since: iso(at), until: iso(at + minute) },
    queue: { queued: 0, held: 2, sending: 0, oldest_due_at: null },
    paused_accounts: [{ name: "default", paused_at: iso(at), pause_reason: "too many bounces" }],
  });
  problems.push({
    accountKey: key,
    pool: "news",
    waits: "all",
    addresses: [{ address: "192.0.2.9", fault: "unbindable" }],
  });
  expect(await status()).toMatchObject({
    pool_problems: [
      {
        account: "default",
        ip_pool: "news",
        mail_waits: true,
        problem: "no address of the pool news can be used: 192.0.2.9 is not an address of this machine",
        advice: [expect.stringContaining("svc ips remove 192.0.2.9")],
        ips: [{ ip_address: "192.0.2.9", status: "unbindable" }],
      },
    ],
  });
});

test("a pool without addresses is a problem while mail waits for it, and not when it is new", async () => {
  const { clock, store, problems, status, key } = await bench();
  const at = clock.now();
  problems.push({ accountKey: key, pool: "news", waits: "all", addresses: [] });
  expect(await status()).toMatchObject({ pool_problems: [] });
  const other = queueNameOf(key, "news-b", "x.test");
  await accept(store, newMessage({ accountKey: key, at, to: ["a@x.test"], queueName: other }));
  expect(await status()).toMatchObject({ pool_problems: [] });
  const queueName = queueNameOf(key, "news", "x.test");
  await accept(store, newMessage({ accountKey: key, at, to: ["a@x.test"], queueName }));
  expect(await status()).toMatchObject({
    pool_problems: [{ ip_pool: "news", mail_waits: true, problem: "the pool news has no address" }],
  });
});

test("the status names the listings of sending addresses, and the blocklists that cannot be used", async () => {
  const { dnsbl, status } = await bench();
  expect(await status()).toMatchObject({
    blacklists: { ip_addresses: 0, zones: 0, listed: [], unusable_zones: [] },
  });
  const [zone] = zonesOf([], []).filter((one) => one.zone === "zen.spamhaus.org");
  if (!zone) throw new Error("no zone");
  const listing = { address: "11.22.33.44", zone: zone.zone, answer: "listed" as const, detail: null };
  const since = { lookedAt: 0, codes: ["127.0.0.2"], reason: null, listedAt: 0, changedAt: null };
  dnsbl.summary = () => ({ addresses: 3, listed: [{ ...listing, ...since }] });
  dnsbl.zones = () => [{ zone, tested: { health: { status: "broken", detail: "lists all" }, testedAt: 0 } }];
  expect(await status()).toMatchObject({
    blacklists: {
      ip_addresses: 3,
      zones: 1,
      listed: [
        {
          ip_address: "11.22.33.44",
          blacklist_name: "Spamhaus ZEN",
          blacklist_zone: "zen.spamhaus.org",
          listed_at: "1970-01-01T00:00:00.000Z",
          removal_url: "https://check.spamhaus.org/",
        },
      ],
      unusable_zones: [{ zone: "zen.spamhaus.org", health: "broken", detail: "lists all" }],
    },
  });
});
