// Questions over UDP against a server that sees each datagram, and against forgers, while sockets are shared.
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Heard } from "../../src/dns/conversation.ts";
import { overUdp, udpLimits } from "../../src/dns/udp.ts";

interface Seen {
  bytes: Buffer;
  id: number;
  port: number;
}
interface Asked {
  seen: Seen;
  heard: Heard | null;
  end: () => void;
}

let server: Socket;
let forger: Socket;
let waiting: ((seen: Seen) => void)[];
let talk: ReturnType<typeof overUdp>;
let ends: (() => void)[];

beforeEach(async () => {
  [server, forger] = [createSocket("udp4"), createSocket("udp4")];
  [waiting, ends, talk] = [[], [], overUdp((_owner, work) => void work())];
  server.on("message", (bytes, { port }) => waiting.shift()?.({ bytes, id: bytes.readUInt16BE(0), port }));
  server.bind(0, "127.0.0.1");
  forger.bind(0, "127.0.0.1");
  await Promise.all([once(server, "listening"), once(forger, "listening")]);
});

afterEach(async () => {
  for (const end of ends) end();
  const closed = [once(server, "close"), once(forger, "close")];
  server.close();
  forger.close();
  await Promise.all(closed);
});

/** Asks for the A record of `name`, and waits until the server has the question. */
async function ask(name: string): Promise<Asked> {
  const { promise, resolve } = Promise.withResolvers<Seen>();
  waiting.push(resolve);
  const { port } = server.address();
  const asked = { heard: null as Heard | null };
  const end = talk(
    {
      server: { address: "127.0.0.1", port, family: 4 },
      question: { name, type: "A" },
      edns: false,
      owner: 1,
      exact: true,
    },
    (result) => {
      asked.heard ??= result;
      end();
    },
    () => undefined,
  );
  ends.push(end);
  return Object.assign(asked, { seen: await promise, end });
}

const manyNames = Array.from({ length: 3 * udpLimits.sockets }, (_, i) => `hanging${i}.test`);

/** So many questions under way that sockets are shared. */
async function askMany(): Promise<Asked[]> {
  const all: Asked[] = [];
  for (const name of manyNames) all.push(await ask(name));
  return all;
}

/** One address, as an answer to the question in `query`. */
function answer(query: Buffer, { id = query.readUInt16BE(0) } = {}): Buffer {
  const head = Buffer.from(query);
  head.writeUInt16BE(id, 0);
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(1, 6);
  return Buffer.concat([head, Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2, 1])]);
}

function send(from: Socket, bytes: Buffer, port: number): Promise<void> {
  return new Promise((done, fail) =>
    from.send(bytes, port, "127.0.0.1", (error) => (error ? fail(error) : done())),
  );
}

/** What was sent to the asker's port before has been read: a datagram of loopback is there when it is sent. */
async function settled(of: Asked[]): Promise<void> {
  for (let i = 0; i < 50 && of.some(({ heard }) => heard === null); i++)
    await new Promise((next) => setImmediate(next));
}

function byPort(all: Asked[]): Asked[][] {
  return [...Map.groupBy(all, ({ seen }) => seen.port).values()];
}

function shared(all: Asked[]): [Asked, Asked] {
  const [first, second] = byPort(all).find((group) => group.length > 1) ?? [];
  if (!first || !second) throw new Error("no socket is shared");
  return [first, second];
}

test("a few questions at once have a port each, and so have thousands one after the other", async () => {
  const few = await Promise.all(["a.test", "b.test", "c.test", "d.test"].map(ask));
  expect(byPort(few)).toHaveLength(few.length);
  for (const { end } of few) end();
  const ports = new Set<number>();
  for (let i = 0; i < 100; i++) {
    const { seen, end } = await ask(`next${i}.test`);
    end();
    ports.add(seen.port);
  }
  expect(ports.size).toBeGreaterThan(90); // the system draws them, now and then the same again
});

test("of many under way each socket is shared by a few, drawn by chance", async () => {
  const all = await askMany();
  const groups = byPort(all);
  expect(groups).toHaveLength(udpLimits.sockets);
  const later = all.slice(udpLimits.sockets).map(({ seen }) => seen.port);
  const inTurn = all.slice(0, udpLimits.sockets).map(({ seen }) => seen.port);
  expect(later.slice(0, udpLimits.sockets), "not one after the other").not.toEqual(inTurn);
  expect(new Set(all.map(({ seen }) => seen.id)).size).toBeGreaterThan(all.length - 10);
});

test("a socket takes so many questions and no more, and another port comes in its place", async () => {
  const all: Asked[] = [];
  for (let i = 0; i < udpLimits.sockets * (udpLimits.questions + 1); i++)
    all.push(await ask(`hanging${i}.test`));
  const groups = byPort(all);
  expect(Math.max(...groups.map((group) => group.length))).toBeLessThanOrEqual(udpLimits.questions);
  expect(groups.length).toBeGreaterThan(udpLimits.sockets);
});

test("a reply on a shared socket answers its own question alone", async () => {
  const all = await askMany();
  const [one] = shared(all);
  await send(server, answer(one.seen.bytes), one.seen.port);
  await settled([one]);
  expect(one.heard).toMatchObject({ kind: "reply", reply: { answers: [{ value: "192.0.2.1" }] } });
  expect(all.filter(({ heard }) => heard !== null)).toEqual([one]);
});

test("on a shared socket a forged reply is dropped, whatever of it is wrong, and the right one taken", async () => {
  const all = await askMany();
  const [one, other] = shared(all);
  const unused = [1, 2, 3].map((n) => (one.seen.id + n) % 0x10000);
  const wrongId = unused.find((id) => all.every(({ seen }) => seen.id !== id)) ?? 0;
  const elsewhere = byPort(all).find(([first]) => first?.seen.port !== one.seen.port)?.[0];
  await send(server, answer(one.seen.bytes, { id: wrongId }), one.seen.port);
  await send(server, answer(one.seen.bytes, { id: other.seen.id }), one.seen.port);
  await send(server, answer(one.seen.bytes), elsewhere?.seen.port ?? 0);
  await send(forger, answer(one.seen.bytes), one.seen.port);
  await settled([one]);
  expect(all.filter(({ heard }) => heard !== null)).toEqual([]);
  await send(server, answer(one.seen.bytes), one.seen.port);
  await settled([one]);
  expect(one.heard).toMatchObject({ kind: "reply" });
});

test("a reply with the name in another case is no reply yet", async () => {
  const [one] = shared(await askMany());
  const upper = Buffer.from(one.seen.bytes);
  upper[13] = (upper[13] ?? 0) ^ 0x20;
  await send(server, answer(upper), one.seen.port);
  await settled([one]);
  expect(one.heard).toEqual({ kind: "other_case" });
});

test("a late reply answers nothing, and a socket's late replies are no attack", async () => {
  const all = await askMany();
  const [one, other] = shared(all);
  one.end();
  for (let i = 0; i < udpLimits.questions; i++) await send(server, answer(one.seen.bytes), one.seen.port);
  await settled([other]);
  expect(all.filter(({ heard }) => heard !== null)).toEqual([]);
});

test("too many guesses fail the questions of their socket, not others', and close it", async () => {
  const all = await askMany();
  const [one] = shared(all);
  const group = byPort(all).find((some) => some.includes(one)) ?? [];
  const used = new Set(group.map(({ seen }) => seen.id));
  for (let id = 0, sent = 0; sent <= udpLimits.strays; id++) {
    if (used.has(id)) continue;
    await send(server, answer(one.seen.bytes, { id }), one.seen.port);
    sent++;
  }
  await settled(group);
  expect(group.map(({ heard }) => heard?.kind)).toEqual(group.map(() => "failed"));
  expect(all.filter(({ heard }) => heard !== null)).toEqual(group);
  const free = createSocket("udp4").bind(one.seen.port);
  await once(free, "listening");
  free.close();
});

test("what is sent to a server that went away fails, also where sockets are shared", async () => {
  await askMany();
  const { port } = server.address();
  const gone = once(server, "close");
  server.close();
  await gone;
  const heard: Heard[] = [];
  for (const name of manyNames) {
    const query = {
      server: { address: "127.0.0.1", port, family: 4 },
      question: { name: `later-${name}`, type: "A" },
      edns: false,
      owner: 1,
      exact: true,
    } as const;
    const end = talk(
      query,
      (result) => {
        heard.push(result);
        end();
      },
      () => undefined,
    );
    ends.push(end);
  }
  for (let i = 0; i < 200 && heard.length < manyNames.length; i++)
    await new Promise((next) => setImmediate(next));
  server = createSocket("udp4").bind(0, "127.0.0.1");
  await once(server, "listening");
  const refused = { kind: "failed", why: expect.stringContaining("ECONNREFUSED") };
  expect(heard).toEqual(manyNames.map(() => refused));
});
