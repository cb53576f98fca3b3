// How answers leave: slices, stalls, pipelines. Sockets are fakes that take what a test says.
import { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { createWriteWatch, sliced, writeRule } from "../../src/http/answers.ts";
import { createPipelines, pipelineRule } from "../../src/http/pipelines.ts";
import { ManualClock } from "../support/clock.ts";

class FakeSocket extends EventEmitter {
  writableLength = 0;
  bytesWritten = 0;
  destroyed = false;
  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.emit("close");
  }
  /** As Node counts: what is pending is written too. */
  write(bytes: number): void {
    this.bytesWritten += bytes;
    this.writableLength += bytes;
  }
  take(bytes: number): void {
    this.writableLength -= bytes;
  }
}
const fakeSocket = () => new FakeSocket() as unknown as Socket & FakeSocket;

test("a large answer is written slice by slice, each when the one before was taken, without a copy", () => {
  const body = Buffer.from("0123456789");
  const written: Buffer[] = [];
  let taken: (() => void) | null = null;
  const res = {
    destroyed: false,
    write(slice: Buffer, callback: () => void) {
      written.push(slice);
      taken = callback;
    },
    end: (slice: Buffer) => void written.push(slice),
  };
  sliced(body, 4).pipe(res as unknown as ServerResponse);
  expect(written.map(String)).toEqual(["0123"]);
  const more = (): void => taken?.();
  more();
  more();
  expect(written.map(String)).toEqual(["0123", "4567", "89"]);
  expect(written.every((slice) => slice.buffer === body.buffer)).toBe(true);
});

test("a connection whose pending bytes make no progress for 30 s is closed; one that reads slowly, or owes nothing, is not", async () => {
  const clock = new ManualClock();
  const watch = createWriteWatch(clock);
  const [stalled, slow, idle] = [fakeSocket(), fakeSocket(), fakeSocket()];
  for (const socket of [stalled, slow, idle]) watch.add(socket);
  stalled.write(50_000);
  slow.write(50_000);
  for (let second = 0; second < 60; second += 20) {
    await clock.advance(20_000);
    slow.take(1000);
  }
  expect([stalled.destroyed, slow.destroyed, idle.destroyed]).toEqual([true, false, false]);
  slow.take(slow.writableLength);
  await clock.advance(300_000);
  expect(slow.destroyed).toBe(false);
  for (const socket of [slow, idle]) socket.destroy();
  await clock.advance(writeRule.everyMs);
  expect(clock.pending).toBe(0);
});

test("where unread answers fill their memory, those without progress are closed sooner", async () => {
  const clock = new ManualClock();
  const watch = createWriteWatch(clock, { ...writeRule, totalBytes: 100_000 });
  const [stalled, slow, small] = [fakeSocket(), fakeSocket(), fakeSocket()];
  for (const socket of [stalled, slow, small]) watch.add(socket);
  stalled.write(80_000);
  slow.write(80_000);
  await clock.advance(writeRule.everyMs);
  slow.take(1000);
  await clock.advance(writeRule.everyMs);
  expect([stalled.destroyed, slow.destroyed, small.destroyed]).toEqual([true, false, false]);
  small.write(1000);
  await clock.advance(2 * writeRule.everyMs);
  expect([slow.destroyed, small.destroyed], "there is memory again").toEqual([false, false]);
  watch.stop();
});

function pipelined() {
  const socket = fakeSocket();
  const pipelines = createPipelines();
  const run: number[] = [];
  const responses: EventEmitter[] = [];
  const enter = (n: number): void => {
    const res = new EventEmitter();
    responses.push(res);
    pipelines.enter({ socket } as unknown as IncomingMessage, res as unknown as ServerResponse, () =>
      run.push(n),
    );
  };
  return { socket, pipelines, run, responses, enter };
}

test("few pipelined requests run at a time, the next when an answer is out, in their order", () => {
  const { run, responses, enter, socket } = pipelined();
  const { running } = pipelineRule;
  for (let n = 0; n < running + 3; n++) enter(n);
  expect(run).toHaveLength(running);
  responses[0]?.emit("close");
  responses[1]?.emit("close");
  expect(run).toEqual(Array.from({ length: running + 2 }, (_, n) => n));
  socket.destroy();
  responses[2]?.emit("close");
  expect(run, "nothing begins for a client that has gone").toHaveLength(running + 2);
});

test("a connection that pipelines more than any client does is closed, and nothing more of it runs", () => {
  const { run, enter, socket } = pipelined();
  for (let n = 0; n < pipelineRule.all; n++) enter(n);
  expect(socket.destroyed).toBe(false);
  for (let n = 0; n < 100; n++) enter(n);
  expect([socket.destroyed, run.length]).toEqual([true, pipelineRule.running]);
});

test("requests one after the other are never delayed", () => {
  const { run, responses, enter, socket } = pipelined();
  for (let n = 0; n < 1000; n++) {
    enter(n);
    responses[n]?.emit("close");
  }
  expect([run.length, socket.destroyed]).toEqual([1000, false]);
});
