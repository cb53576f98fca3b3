import { expect, onTestFinished, test } from "vitest";
import { createMaintenance } from "../../src/care/maintenance.ts";
import { createStatus } from "../../src/care/status.ts";
import { accept, minute, newDirectory, newMessage, openSqlite } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";

test("the status shows what is on hold and whose, and is not ready in maintenance", async () => {
  const clock = new ManualClock();
  const store = await openSqlite(newDirectory(), clock);
  onTestFinished(() => store.close());
  const maintenance = createMaintenance({ store, clock });
  const status = createStatus({
    store,
    config: { hostname: "mail.svc.test", dev: false },
    clock,
    version: "0",
    startedAt: clock.now(),
    maintenance,
    listeners: () => [],
    jobs: () => [],
  });
  const at = clock.now();
  expect(await status()).toMatchObject({ ready: true, maintenance: null, paused_accounts: [] });
  const { key } = (await store.accountByName("default")) ?? { key: 0 };
  await accept(store, newMessage({ accountKey: key, at, to: ["a@x.test", "b@x.test"] }));
  await store.pauseAccount(key, at, "too many bounces");
  await store.claimDue({ owner: "boot", lane: "x.test", limit: 9, now: at, leaseUntil: at + minute });
  await store.setMaintenance({ since: at, until: at + minute });
  await maintenance.reload();
  const iso = (ms: number) => new Date(ms).toISOString();
  expect(await status()).toMatchObject({
    ready: false,
    maintenance: { since: iso(at), until: iso(at + minute) },
    queue: { queued: 0, held: 2, sending: 0, oldest_due_at: null },
    paused_accounts: [{ name: "default", paused_at: iso(at), pause_reason: "too many bounces" }],
  });
});
