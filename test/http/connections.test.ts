// The limits of connections, on sockets that only know their address and whether they are closed; then on a real listener.
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { connect } from "node:net";
import { afterEach, expect, test } from "vitest";
import { connectionRule, createConnections, type ConnectionLimit } from "../../src/http/connections.ts";
import { affordableConnections } from "../../src/open-files.ts";
import { silentLog } from "../../src/log.ts";
import { ManualClock, settle } from "../support/clock.ts";
import { startHttp, type Harness } from "./harness.ts";

let http: Harness | null = null;
afterEach(async () => {
  await http?.stop();
  http = null;
});

class FakeSocket extends EventEmitter {
  destroyed = false;
  readableLength = 0;
  readonly remoteAddress: string | undefined;
  constructor(ip: string | undefined) {
    super();
    this.remoteAddress = ip;
  }
  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.emit("close");
  }
}

function start(rule: Partial<typeof connectionRule> = {}) {
  const clock = new ManualClock();
  const logged: Record<string, unknown>[] = [];
  const connections = createConnections({
    clock,
    log: { ...silentLog, warn: (fields: object) => void logged.push({ ...fields }) },
    isProxy: (ip) => ip === "" || ip === "10.0.0.1",
    rule: { ...connectionRule, total: 20, perSource: 8, unknownPerSource: 3, ...rule },
  });
  const dial = (ip: string | undefined) => {
    const socket = new FakeSocket(ip) as unknown as Socket & FakeSocket;
    const state = { socket, served: false, refused: null as ConnectionLimit | null };
    connections.admit(
      socket,
      () => (state.served = true),
      (limit) => {
        state.refused = limit;
        socket.destroy();
      },
    );
    return state;
  };
  const dialAll = (count: number, ip: (n: number) => string) =>
    Array.from({ length: count }, (_, n) => dial(ip(n)));
  return { clock, logged, connections, dial, dialAll };
}

const served = (states: { served: boolean }[]): number => states.filter((one) => one.served).length;

test("of one source, few connections without a valid key are served; more of a burst wait for their turn", async () => {
  const { clock, connections, dialAll } = start();
  const burst = dialAll(6, () => "192.0.2.1");
  expect(served(burst)).toBe(3);
  if (burst[0]) connections.known(burst[0].socket);
  expect(burst.map((one) => one.served)).toEqual([true, true, true, true, false, false]);
  burst[1]?.socket.destroy();
  expect(served(burst)).toBe(5);
  await clock.advance(connectionRule.waitMs);
  expect([burst[5]?.refused, burst[5]?.socket.destroyed]).toEqual(["unknown", true]);
  expect(connections.open).toBe(4);
});

test("connections that have shown a valid key count towards their source's larger limit, and the next is refused", () => {
  const { connections, dial, logged } = start();
  const known = Array.from({ length: 8 }, () => {
    const one = dial("2001:db8::1");
    connections.known(one.socket);
    return one;
  });
  expect(served(known)).toBe(8);
  expect(dial("2001:db8::ffff").refused).toBe("source");
  expect(dial("2001:db8:0:1::1").served).toBe(true);
  expect(logged).toEqual([{ limit: "source", source: "2001:db8:0:0::/64", times: 1 }]);
  known[0]?.socket.destroy();
  expect(dial("2001:db8::ffff").served).toBe(true);
});

test("when the total is reached, the oldest connection without a valid key is closed for the new one", () => {
  const { connections, dial, dialAll, logged } = start();
  const first = dial("192.0.2.1");
  connections.known(first.socket);
  const strangers = dialAll(19, (n) => `198.51.100.${n}`);
  const next = dial("203.0.113.1");
  expect([next.served, first.socket.destroyed]).toEqual([true, false]);
  expect(strangers.map((one) => one.socket.destroyed)).toEqual([true, ...Array<boolean>(18).fill(false)]);
  expect([connections.open, logged[0]]).toEqual([20, { limit: "total", source: "", times: 1 }]);
});

test("readers of tracked mail behind one address count towards its larger limit, and are closed before those with a key", () => {
  const { connections, dial, dialAll } = start({ total: 9 });
  const readers = Array.from({ length: 8 }, () => {
    const one = dial("192.0.2.1");
    connections.reader(one.socket);
    return one;
  });
  expect(served(readers)).toBe(8);
  expect(dial("192.0.2.1").refused).toBe("source");
  if (readers[0]) connections.known(readers[0].socket);
  dialAll(2, (n) => `198.51.100.${n}`);
  expect(readers.map((one) => one.socket.destroyed)).toEqual([false, true, ...Array<boolean>(6).fill(false)]);
});

test("where all of the total have shown a valid key, a new connection is refused", () => {
  const { connections, dial, dialAll } = start();
  for (const { socket } of dialAll(20, (n) => `198.51.100.${n}`)) connections.known(socket);
  expect(dial("203.0.113.1").refused).toBe("total");
  expect(dial("10.0.0.1").refused).toBe("total");
  expect(connections.open).toBe(20);
});

test("a trusted proxy's connections have no limit of their own; its clients are counted by their requests", () => {
  const { connections, dialAll } = start();
  expect(served([...dialAll(10, () => "10.0.0.1"), ...dialAll(5, () => "")])).toBe(15);
  const slots = Array.from({ length: 4 }, () => connections.client("192.0.2.1"));
  expect(slots.map((slot) => slot !== null)).toEqual([true, true, true, false]);
  expect(connections.client("192.0.2.2")).not.toBeNull();
  slots[0]?.known();
  expect(connections.client("192.0.2.1")).not.toBeNull();
  slots[1]?.leave();
  slots[1]?.leave();
  expect(connections.client("192.0.2.1")).not.toBeNull();
  expect(connections.client("192.0.2.1")).toBeNull();
});

test("a connection that waits for its turn and sends much is closed", () => {
  const { dialAll } = start();
  const waiting = dialAll(4, () => "192.0.2.1")[3];
  if (!waiting) throw new Error("none waits");
  waiting.socket.readableLength = 600;
  waiting.socket.emit("readable");
  expect(waiting.socket.destroyed).toBe(false);
  waiting.socket.readableLength = connectionRule.waitingBytes + 1;
  waiting.socket.emit("readable");
  expect([waiting.refused, waiting.socket.destroyed]).toEqual(["unknown", true]);
});

test("refusals are one line of the log for a while, with their number", async () => {
  const { clock, logged, dialAll } = start({ perSource: 1 });
  dialAll(100, () => "192.0.2.1");
  expect(logged).toHaveLength(1);
  await clock.advance(connectionRule.logEveryMs);
  dialAll(1, () => "192.0.2.1");
  expect(logged.map(({ times }) => times)).toEqual([1, 99]);
});

test("nothing is remembered of sources that have gone", () => {
  const { connections, dialAll } = start({ total: 1000 });
  for (let round = 0; round < 3; round++) {
    const all = dialAll(500, (n) => `10.9.${n >> 8}.${n & 255}`);
    expect(connections.open).toBe(500);
    for (const { socket } of all) socket.destroy();
    expect(connections.open).toBe(0);
  }
  expect(connections.sources).toBe(0);
});

test.each([
  ["Max open files            1048576              1048576              files", 10_000],
  ["Max open files            1024                 524288               files", 512],
  ["Max open files            unlimited            unlimited            files", 10_000],
  ["", 512],
])("of the open files, half is for HTTP connections: %s", (limits, most) => {
  expect(affordableConnections(10_000, 1 / 2, limits)).toBe(most);
});

const opened = (socket: Socket): Promise<void> =>
  new Promise((resolve) => void socket.once("connect", resolve));
const page = { listMessages: () => Promise.resolve({ rows: [], next: null, hasMore: false }) };

test("300 clients that come at once with a valid key are all answered, and keep their connections", async () => {
  http = await startHttp({ store: page });
  const { port } = http;
  const { value } = await http.key("admin");
  const request = `GET /v1/domains HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${value}\r\n\r\n`;
  const sockets = Array.from({ length: 300 }, () => connect(port, "127.0.0.1"));
  const answers = sockets.map(
    (socket) =>
      new Promise<string>((resolve) => {
        socket.once("data", (chunk: Buffer) => resolve(chunk.toString("latin1").slice(0, 9)));
        socket.once("close", () => resolve("closed"));
        socket.write(request);
      }),
  );
  expect(new Set(await Promise.all(answers))).toEqual(new Set(["HTTP/1.1 "]));
  expect(sockets.filter((socket) => socket.destroyed)).toEqual([]);
  for (const socket of sockets) socket.destroy();
});

test("beyond the limit a client is answered 503 with Retry-After, and the operator's socket is open", async () => {
  http = await startHttp({ store: page });
  const { port } = http;
  const idle = Array.from({ length: connectionRule.unknownPerSource }, () => connect(port, "127.0.0.1"));
  await Promise.all(idle.map(opened));
  const late = connect(port, "127.0.0.1");
  await opened(late);
  late.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  let answer = "";
  late.on("data", (chunk: Buffer) => (answer += chunk.toString("latin1")));
  const closed = new Promise((resolve) => void late.once("close", resolve));
  for (let n = 0; n < 2 * idle.length; n++) await settle(); // libuv takes one connection in a turn of the loop
  await http.clock.advance(connectionRule.waitMs);
  await closed;
  expect(answer).toMatch(/^HTTP\/1\.1 503 [\s\S]*retry-after: 5[\s\S]*"code":"service_overloaded"/);
  expect((await http.ask({ path: "/healthz", admin: true })).status).toBe(200);
  for (const socket of idle) socket.destroy();
});
