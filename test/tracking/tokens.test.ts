import fc from "fast-check";
import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { dayMs } from "../../src/clock.ts";
import { createIdMint, idBytes, idOfBytes } from "../../src/ids.ts";
import type { TokenRecipient, TrackingKey } from "../../src/model/tracking.ts";
import { openTrackingKeys } from "../../src/tracking/keys.ts";
import { createTrackingTokens, type TokenPurpose } from "../../src/tracking/tokens.ts";
import { ManualClock } from "../support/clock.ts";

/** What the store keeps of keys. */
function keyStore(kept: TrackingKey[] = []) {
  return {
    kept,
    trackingKeys: () => Promise.resolve(kept),
    addTrackingKey: (at: number) => {
      if (kept.length > 255) return Promise.resolve(null);
      const key = { number: kept.length, secret: new Uint8Array(randomBytes(32)), createdAt: at };
      kept.push(key);
      return Promise.resolve(key);
    },
  };
}

const mint = createIdMint();
const recipient = (over: Partial<TokenRecipient> = {}): TokenRecipient => ({
  accountKey: 3,
  messageId: mint("msg", 1_700_000_000_000),
  recipientKey: 70_000,
  email: "Anna.Müller@kunde.example",
  test: false,
  ...over,
});
const clock = new ManualClock();
const opened = async (store = keyStore()) => {
  const keys = await openTrackingKeys({ store, clock });
  return { keys, tokens: createTrackingTokens(keys) };
};
const purposes: TokenPurpose[] = ["open", "click", "unsubscribe"];
const base64url = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

test("a token says which recipient it is about, and what its purpose needs", async () => {
  const { tokens } = await opened();
  const email = fc.string({ unit: "binary", minLength: 1, maxLength: 254 });
  fc.assert(
    fc.property(
      fc.maxSafeNat(),
      fc.maxSafeNat(),
      fc.boolean(),
      email,
      (recipientKey, accountKey, isTest, address) => {
        const of = recipient({ recipientKey, accountKey, test: isTest, email: address });
        const common = { accountKey, messageId: of.messageId, recipientKey, test: isTest, target: "" };
        expect(tokens.read("open", tokens.open(of))).toEqual({ ...common, email: "" });
        expect(tokens.read("unsubscribe", tokens.unsubscribe(of))).toEqual({ ...common, email: address });
      },
    ),
  );
  const target = `https://shop.example/a?b=%20&c=d#e${"x".repeat(4_000)}`;
  expect(tokens.read("click", tokens.click(recipient(), target))?.target).toBe(target);
});

test("an open's token is short, and of base64url's characters alone", async () => {
  const { tokens } = await opened();
  const token = tokens.open(recipient());
  expect(token).toMatch(/^[\w-]+$/);
  expect(token.length).toBeLessThanOrEqual(52);
});

test("every change of one character, in every place, is refused for every purpose", async () => {
  const { tokens } = await opened();
  const made = {
    open: tokens.open(recipient()),
    click: tokens.click(recipient(), "https://shop.example/x"),
    unsubscribe: tokens.unsubscribe(recipient()),
  };
  const taken: string[] = [];
  for (const purpose of purposes) {
    const token = made[purpose];
    expect(tokens.read(purpose, token)).not.toBeNull();
    for (let i = 0; i < token.length; i++) {
      for (const letter of `${base64url}+/= %.\n\0é`) {
        const changed = token.slice(0, i) + letter + token.slice(i + 1);
        if (letter !== token[i] && tokens.read(purpose, changed) !== null) taken.push(changed);
      }
      for (const changed of [token.slice(0, i), `${token.slice(0, i)}A${token.slice(i)}`])
        if (tokens.read(purpose, changed) !== null) taken.push(changed);
    }
    for (const changed of [`${token}=`, `${token}A`, ` ${token}`, token + token])
      if (tokens.read(purpose, changed) !== null) taken.push(changed);
  }
  expect(taken).toEqual([]);
});

test("a token of one purpose is refused for another", async () => {
  const { tokens } = await opened();
  const of = recipient();
  const made = {
    open: tokens.open(of),
    click: tokens.click(of, "https://a.example/"),
    unsubscribe: tokens.unsubscribe(of),
  };
  for (const purpose of purposes)
    for (const other of purposes) expect(tokens.read(purpose, made[other]) !== null).toBe(purpose === other);
});

test("of 10,000 guesses none is taken, whatever their length", async () => {
  const { tokens } = await opened();
  let hits = 0;
  for (let i = 0; i < 10_000; i++) {
    const bytes = randomBytes(i % 200);
    if (bytes.length > 2) bytes[0] = 0; // the number of the key that there is
    for (const purpose of purposes) if (tokens.read(purpose, bytes.toString("base64url")) !== null) hits++;
  }
  fc.assert(fc.property(fc.string(), (text) => tokens.read("open", text) === null));
  expect(hits).toBe(0);
  expect(tokens.read("click", "A".repeat(1_000_000))).toBeNull();
});

test("another installation's tokens are refused", async () => {
  const [ours, theirs] = [await opened(), await opened()];
  expect(ours.tokens.read("open", theirs.tokens.open(recipient()))).toBeNull();
});

test("after a rotation the new key signs, and the links of the old one go on working, over a restart too", async () => {
  const store = keyStore();
  const before = await opened(store);
  const old = before.tokens.unsubscribe(recipient());
  expect(await before.keys.rotate()).toBe(1);
  const fresh = before.tokens.unsubscribe(recipient());
  const after = await opened(store);
  expect(after.keys.newest().number).toBe(1);
  for (const { tokens } of [before, after])
    for (const token of [old, fresh]) expect(tokens.read("unsubscribe", token)).not.toBeNull();
  expect(Buffer.from(fresh, "base64url")[0]).toBe(1);
  expect(store.kept).toHaveLength(2);
});

test("a key is replaced when it is a year old, and once all numbers are used the last goes on signing", async () => {
  const store = keyStore();
  const { keys } = await opened(store);
  await keys.jobs[0]?.run();
  expect(store.kept).toHaveLength(1);
  await clock.advance(366 * dayMs);
  await keys.jobs[0]?.run();
  await keys.jobs[0]?.run();
  expect(store.kept).toHaveLength(2);
  while ((await keys.rotate()) !== null);
  expect(store.kept).toHaveLength(256);
  expect(keys.newest().number).toBe(255);
});

test("an id and its bytes are the same thing", () => {
  for (let i = 0; i < 1_000; i++) {
    const id = mint("msg", i * 1_000_000_007);
    expect(idBytes(id)).toHaveLength(16);
    expect(idOfBytes("msg", idBytes(id))).toBe(id);
  }
  expect(idOfBytes("msg", idBytes("msg_7zzzzzzzzzzzzzzzzzzzzzzzzz"))).toBe("msg_7zzzzzzzzzzzzzzzzzzzzzzzzz");
  expect(() => idBytes("msg_8zzzzzzzzzzzzzzzzzzzzzzzzz")).toThrow("no id");
});
