// What a source may ask of the inbound port within a minute, and how much is held in memory at a time.
import { expect, test } from "vitest";
import { createInboundLimits, inboundLimits, keptBytes } from "../../src/relay/inbound-limits.ts";
import { ManualClock } from "../support/clock.ts";

const ip = "203.0.113.9";
const other = "203.0.113.10";
const { perMinute, heldBytes } = inboundLimits;
const times = (count: number, run: () => unknown): unknown[] => Array.from({ length: count }, run);
/** The reply that is thrown; null where none is. */
function reply(run: () => void): string | null {
  try {
    run();
    return null;
  } catch (error) {
    return error instanceof Error
      ? `${(error as { responseCode?: number }).responseCode} ${error.message}`
      : "";
  }
}

test("sessions, mails and recipients of one source are limited by the minute, and another's are not touched", async () => {
  const clock = new ManualClock();
  const limits = createInboundLimits(clock);
  expect(times(perMinute.sessions, () => limits.session(ip)).every((text) => text === null)).toBe(true);
  await clock.advance(20_000);
  expect(limits.session(ip)).toBe(
    `4.7.0 The limit of ${perMinute.sessions} sessions a minute from ${ip} is reached; try again in 40 seconds`,
  );
  expect(limits.session(other)).toBeNull();
  times(perMinute.messages, () => limits.message(ip));
  expect(reply(() => limits.message(ip))).toMatch(
    /^451 4\.7\.0 The limit of 600 mails a minute from .* 60 seconds$/,
  );
  expect(reply(() => limits.message(other))).toBeNull();
  times(perMinute.recipients, () => limits.recipient(ip));
  expect(reply(() => limits.recipient(ip))).toMatch(/^451 4\.7\.0 The limit of 3000 recipients a minute/);
  expect(reply(() => limits.recipient(other))).toBeNull();
  await clock.advance(60_000);
  expect([limits.session(ip), reply(() => limits.message(ip)), reply(() => limits.recipient(ip))]).toEqual([
    null,
    null,
    null,
  ]);
});

test("the /64 of an IPv6 address is one source", () => {
  const limits = createInboundLimits(new ManualClock());
  for (let n = 0; n < perMinute.sessions; n++) limits.session(`2001:db8:1:2::${n.toString(16)}`);
  expect(limits.session("2001:db8:1:2:ffff::1")).not.toBeNull();
  expect(limits.session("2001:db8:1:3::1")).toBeNull();
});

test("what is kept of mails is work, and so much of it a minute is read", () => {
  const limits = createInboundLimits(new ManualClock());
  const mail = Buffer.alloc(1_000_000);
  for (let kept = 0; kept < perMinute.kilobytes * 1024; kept += keptBytes) {
    const held = limits.hold(ip);
    held.add(mail);
    expect(held.bytes()).toHaveLength(keptBytes);
    held.release();
  }
  expect(reply(() => limits.message(ip))).toMatch(
    /^451 4\.7\.0 The limit of 65536 kilobytes a minute from 203\.0\.113\.9 is reached; try again in 60 seconds$/,
  );
  expect(reply(() => limits.message(other))).toBeNull();
});

test("of a mail in pieces of any size the first 256 KB are kept as they came", () => {
  const limits = createInboundLimits(new ManualClock());
  const mail = Buffer.from(Array.from({ length: 300_000 }, (_, n) => n % 251));
  for (const size of [1, 1_000, 65_536, 300_000]) {
    const held = limits.hold(ip);
    for (let at = 0; at < mail.length; at += size) held.add(mail.subarray(at, at + size));
    expect(held.bytes().equals(mail.subarray(0, keptBytes))).toBe(true);
    held.release();
  }
});

test("all mails together hold so much and no more, and what one gives back the next may have", () => {
  const limits = createInboundLimits(new ManualClock());
  const most = heldBytes / keptBytes;
  const held = times(most, () => {
    const mail = limits.hold(ip);
    mail.add(Buffer.alloc(keptBytes));
    return mail;
  }) as ReturnType<typeof limits.hold>[];
  const next = limits.hold(other);
  expect(reply(() => next.add(Buffer.from("x")))).toMatch(
    /^451 4\.7\.0 Mail in transfer already uses 67108864 bytes/,
  );
  next.release();
  held[0]?.release();
  expect(reply(() => limits.hold(other).add(Buffer.alloc(keptBytes)))).toBeNull();
});

test("a hundred thousand sources are not remembered beyond ten thousand", () => {
  const limits = createInboundLimits(new ManualClock());
  times(perMinute.sessions, () => limits.session(ip));
  for (let n = 0; n < 9_999; n++) limits.session(`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
  expect(limits.session(ip), "still within ten thousand").not.toBeNull();
  limits.session("192.0.2.1");
  expect(limits.session(ip), "dropped: its minute began first").toBeNull();
});
