import { expect, test } from "vitest";
import { readSmtpUsername, smtpUsername } from "../../src/access/credentials.ts";
import { hashSecret, makeKey, makePassword, wellFormedKey } from "../../src/access/keys.ts";

test("a key has its prefix, 43 characters of secret and 6 of checksum", () => {
  const live = makeKey(false);
  expect(live.value).toMatch(/^svc_live_[0-9A-Za-z]{49}$/);
  expect(makeKey(true).value).toMatch(/^svc_test_[0-9A-Za-z]{49}$/);
  expect(live.hint).toBe(live.value.slice(-4));
  expect(live.hash).toEqual(hashSecret(live.value));
  expect(live.hash).toHaveLength(32);
});

test("no two keys or passwords are alike", () => {
  const values = Array.from({ length: 200 }, () => [makeKey(false).value, makePassword().value]).flat();
  expect(new Set(values).size).toBe(values.length);
  expect(makePassword().value).toMatch(/^[0-9A-Za-z]{43}$/);
});

test("one changed character anywhere in a key spoils its checksum", () => {
  const { value } = makeKey(false);
  expect(wellFormedKey(value)).toBe(true);
  for (let at = 9; at < value.length; at++) {
    const other = value[at] === "x" ? "y" : "x";
    expect(wellFormedKey(value.slice(0, at) + other + value.slice(at + 1))).toBe(false);
  }
  expect(wellFormedKey(value.replace("svc_live_", "svc_test_"))).toBe(false);
});

test.each([
  "",
  "svc_live_",
  "svc_prod_" + "a".repeat(49),
  "Bearer",
  "svc_live_" + "é".repeat(49),
  "\0".repeat(58),
])("%j is not a key", (text) => expect(wellFormedKey(text)).toBe(false));

test("an SMTP user name is the account's id under another prefix, and its test twin", () => {
  const ulid = "01jd0000000000000000000000";
  expect(smtpUsername(`acct_${ulid}`, false)).toBe(`smtp_${ulid}`);
  expect(smtpUsername(`acct_${ulid}`, true)).toBe(`smtp_${ulid}_test`);
  expect(readSmtpUsername(`smtp_${ulid}`)).toEqual({ accountId: `acct_${ulid}`, test: false });
  expect(readSmtpUsername(`smtp_${ulid}_test`)).toEqual({ accountId: `acct_${ulid}`, test: true });
});

test.each([
  "",
  "smtp_",
  "smtp_01jd",
  "acct_01jd0000000000000000000000",
  "smtp_01jd0000000000000000000000_live",
  "SMTP_01JD0000000000000000000000",
])("%j is not an SMTP user name", (name) => expect(readSmtpUsername(name)).toBeNull());
