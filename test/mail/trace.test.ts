import { expect, test } from "vitest";
import { mailDate, receivedField, type TraceInput } from "../../src/mail/trace.ts";

const date = Date.UTC(2026, 10, 7, 9, 5, 2);
const field = (more: Partial<TraceInput>): string =>
  receivedField({ from: null, by: "mx.shop.example", protocol: "ESMTPSA", id: "msg_1", date, ...more });

test("a date is RFC 5322 in UTC", () => {
  expect(mailDate(date)).toBe("Sat, 7 Nov 2026 09:05:02 +0000");
  expect(() => mailDate(Number.NaN)).toThrow();
});

test("a Received field names the client, us, how and when", () => {
  expect(field({ from: { ip: "192.0.2.1", helo: "client.test" } })).toBe(
    "Received: from client.test ([192.0.2.1])\r\n\tby mx.shop.example with ESMTPSA id msg_1;\r\n" +
      "\tSat, 7 Nov 2026 09:05:02 +0000\r\n",
  );
  expect(field({ from: { ip: "2001:db8::1", helo: "[192.0.2.9]" } })).toContain(
    "from [192.0.2.9] ([IPv6:2001:db8::1])\r\n",
  );
  expect(field({ from: { ip: "192.0.2.1", helo: null }, protocol: "HTTP" })).toContain(
    "Received: from [192.0.2.1]\r\n",
  );
  expect(field({})).toContain("Received: by mx.shop.example");
});

test.each(["x\r\nBcc: a@b.test", "a b", "(comment", "é.test", "", "x".repeat(300), "a;b"])(
  "a HELO that is no host is left out: %j",
  (helo) => {
    expect(field({ from: { ip: "192.0.2.1", helo } })).toContain("Received: from [192.0.2.1]\r\n\tby");
  },
);

test("a name of our own that is not a token is a bug", () => {
  expect(() => field({ by: "x\r\nMAIL FROM:<a>" })).toThrow("no token");
});
