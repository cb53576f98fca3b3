import { beforeEach, expect, test } from "vitest";
import { createAccess, type Access } from "../../src/access/access.ts";
import { smtpUsername } from "../../src/access/credentials.ts";
import { createIdMint } from "../../src/ids.ts";
import { silentLog } from "../../src/log.ts";
import type { Account } from "../../src/model/account.ts";
import type { Store } from "../../src/store/store.ts";
import { newDirectory, openSqlite } from "../store/fixtures.ts";
import { ManualClock, settle } from "../support/clock.ts";

let clock: ManualClock;
let store: Store;
let access: Access;
let account: Account;
/** What the store says of the account, beside the truth. */
let status: Account["status"];
let uses: number;

beforeEach(async () => {
  clock = new ManualClock();
  const real = await openSqlite(newDirectory(), clock);
  status = "active";
  uses = 0;
  store = {
    ...real,
    accountByKey: async (key) => withStatus(await real.accountByKey(key)),
    accountById: async (id) => withStatus(await real.accountById(id)),
    noteUse: () => {
      uses++;
      return Promise.reject(new Error("the disk is full"));
    },
  };
  const found = await store.accountByName("default");
  if (!found) throw new Error("no account");
  account = found;
  access = createAccess({ store, clock, log: silentLog, mint: createIdMint() });
  return () => real.close();
});

const withStatus = (found: Account | null) => found && { ...found, status };
const wanted = { name: "k", scope: "send" as const, test: false, allowIps: [], expiresAt: null };
const use = (value: string, ip = "192.0.2.1") => access.authenticateKey(`Bearer ${value}`, ip);

test("a key is its account's principal, whatever becomes of writing its use down, at most once a minute", async () => {
  const { key, value } = await access.createKey(account.key, wanted);
  expect(await use(value)).toMatchObject({
    kind: "key",
    account: { name: "default" },
    key: { id: key.id, scope: "send" },
  });
  await use(value);
  expect(uses).toBe(1);
  await clock.advance(60_000);
  await use(value);
  await settle();
  expect(uses).toBe(2);
});

test("the store never holds a key or a password, only their hashes", async () => {
  const { key, value } = await access.createKey(account.key, wanted);
  const { credential, password } = await access.createCredential(account, { name: "c", test: false });
  const kept = JSON.stringify([
    key,
    credential,
    await store.listApiKeys(account.key, { limit: 10, cursor: null }),
    await store.listSmtpCredentials(account.key),
  ]);
  expect(kept).not.toContain(value.slice(9, 40));
  expect(kept).not.toContain(password.slice(0, 30));
});

test("a suspended account's keys and logins are disabled, and that is not a failed authentication", async () => {
  const { value } = await access.createKey(account.key, wanted);
  const { username, password } = await access.createCredential(account, { name: "c", test: true });
  expect(username).toBe(smtpUsername(account.id, true));
  status = "suspended";
  for (let i = 0; i < 60; i++) {
    await expect(use(value)).rejects.toMatchObject({ code: "key_disabled" });
    await expect(access.authenticateSmtp(username, password, "192.0.2.1")).rejects.toMatchObject({
      code: "key_disabled",
    });
  }
  status = "active";
  await use(value);
  expect(await access.authenticateSmtp(username, password, "192.0.2.1")).toMatchObject({ test: true });
});

test("a login of before is renewed until its password is revoked or its account suspended", async () => {
  const { credential, username, password } = await access.createCredential(account, {
    name: "c",
    test: true,
  });
  const session = await access.authenticateSmtp(username, password, "192.0.2.1");
  expect(await access.renewSmtp(session)).toMatchObject({ test: true, account: { id: account.id } });
  status = "suspended";
  await expect(access.renewSmtp(session)).rejects.toMatchObject({ code: "key_disabled" });
  status = "active";
  await store.revokeSmtpCredential(account.key, credential.id, 0);
  await expect(access.renewSmtp(session)).rejects.toMatchObject({ code: "invalid_api_key" });
});

test("failures over HTTP and SMTP add up to one lock", async () => {
  const { value } = await access.createKey(account.key, wanted);
  const { username, password } = await access.createCredential(account, { name: "c", test: false });
  for (let i = 0; i < 25; i++) {
    await expect(use("svc_live_x")).rejects.toMatchObject({ code: "invalid_api_key" });
    await expect(access.authenticateSmtp(username, value, "192.0.2.1")).rejects.toMatchObject({
      code: "invalid_api_key",
    });
  }
  await expect(use(value)).rejects.toMatchObject({
    code: "source_ip_locked",
    extras: { retry_after_seconds: 300 },
  });
  await expect(access.authenticateSmtp(username, password, "192.0.2.1")).rejects.toMatchObject({
    code: "source_ip_locked",
  });
  await use(value, "192.0.2.2");
});

test("a revoked key is refused from the next request on and cannot come back", async () => {
  const { key, value } = await access.createKey(account.key, wanted);
  await use(value);
  await access.setKeyStatus(account.key, key.id, "revoked");
  await expect(use(value)).rejects.toMatchObject({ code: "invalid_api_key" });
  await expect(access.setKeyStatus(account.key, key.id, "active")).rejects.toMatchObject({
    code: "conflict",
  });
  await expect(access.setKeyStatus(account.key, "key_none", "active")).rejects.toMatchObject({
    code: "resource_not_found",
  });
});

test("a malformed key is refused without a look-up", async () => {
  const looked = createAccess({
    store: { ...store, apiKeyByHash: () => Promise.reject(new Error("looked up")) },
    clock,
    log: silentLog,
    mint: createIdMint(),
  });
  for (const value of ["x", `svc_live_${"a".repeat(49)}`, "svc_live_", "a,b"]) {
    await expect(looked.authenticateKey(`Bearer ${value}`, "192.0.2.1")).rejects.toMatchObject({
      code: "invalid_api_key",
    });
  }
});

test("a key that would be expired from the start is not made", async () => {
  const past = access.createKey(account.key, { ...wanted, expiresAt: clock.now() });
  await expect(past).rejects.toMatchObject({
    code: "validation_failed",
    extras: { errors: [{ field: "expires_at" }] },
  });
  await access.createKey(account.key, { ...wanted, expiresAt: clock.now() + 1 });
});
