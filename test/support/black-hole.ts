// An address that swallows connections: nothing that is dialled there is ever accepted or refused, as behind a firewall
// that drops. A listener in a thread of its own that never comes to accept; once its backlog is full the kernel ignores
// what else asks.
import { once } from "node:events";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { Worker } from "node:worker_threads";
import { idleClock } from "./idle-clock.ts";

const listening = `
  const { createServer } = require("node:net");
  const { parentPort, workerData } = require("node:worker_threads");
  const { address, port } = workerData;
  createServer().listen({ host: address, port, backlog: 1 }, () => {
    parentPort.postMessage(null);
    setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
  });
`;

/** What is returned ends it. */
export async function startBlackHole(address: string, port: number): Promise<() => Promise<void>> {
  const worker = new Worker(listening, { eval: true, workerData: { address, port } });
  await once(worker, "message");
  const filling: Socket[] = [];
  for (let full = false; !full;) {
    const socket = connect({ host: address, port });
    filling.push(socket);
    const ignored = Promise.withResolvers<"ignored">();
    const timer = idleClock.after(100, () => ignored.resolve("ignored"));
    full = (await Promise.race([once(socket, "connect"), ignored.promise])) === "ignored";
    timer.cancel();
  }
  return async () => {
    for (const socket of filling) socket.on("error", () => undefined).destroy();
    await worker.terminate();
  };
}
