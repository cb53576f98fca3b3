import { afterAll, beforeAll, expect, test } from "vitest";
import type { Account } from "../../src/model/account.ts";
import type { Store } from "../../src/store/store.ts";
import { ManualClock } from "../support/clock.ts";
import { mint, newDirectory, newMessage, openSqlite } from "./fixtures.ts";

const clock = new ManualClock();
let store: Store;
beforeAll(async () => void (store = await openSqlite(newDirectory(), clock)));
afterAll(() => store.close());

async function newAccount(name: string): Promise<Account> {
  const account = await store.createAccount({ id: mint("acct", clock.now()), name, createdAt: clock.now() });
  if (!account) throw new Error("the name is taken");
  return account;
}
const messageOf = ({ key }: Account) => newMessage({ accountKey: key, to: ["a@x.test"], at: clock.now() });

test("a mail that reaches the commit after its account was paused is not kept, and is after the account is resumed", async () => {
  const account = await newAccount("paused");
  const mail = messageOf(account);
  await store.pauseAccount(account.key, clock.now(), "too many bounces");
  const refused = {
    kind: "not_sending",
    account: "paused",
    status: "active",
    pausedAt: clock.now(),
    pauseReason: "too many bounces",
  };
  expect(await store.acceptMessage(mail)).toEqual(refused);
  expect(await store.acceptMessages([mail, messageOf(account)], null)).toEqual({
    kind: "refused",
    refusals: [refused, refused],
  });
  expect(await store.message(account.key, mail.message.id)).toBeNull();
  await store.resumeAccount(account.key, null);
  expect(await store.acceptMessage(mail)).toMatchObject({ kind: "accepted" });
});

test("a mail that reaches the commit after its account was suspended or deleted is not kept", async () => {
  const account = await newAccount("leaving");
  await store.changeAccount(account.id, { status: "suspended" });
  expect(await store.acceptMessage(messageOf(account))).toMatchObject({
    kind: "not_sending",
    status: "suspended",
  });
  expect(await store.deleteAccount(account.id, clock.now())).toBe(true);
  expect(await store.acceptMessage(messageOf(account))).toMatchObject({
    kind: "not_sending",
    status: "deleted",
  });
  expect(await store.hasUnsent(account.key)).toBe(false);
});
