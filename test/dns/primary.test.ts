// A primary server that lies, is silent or is another: what the client believes. The good way is tested with BIND and Knot
// (test/peers/publish.test.ts).
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createPrimary, parsePrimary, type Primary } from "../../src/dns/primary.ts";
import { ManualClock } from "../support/clock.ts";
import { replyTo, secret, signed, u16, wire as name } from "../support/tsig.ts";

const key = { name: "publish", algorithm: "hmac-sha256", secret } as const;
const done = 0xa800; // QR, UPDATE, NOERROR
const framed = (message: Buffer): Buffer => Buffer.concat([u16(message.length), message]);

async function against(
  answer: (request: Buffer, socket: Socket) => Buffer | null,
): Promise<{ primary: Primary; clock: ManualClock; port: number }> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on("error", () => socket.destroy());
    let held = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      held = Buffer.concat([held, chunk]);
      if (held.length < 2 || held.length < 2 + held.readUInt16BE(0)) return;
      const bytes = answer(held.subarray(2), socket);
      if (bytes) socket.write(bytes);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  const clock = new ManualClock();
  const { port } = server.address() as { port: number };
  return { primary: createPrimary({ address: { host: "127.0.0.1", port }, key, clock }), clock, port };
}

const update = { zone: "acme.test", prerequisites: [], changes: [] };

test("a reply that the key's holder signed in answer to the update is believed", async () => {
  const { primary } = await against((request) => framed(signed(request, replyTo(request, done))));
  expect(await primary.update(update)).toEqual({ kind: "done" });
});

const lies: [string, (request: Buffer) => Buffer, RegExp][] = [
  ["no signature", (r) => replyTo(r, done), /without a signature/],
  [
    "a signature of another secret",
    (r) => signed(r, replyTo(r, done), { secret: Buffer.alloc(32) }),
    /does not verify/,
  ],
  [
    "a signature of another key",
    (r) => signed(r, replyTo(r, done), { keyName: "other" }),
    /signed with another key/,
  ],
  ["a shortened signature", (r) => signed(r, replyTo(r, done), { macLength: 16 }), /does not verify/],
  ["an empty signature", (r) => signed(r, replyTo(r, done), { macLength: 0 }), /does not verify/],
  ["a signature of an hour ago", (r) => signed(r, replyTo(r, done), { skew: -3_600 }), /of another time/],
  ["a signature over another id", (r) => signed(r, replyTo(r, done), { originalId: 1 }), /does not verify/],
  ["what it signed, changed", (r) => flipped(signed(r, replyTo(r, done | 5)), 3, 5), /does not verify/],
  ["another id", (r) => flipped(signed(r, replyTo(r, done)), 1, 1), /to another request/],
  ["a request in place of a reply", (r) => signed(r, replyTo(r, 0x2800)), /to another request/],
  ["a reply to a query", (r) => signed(r, replyTo(r, 0x8400)), /to another request/],
  ["another zone", (r) => signed(r, flipped(replyTo(r, done), 13, 1)), /to another request/],
  ["a signature before the last record", (r) => notLast(signed(r, replyTo(r, done))), /not the last record/],
  ["two signatures", (r) => signed(r, signed(r, replyTo(r, done))), /not the last record/],
  [
    "BADKEY, unsigned",
    (r) => signed(r, replyTo(r, done | 9), { macLength: 0, error: 17 }),
    /does not know the key/,
  ],
  ["BADSIG, unsigned", (r) => signed(r, replyTo(r, done | 9), { macLength: 0, error: 16 }), /secret differs/],
  ["BADTIME", (r) => signed(r, replyTo(r, done | 9), { error: 18 }), /clock/],
  ["REFUSED", (r) => signed(r, replyTo(r, done | 5)), /REFUSED: the key publish may not make it/],
  ["NXRRSET", (r) => signed(r, replyTo(r, done | 8)), /changed meanwhile; nothing was done/],
  ["NOTIMP", (r) => signed(r, replyTo(r, done | 4)), /takes no dynamic updates/],
  ["half a header", () => Buffer.from([1, 2, 3]), /cannot be read/],
  ["a name that points at itself", (r) => loop(replyTo(r, done)), /cannot be read/],
  ["65,535 records", (r) => counted(replyTo(r, done), 65_535), /cannot be read: more than/],
  ["a record that is not there", (r) => counted(replyTo(r, done), 1), /cannot be read/],
];

test.each(lies)("an update that is answered with %s is not taken for done", async (_, answer, why) => {
  const { primary } = await against((request) => framed(answer(request)));
  const failed = await primary.update(update);
  expect(failed).toMatchObject({ kind: "failed", why: expect.stringMatching(why) });
});

test("a server that is silent, one that sends an octet now and then, and one that closes fail in time", async () => {
  for (const answer of [() => null, () => Buffer.from([0]), () => u16(500, 1)]) {
    const { primary, clock } = await against(answer);
    const failed = primary.update(update);
    while (clock.pending === 0) await new Promise((next) => setImmediate(next));
    await clock.advance(15_000);
    expect(await failed).toMatchObject({
      kind: "failed",
      why: expect.stringContaining("does not answer within 15 s"),
    });
  }
  const closing = await against((_, socket) => (socket.end(), null));
  expect(await closing.primary.update(update)).toMatchObject({
    why: expect.stringContaining("closed the connection without an answer"),
  });
});

test("a server that is not the primary is no source of what stands in the zone", async () => {
  const notOurs = await against((request) => framed(signed(request, replyTo(request, 0x8000))));
  expect(await notOurs.primary.records("x.acme.test", 16)).toMatchObject({
    kind: "failed",
    why: expect.stringContaining("is not the primary server of x.acme.test"),
  });
  const unsigned = await against((request) => framed(replyTo(request, 0x8403)));
  expect(await unsigned.primary.records("x.acme.test", 16)).toMatchObject({
    kind: "failed",
    why: expect.stringContaining("without a signature (NXDOMAIN)"),
  });
  const refusing = await against((request) => framed(replyTo(request, 0x8005)));
  expect(await refusing.primary.zoneOf("x.acme.test")).toMatchObject({ kind: "failed", refused: true });
});

test.each([
  ["ns1.acme.test", { host: "ns1.acme.test", port: 53 }],
  ["ns1.acme.test.:5353", { host: "ns1.acme.test", port: 5353 }],
  ["192.0.2.1:53", { host: "192.0.2.1", port: 53 }],
  ["2001:db8::1", { host: "2001:db8::1", port: 53 }],
  ["[2001:db8::1]:5353", { host: "2001:db8::1", port: 5353 }],
  ["", null],
  ["ns1..test", null],
  ["ns1.test:0", null],
  ["ns1.test:70000", null],
  ["[ns1.test]:53", null],
  ["https://ns1.test", null],
])("the server %s", (text, address) => {
  expect(parsePrimary(text)).toEqual(address);
});

function flipped(message: Buffer, at: number, bits: number): Buffer {
  const changed = Buffer.from(message);
  changed[at] = (changed[at] ?? 0) ^ bits;
  return changed;
}

function counted(message: Buffer, records: number): Buffer {
  const changed = Buffer.from(message);
  changed.writeUInt16BE(records, 6);
  return changed;
}

/** One additional record more, behind the signature. */
function notLast(message: Buffer): Buffer {
  const longer = Buffer.concat([message, name("x.test"), u16(1, 1, 0, 0, 4, 0, 0)]);
  longer.writeUInt16BE(longer.readUInt16BE(10) + 1, 10);
  return longer;
}

function loop(message: Buffer): Buffer {
  const pointing = Buffer.concat([message, u16(0xc000 | message.length, 1, 1, 0, 0, 0)]);
  return counted(pointing, 1);
}
