// How fast the mails of one source are read on the inbound port, by a clock that is moved.
import { expect, test } from "vitest";
import { createInboundPace, inboundPace } from "../../src/relay/inbound-pace.ts";
import { ManualClock } from "../support/clock.ts";

const { bytesPerSecond, burstBytes } = inboundPace;
const chunk = 65_536;

/** How much of a source is read within so many seconds, by sessions that always have more. */
async function readWithin(seconds: number, ips: string[]): Promise<number> {
  const clock = new ManualClock();
  const pace = createInboundPace(clock);
  let read = 0;
  const session = async (ip: string): Promise<void> => {
    while (clock.monotonic() < seconds * 1000) {
      read += chunk;
      await pace.read(ip, chunk);
    }
  };
  const sessions = ips.map(session);
  await clock.advance(seconds * 1000 + 60_000);
  await Promise.all(sessions);
  return read;
}

test.each([
  ["one session", ["192.0.2.1"]],
  ["twenty sessions", Array<string>(20).fill("192.0.2.1")],
  ["two addresses of one IPv6 network", ["2001:db8::1", "2001:db8::2"]],
])("%s of a source: a burst as it comes, then a megabyte a second for all together", async (_how, ips) => {
  const read = await readWithin(10, ips);
  expect(read).toBeGreaterThanOrEqual(burstBytes + 10 * bytesPerSecond - chunk);
  expect(read).toBeLessThanOrEqual(burstBytes + 10 * bytesPerSecond + 2 * ips.length * chunk);
});

test("no source waits for another", async () => {
  const pace = createInboundPace(new ManualClock());
  while (pace.read("192.0.2.1", chunk) === undefined);
  expect(pace.read("192.0.2.2", burstBytes)).toBeUndefined();
});

test("a source that has sent little for a while has its burst again", async () => {
  const clock = new ManualClock();
  const pace = createInboundPace(clock);
  expect(pace.read("192.0.2.1", burstBytes)).toBeUndefined();
  expect(pace.read("192.0.2.1", 1)).toBeInstanceOf(Promise);
  await clock.advance((1000 * burstBytes) / bytesPerSecond + 1);
  expect(pace.read("192.0.2.1", burstBytes)).toBeUndefined();
});
