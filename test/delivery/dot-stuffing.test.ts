import fc from "fast-check";
import { expect, test } from "vitest";
import { createStuffer } from "../../src/delivery/dot-stuffing.ts";
import { startReceiver } from "../support/smtp-receiver.ts";
import { rig } from "./rig.ts";

function stuff(chunks: Buffer[]): string {
  const stuffer = createStuffer();
  const pieces: Buffer[] = [];
  for (const chunk of chunks) stuffer.push(chunk, pieces);
  return Buffer.concat([...pieces, stuffer.end()]).toString("latin1");
}

const unstuff = (wire: string): string => wire.replace(/\.\r\n$/, "").replace(/(^|\r\n)\./g, "$1");

const nasty = "hello\r\n.\r\nhello\r\n..x\r\n\r\n.\r\n.\r\n...\r\n.";

test("a message with dots everywhere is the same again after un-stuffing, wherever its chunks are cut", () => {
  const whole = Buffer.from(nasty);
  const expected = stuff([whole]);
  expect(unstuff(expected)).toBe(`${nasty}\r\n`);
  for (let a = 0; a <= whole.length; a++) {
    for (let b = a; b <= whole.length; b++) {
      const wire = stuff([whole.subarray(0, a), whole.subarray(a, b), whole.subarray(b)]);
      expect(wire).toBe(expected);
    }
  }
});

test("the only end of data in stuffed bytes is the last line", () => {
  const pieces = fc.array(fc.constantFrom("\r\n", ".", "..", "x", "\r\n.\r\n", "\n", ""), { maxLength: 30 });
  fc.assert(
    fc.property(pieces, (chunks) => {
      const wire = stuff(chunks.map((chunk) => Buffer.from(chunk)));
      expect(`\r\n${wire}`.search(/\n\.\r?\n/)).toBe(`\r\n${wire}`.length - 4);
    }),
  );
});

test.each([
  ["in one write", 1],
  ["streamed", 20_000],
])("a receiver gets exactly the stored bytes, %s", async (_how, times) => {
  const receiver = await startReceiver();
  const { send, delivery } = rig({ port: receiver.port });
  const body = Buffer.from(`Subject: x\r\n\r\n${`.a\r\n..\r\nb\r\n.\r\n`.repeat(times)}`);
  const chunks = [];
  for (let at = 0; at < body.length; at += 7_777) chunks.push(body.subarray(at, at + 7_777));
  expect(await send("a@x.test", { chunks })).toMatchObject({ kind: "delivered" });
  expect(receiver.mails).toHaveLength(1);
  expect(receiver.mails[0]?.data.equals(body)).toBe(true);
  await delivery.stop();
  await receiver.stop();
});
