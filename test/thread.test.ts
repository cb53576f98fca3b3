import { once } from "node:events";
import { getPriority } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";

/** The priority of a thread that ran `before` and then lowered it. */
async function lowered(before: string): Promise<number> {
  const module = pathToFileURL(join(import.meta.dirname, "../src/thread.ts")).href;
  const code = `
    const { getPriority, setPriority } = require("node:os");
    ${before}
    import(${JSON.stringify(module)}).then(({ lowerPriority }) => {
      lowerPriority();
      require("node:worker_threads").parentPort.postMessage(getPriority(0));
    });`;
  const worker = new Worker(code, { eval: true });
  const [priority] = (await once(worker, "message")) as [number];
  await worker.terminate();
  return priority;
}

test("a thread that is to wait for the rest of the program has a lower priority", async () => {
  expect(await lowered("")).toBe(Math.max(10, getPriority(0)));
});

test("where the program was started with a lower priority, its threads keep that", async () => {
  expect(await lowered("setPriority(0, 15);")).toBe(15);
});
