// A deletion is one transaction, and what the account or endpoint had goes in pieces after it. The process may end between.
import { join } from "node:path";
import { expect, test } from "vitest";
import { createAccountWrites } from "../../src/store/sqlite/accounts.ts";
import { databaseName, openWriting } from "../../src/store/sqlite/engine/open.ts";
import { ManualClock } from "../support/clock.ts";
import { mint, newDirectory, newSuppression, openSqlite } from "./fixtures.ts";

test("a start removes the suppressions, deliveries and attempts that an interrupted deletion of an account left, and no others", async () => {
  const clock = new ManualClock();
  const dataDir = newDirectory();
  const before = await openSqlite(dataDir, clock);
  const account = await before.createAccount({
    id: mint("acct", 1),
    name: "leaving",
    createdAt: clock.now(),
  });
  const kept = await before.accountByName("default");
  if (!account || !kept) throw new Error("no such account");
  const addresses = Array.from({ length: 20 }, (_, i) => `a${i}@x.test`);
  await before.addSuppressions(
    addresses.map((address) => newSuppression(account.key, address)),
    clock.now(),
  );
  await before.addSuppressions([newSuppression(kept.key, "kept@x.test")], clock.now());
  await before.changeAccount(account.id, { status: "suspended" });
  await before.close();

  // The deletion's own transaction; the process ends before the pieces.
  const killed = openWriting(join(dataDir, databaseName));
  killed.exec(`INSERT INTO deliveries (endpoint_key, event_seq, status, attempts) VALUES (77, 1, 'failed', 1);
    INSERT INTO delivery_attempts (endpoint_key, event_seq, attempted_at, attempt, status, duration_ms) VALUES (77, 1, 1, 1, 'failed', 5)`);
  const writes = createAccountWrites(killed, { accounts: null });
  expect(writes.deleteAccount({ id: account.id, at: clock.now() })?.key).toBe(account.key);
  killed.close();

  await (await openSqlite(dataDir, clock)).close();
  const after = openWriting(join(dataDir, databaseName));
  const rows = after.prepare("SELECT account_key AS accountKey, canonical FROM suppressions").all();
  const ofEndpoints = ["deliveries", "delivery_attempts"].map((table) =>
    after.prepare(`SELECT * FROM ${table}`).all(),
  );
  after.close();
  expect(rows).toEqual([{ accountKey: kept.key, canonical: "kept@x.test" }]);
  expect(ofEndpoints).toEqual([[], []]);
});
