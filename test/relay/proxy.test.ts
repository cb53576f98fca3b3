import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createNetworks } from "../../src/access/networks.ts";
import { silentLog } from "../../src/log.ts";
import { createProxyProtocol } from "../../src/relay/proxy-protocol.ts";
import { readProxyHeader } from "../../src/relay/proxy-header.ts";
import { ManualClock } from "../support/clock.ts";
import { plainToken, startRelay } from "../support/relay.ts";
import type { RelayHarness } from "../support/relay.ts";
import { SmtpClient } from "../support/smtp-client.ts";

const proxies = { trustedProxies: ["127.0.0.0/8"] };
const v1 = (ip: string): Buffer => Buffer.from(`PROXY TCP4 ${ip} 10.0.0.1 40000 587\r\n`);
const block = (command: number, family: number, addresses: Buffer): Buffer => {
  const head = Buffer.from("0d0a0d0a000d0a515549540a00000000", "hex");
  head[12] = 0x20 | command;
  head[13] = family;
  head.writeUInt16BE(addresses.length, 14);
  return Buffer.concat([head, addresses]);
};
const v2 = (ip: number[]): Buffer =>
  block(1, 0x11, Buffer.from([...ip, 10, 0, 0, 1, 0x9c, 0x40, 2, 0x4b, /* a TLV */ 3, 0, 1, 9]));

async function dial(port: number): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.setNoDelay(true);
  await once(socket, "connect");
  return socket;
}

async function peerThrough(
  house: RelayHarness,
  header: Buffer,
  cut = header.length,
): Promise<string | undefined> {
  const socket = await dial(house.ports.starttls);
  const client = new SmtpClient(socket);
  socket.write(header.subarray(0, cut));
  await new Promise((resolve) => setImmediate(resolve));
  socket.write(header.subarray(cut));
  expect((await client.answer()).code).toBe(220);
  await client.startTls();
  await client.command(`AUTH PLAIN ${plainToken}`);
  expect((await client.submit("a@ok.test", ["b@x.test"], "Subject: x\r\n\r\nhi\r\n.\r\n")).code).toBe(250);
  client.end();
  return house.mails.at(-1)?.arrival.ip;
}

test("a trusted proxy's header says whose the session is, in both versions, wherever it is split", async () => {
  await using house = await startRelay(proxies);
  expect(await peerThrough(house, v1("192.0.2.7"))).toBe("192.0.2.7");
  expect(await peerThrough(house, v1("192.0.2.8"), 9)).toBe("192.0.2.8");
  expect(await peerThrough(house, v2([192, 0, 2, 9]))).toBe("192.0.2.9");
  expect(await peerThrough(house, v2([192, 0, 2, 10]), 17)).toBe("192.0.2.10");
  expect(await peerThrough(house, Buffer.from("PROXY UNKNOWN\r\n"))).toBe("127.0.0.1");
  expect(await peerThrough(house, block(0, 0, Buffer.alloc(0)))).toBe("127.0.0.1");
});

test("the header stands before the handshake on the port under TLS", async () => {
  await using house = await startRelay(proxies);
  const tcp = await dial(house.ports.tls);
  tcp.write(v2([192, 0, 2, 11]));
  const tls = connectTls({ socket: tcp, rejectUnauthorized: false });
  const client = new SmtpClient(tls, tcp);
  await once(tls, "secureConnect");
  expect((await client.answer()).code).toBe(220);
  await client.command("EHLO c.test");
  await client.command(`AUTH PLAIN ${plainToken}`);
  await client.submit("a@ok.test", ["b@x.test"], "Subject: x\r\n\r\nhi\r\n.\r\n");
  expect(house.mails[0]?.arrival.ip).toBe("192.0.2.11");
});

test("places are counted by the client's address, not by the proxy's", async () => {
  await using house = await startRelay({ ...proxies, maxConnectionsPerIp: 1 });
  const banner = async (ip: string): Promise<number> => {
    const socket = await dial(house.ports.starttls);
    const client = new SmtpClient(socket);
    socket.write(v1(ip));
    return (await client.answer()).code;
  };
  expect(await banner("192.0.2.1")).toBe(220);
  expect(await banner("192.0.2.2")).toBe(220);
  expect(await banner("192.0.2.1")).toBe(421);
});

test("a connection of a trusted proxy without a header ends without a word", async () => {
  await using house = await startRelay(proxies);
  for (const bytes of ["EHLO x\r\n", "PROXY TCP4 not-an-ip 10.0.0.1 1 2\r\n", `PROXY ${"x".repeat(200)}`]) {
    const socket = await dial(house.ports.starttls);
    const client = new SmtpClient(socket);
    socket.write(bytes);
    await client.closed;
    expect(client.unread).toEqual([]);
  }
  const silent = new SmtpClient(await dial(house.ports.starttls));
  await house.clock.advance(10_000);
  await silent.closed;
});

test("of anybody else it is a command that is not known", async () => {
  await using house = await startRelay({ trustedProxies: ["127.0.0.2"] });
  const client = await house.client();
  expect(await client.text(v1("192.0.2.7").toString().trimEnd())).toMatch(/^500 5\.5\.2 /);
  expect(await client.text("XCLIENT ADDR=192.0.2.7")).toMatch(/^500 5\.5\.2 /);
});

test("any bytes are a header, the beginning of one, or wrong; a beginning never becomes wrong", () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 60 }),
      fc.constantFrom(v1("192.0.2.7"), v2([1, 2, 3, 4]), Buffer.alloc(0)),
      fc.nat(40),
      (noise, start, at) => {
        const bytes = Buffer.concat([start.subarray(0, at), Buffer.from(noise)]);
        const { kind } = readProxyHeader(bytes);
        for (let cut = 0; cut < bytes.length; cut++) {
          const earlier = readProxyHeader(bytes.subarray(0, cut)).kind;
          if (earlier !== "partial") expect(earlier).toBe(kind);
        }
      },
    ),
  );
  for (const header of [v1("192.0.2.7"), v2([1, 2, 3, 4])])
    for (let cut = 0; cut < header.length; cut++)
      expect(readProxyHeader(header.subarray(0, cut)).kind).toBe("partial");
  const six = block(
    1,
    0x21,
    Buffer.concat([Buffer.from("20010db8000000000000000000000001", "hex"), Buffer.alloc(20)]),
  );
  expect(readProxyHeader(six)).toMatchObject({ kind: "whole", peer: { ip: "2001:db8:0:0:0:0:0:1" } });
});

test("a connection whose client the proxy does not name is never trusted, and counts under the proxy's address", async () => {
  await using house = await startRelay({
    ...proxies,
    trusted: [{ network: "127.0.0.0/8", account: "default" }],
    maxConnectionsPerIp: 4,
  });
  const unknown = [
    Buffer.from("PROXY UNKNOWN\r\n"),
    Buffer.from("PROXY UNKNOWN 10.0.0.1 10.0.0.2 1 2\r\n"),
    block(0, 0x11, Buffer.from([10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2])),
    block(1, 0, Buffer.alloc(0)),
  ];
  for (const header of unknown) {
    const client = new SmtpClient(await dial(house.ports.starttls));
    client.send(header);
    expect((await client.answer()).code).toBe(220);
    await client.command("EHLO c.test");
    expect(await client.text("MAIL FROM:<a@ok.test>")).toMatch(/^530 5\.7\.0 /);
  }
  const fifth = new SmtpClient(await dial(house.ports.starttls));
  fifth.send(Buffer.from("PROXY UNKNOWN\r\n"));
  expect((await fifth.answer()).text).toMatch(/^421 4\.7\.0 /);

  const named = new SmtpClient(await dial(house.ports.starttls));
  named.send(v1("127.0.0.9"));
  await named.answer();
  await named.command("EHLO c.test");
  expect((await named.submit("a@ok.test", ["b@x.test"], "Subject: x\r\n\r\nhi\r\n.\r\n")).code).toBe(250);
});

test("under TLS from the first byte neither", async () => {
  await using house = await startRelay({
    ...proxies,
    trusted: [{ network: "127.0.0.0/8", account: "default" }],
  });
  const tcp = await dial(house.ports.tls);
  tcp.write("PROXY UNKNOWN\r\n");
  const tls = connectTls({ socket: tcp, rejectUnauthorized: false });
  const client = new SmtpClient(tls, tcp);
  await once(tls, "secureConnect");
  await client.answer();
  await client.command("EHLO c.test");
  expect(await client.text("MAIL FROM:<a@ok.test>")).toMatch(/^530 5\.7\.0 /);
});

test("of 1,000 connections whose header is due, the one that has waited longest makes room", async () => {
  const waiting: { ended: boolean }[] = [];
  const proxy = createProxyProtocol({
    proxies: createNetworks(["127.0.0.1"]),
    clock: new ManualClock(),
    log: silentLog,
  });
  const listener = createServer((socket) => {
    const one = { ended: false };
    socket.once("close", () => (one.ended = true));
    waiting.push(one);
    proxy.take(socket, () => undefined);
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  const clients: Socket[] = [];
  for (let i = 0; i < 1_001; i++) clients.push(await dial(port));
  if (clients[0]?.closed === false) await once(clients[0].resume(), "close");
  while (waiting.length < 1_001) await new Promise((resolve) => setImmediate(resolve));
  expect(waiting.filter(({ ended }) => ended)).toHaveLength(1);
  expect(waiting[0]?.ended).toBe(true);
  for (const client of clients) client.destroy();
  listener.close();
});
