import { expect, test } from "vitest";
import { heloName, peerOf, protocolOf } from "../../src/relay/peer.ts";

test.each(["client.test", "my_pc", "[192.0.2.1]", "[ipv6:2001:db8::1]", "a.test."])(
  "%s is a name for Received",
  (name) => {
    expect(heloName(name)).toBe(name);
  },
);

test.each([
  false,
  "",
  "a b",
  "a..b",
  "(x)",
  "a\r\nX: y",
  "[x]",
  "é.test",
  "a".repeat(64),
  `${"a.".repeat(130)}b`,
] as const)("%j is none", (name) => expect(heloName(name)).toBeNull());

test("the protocol follows RFC 3848", () => {
  const session = (openingCommand: string, secure: boolean, user: unknown) => ({
    openingCommand,
    secure,
    user,
  });
  expect(protocolOf(session("EHLO", true, {}), false)).toBe("ESMTPSA");
  expect(protocolOf(session("EHLO", true, false), false)).toBe("ESMTPS");
  expect(protocolOf(session("EHLO", false, false), false)).toBe("ESMTP");
  expect(protocolOf(session("HELO", false, false), false)).toBe("SMTP");
  expect(protocolOf(session("EHLO", true, {}), true)).toBe("UTF8SMTPSA");
});

test("who comes by a Unix socket is on this machine", () => {
  expect(peerOf({ remoteAddress: "" })).toBe("127.0.0.1");
});
