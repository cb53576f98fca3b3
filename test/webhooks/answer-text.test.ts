import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { answerText } from "../../src/webhooks/answer-text.ts";
import { ManualClock, settle } from "../support/clock.ts";
import { startWebhookReceiver } from "../support/webhook-receiver.ts";
import { rig, secret } from "./rig.ts";

test.each([
  ["text stays as it is, its lines too", Buffer.from("Grüße,\r\n\t世界 👍\n"), "Grüße,\r\n\t世界 👍\n"],
  ["nothing", Buffer.alloc(0), ""],
  [
    "NUL, escape and what turns text around are replaced",
    Buffer.from("a\0b\u001b[2J\u202eexe"),
    "a\ufffdb\ufffd[2J\ufffdexe",
  ],
  ["bytes that are no UTF-8 are replaced", Buffer.from([0x61, 0xff, 0xfe, 0x62]), "a\ufffd\ufffdb"],
  [
    "a character that the cut goes through is left out",
    Buffer.from("x".repeat(4095) + "é"),
    "x".repeat(4095),
  ],
])("%s", (_name, bytes, text) => {
  expect(answerText(bytes)).toBe(text);
});

test("whatever the bytes, it is at most 4 KB of text that steers nothing", () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 6000 }),
    fc.constantFrom(0, 0xff, 0x1b, 0xc3).map((byte) => new Uint8Array(5000).fill(byte)),
  );
  fc.assert(
    fc.property(bytes, (given) => {
      const text = answerText(given);
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4096);
      expect(text).not.toMatch(/[^\P{C}\t\n\r]/u);
      expect(text.isWellFormed()).toBe(true);
    }),
  );
});

async function answered(status: number, body: string) {
  const clock = new ManualClock();
  const receiver = await startWebhookReceiver({ secret, now: () => clock.now() });
  const { store, webhooks } = rig({ caFile: receiver.caFile }, {}, clock);
  store.addEndpoint({ key: 1, url: receiver.url, secret });
  receiver.answer(() => ({ status, body }));
  store.record(1, 2);
  await webhooks.start();
  onTestFinished(async () => {
    await webhooks.stop();
    await receiver.stop();
  });
  await store.settled(2);
  await settle();
  return { results: store.results, connections: receiver.connections() };
}

test("how an answer begins is kept of a failure, and of a success nothing", async () => {
  expect((await answered(500, "Internal error: out of cheese")).results[0]).toMatchObject({
    status: 500,
    error: null,
    responseBody: "Internal error: out of cheese",
  });
  expect((await answered(200, "thank you")).results[0]).toMatchObject({ status: 200, responseBody: null });
});

test("of a long answer 4 KB are kept, of an endless one no more is read", async () => {
  const { results } = await answered(503, `${"long ".repeat(4000)}`);
  expect(results.map(({ responseBody }) => responseBody?.length)).toEqual([4096, 4096]);
  const huge = await answered(503, "x".repeat(8 * 1024 * 1024));
  expect(huge.results.map(({ status, responseBody }) => [status, responseBody?.length])).toEqual([
    [503, 4096],
    [503, 4096],
  ]);
});
