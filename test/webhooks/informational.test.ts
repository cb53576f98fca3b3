// Informational answers (RFC 9110 §15.2) in front of the final one, from servers that write their answers byte by byte.
import { once } from "node:events";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type TLSSocket } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { selfSigned } from "../support/webhook-receiver.ts";
import { rig, secret } from "./rig.ts";
import { removeFolder } from "../support/folders.ts";

/** A server that answers each request with these pieces, one write each, and the room with one endpoint at it. */
async function wired(pieces: string[], ends = false) {
  const identity = await selfSigned({});
  const folder = await mkdtemp(join(tmpdir(), "informational-"));
  const caFile = join(folder, "ca.pem");
  await writeFile(caFile, identity.cert);
  const served = { requests: 0, connections: 0 };
  const sockets = new Set<TLSSocket>();
  const answer = async (socket: TLSSocket): Promise<void> => {
    for (const piece of pieces) {
      socket.write(piece);
      // The next one in a record and an event of its own.
      await new Promise(setImmediate);
    }
    if (ends) socket.end();
  };
  const server = createServer(identity, (socket) => {
    served.connections++;
    sockets.add(socket);
    socket.on("error", () => undefined);
    let seen = "";
    socket.on("data", (chunk) => {
      seen += chunk.toString("latin1");
      const head = seen.indexOf("\r\n\r\n");
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(seen)?.[1]);
      if (head < 0 || seen.length < head + 4 + length) return;
      seen = "";
      served.requests++;
      void answer(socket);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" ? address?.port : 0;
  const room = rig({ caFile });
  room.store.addEndpoint({ key: 1, url: `https://localhost:${port}/`, secret });
  await room.webhooks.start();
  onTestFinished(async () => {
    const stopped = room.webhooks.stop();
    await room.clock.advance(3_000);
    await stopped;
    for (const socket of sockets) socket.destroy();
    server.close();
    removeFolder(folder);
  });
  const deliver = async (events = 1): Promise<void> => {
    room.store.record(1, events);
    room.webhooks.kick();
    await room.store.settled(room.store.rows.length);
  };
  return { ...room, served, deliver };
}

const go = "HTTP/1.1 100 Continue\r\n\r\n";
const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

test.each<[string, string[]]>([
  ["100 and then 200", [go, ok]],
  ["100 and 200 in one write", [go + ok]],
  ["100 three times", [go, go + go, ok]],
  ["100 with fields of its own", ["HTTP/1.1 100 Go on\r\nServer: x\r\nX-A: 100\r\n\r\n", ok]],
  ["100 without a reason", ["HTTP/1.1 100\r\n\r\n", ok]],
  ["100 of HTTP/1.0", ["HTTP/1.0 100 Continue\r\n\r\n", ok]],
  ["100 octet by octet", Array.from(go + ok)],
  ["102, 100 and 103", ["HTTP/1.1 102 Processing\r\n\r\n", go, "HTTP/1.1 103 Early Hints\r\n\r\n", ok]],
])("%s is a success, once, and the connections are kept", async (_, pieces) => {
  const { store, served, deliver } = await wired(pieces);
  await deliver(60);
  expect(store.results).toMatchObject(Array(60).fill({ status: 200, result: { kind: "delivered" } }));
  expect(served.requests).toBe(60);
  expect(served.connections).toBeLessThanOrEqual(32);
});

test("the final status decides behind 100, and a body that looks like one is a body", async () => {
  const body = `${go}no`;
  const { store, deliver } = await wired([
    go,
    `HTTP/1.1 500 No\r\nContent-Length: ${body.length}\r\n\r\n`,
    go,
    "no",
  ]);
  await deliver();
  expect(store.results).toMatchObject([
    { status: 500, result: { kind: "retry" }, responseBody: expect.stringContaining("100 Continue") },
  ]);
});

test.each<[string, string[]]>([
  ["100 and the end", [go]],
  ["half of 100 and the end", ["HTTP/1.1 100 Con"]],
  ["what only begins like it and the end", ["HTTP/1.1 10"]],
])("%s is not an answer", async (_, pieces) => {
  const { store, deliver } = await wired(pieces, true);
  await deliver();
  expect(store.results).toMatchObject([{ status: null, result: { kind: "retry" } }]);
});

test("a head of 100 that never ends is cut off with a limit of its own", async () => {
  const { store, deliver } = await wired([
    "HTTP/1.1 100 Continue\r\n",
    ...Array(40).fill(`X: ${"x".repeat(1_000)}\r\n`),
  ]);
  await deliver();
  expect(store.results).toMatchObject([{ status: null, result: { kind: "retry" } }]);
});

test("100 without end is not an answer when the time is over", async () => {
  const { store, clock, webhooks, served } = await wired(Array(200).fill(go));
  store.record(1, 1);
  webhooks.kick();
  while (served.requests === 0) await new Promise(setImmediate);
  await clock.advance(10_000);
  await store.settled(1);
  expect(store.results).toMatchObject([{ status: null, result: { kind: "retry" } }]);
});
