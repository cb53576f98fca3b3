import { expect, test } from "vitest";
import { createWriteQueue, type QueuedWrite } from "../../src/store/sqlite/engine/write-queue.ts";

interface Call extends QueuedWrite {
  name: string;
}

const call = (owner: number, n: number, bytes = 0): Call => ({
  owner,
  command: "settle",
  bytes,
  name: `${owner}.${n}`,
});

function waiting(counts: Record<number, number>) {
  const queue = createWriteQueue<Call>();
  for (const [owner, count] of Object.entries(counts))
    for (let n = 0; n < count; n++) queue.push(call(Number(owner), n));
  return queue;
}

const namesOf = (calls: Call[]): string[] => calls.map(({ name }) => name);

test("owners take queue, each one's calls in their order", () => {
  const queue = waiting({ 1: 3, 2: 1, 3: 2 });
  for (const owner of [1, 2, 3]) queue.measured({ owner, command: "settle" }, 0.05, 1);
  expect(namesOf(queue.take(0).calls)).toEqual(["1.0", "1.1", "1.2", "2.0", "3.0", "3.1"]); // as they came
  expect(queue.size).toBe(0);
  expect(queue.take(0).calls).toEqual([]);
});

test("a batch has what is written in ten milliseconds, or in as long as a commit takes, twenty at most", () => {
  const lengthAt = (commitMs: number): number => {
    const queue = waiting({ 1: 500 });
    queue.measured({ owner: 1, command: "settle" }, 0.5, 1);
    queue.committed(commitMs);
    return queue.take(0).calls.length;
  };
  expect([1, 15, 50].map(lengthAt)).toEqual([20, 30, 40]);
});

test("what a commit takes is what it took lately at the least: a long one wrote much", () => {
  const queue = waiting({ 1: 1000 });
  queue.measured({ owner: 1, command: "settle" }, 0.5, 1);
  queue.committed(12);
  queue.committed(100);
  expect(queue.take(0).calls).toHaveLength(25); // 12.88 ms
  queue.committed(1);
  expect(queue.take(0).calls).toHaveLength(20);
  for (let n = 0; n < 1000; n++) queue.committed(15); // the disk has become slow
  expect(queue.take(0).calls).toHaveLength(30);
});

test("what the writer's time did not suffice for comes next, each owner's in order, beside what came meanwhile", () => {
  const queue = waiting({ 1: 4, 2: 2 });
  for (const owner of [1, 2, 3]) queue.measured({ owner, command: "settle" }, 0.05, 1);
  const { calls } = queue.take(0);
  queue.push(call(3, 0));
  queue.putBack(calls.slice(2));
  expect(queue.size).toBe(5);
  expect(namesOf(queue.take(0).calls).toSorted()).toEqual(["1.2", "1.3", "2.0", "2.1", "3.0"]);
  expect(queue.size).toBe(0);
});

test("an owner with little in a batch goes before one with much: a batch that takes too long is cut at the other's", () => {
  const queue = waiting({ 1: 5000 });
  queue.measured({ owner: 1, command: "settle" }, 1, 1);
  queue.take(0);
  queue.push(call(2, 0));
  expect(namesOf(queue.take(0).calls)[0]).toBe("2.0");
});

test("what a call costs is its owner's of that command: cheap ones beside it say nothing", () => {
  const queue = createWriteQueue<Call>();
  queue.measured({ owner: 1, command: "settle" }, 2, 1);
  for (let n = 0; n < 50; n++) queue.measured({ owner: 1, command: "claim" }, 0.1, 1);
  for (let n = 0; n < 20; n++) queue.push(call(1, n));
  expect(queue.take(0).calls).toHaveLength(5);
});

test("the one call of an owner is in the next batch, however much another has waiting", () => {
  const queue = waiting({ 1: 5000 });
  queue.measured({ owner: 1, command: "settle" }, 1, 1);
  queue.take(0);
  queue.push(call(2, 0));
  expect(namesOf(queue.take(0).calls)).toContain("2.0");
});

test("where several accounts write a batch has half a millisecond, so that nobody waits long for another's", () => {
  const queue = waiting({ 1: 500, 2: 500 });
  for (const owner of [1, 2]) queue.measured({ owner, command: "settle" }, 0.05, 1);
  expect(queue.take(0).calls).toHaveLength(10);
  queue.committed(15);
  expect(queue.take(0).calls).toHaveLength(300);
});

test("an account that has written within the last second counts as writing, one that wrote before that does not", () => {
  const lengthAt = (nowMs: number): number => {
    const queue = waiting({ 2: 1 });
    queue.take(0);
    for (let n = 0; n < 500; n++) queue.push(call(1, n));
    return queue.take(nowMs).calls.length;
  };
  expect([900, 2500].map(lengthAt)).toEqual([5, 100]);
  const queue = waiting({ 2: 1 });
  queue.take(0);
  queue.push({ owner: "", command: "claim", bytes: 0, name: "none.0" });
  queue.take(1100);
  for (let n = 0; n < 500; n++) queue.push(call(1, n));
  expect(queue.take(1900).calls).toHaveLength(5); // 2 wrote in the second before this one
  expect(queue.take(3200).calls).toHaveLength(100);
});

test("accounts whose calls wait count as writing, however long ago they came or the last batch was", () => {
  const queue = waiting({ 1: 500, 2: 500 });
  for (const owner of [1, 2]) queue.measured({ owner, command: "settle" }, 0.05, 1);
  expect([50_000, 50_500, 60_000, 70_000].map((nowMs) => queue.take(nowMs).calls.length)).toEqual([
    10, 10, 10, 10,
  ]);
});

test("a batch is longer where many accounts wait: each has a fifth of a millisecond, five milliseconds at most", () => {
  const lengthOf = (owners: number): number => {
    const queue = createWriteQueue<Call>();
    for (let owner = 1; owner <= owners; owner++) {
      queue.measured({ owner, command: "settle" }, 0.0625, 1);
      for (let n = 0; n < 50; n++) queue.push(call(owner, n));
    }
    return queue.take(0).calls.length;
  };
  expect([2, 10, 25, 100].map(lengthOf)).toEqual([8, 30, 75, 81]);
});

test("a call that takes longer than a batch may goes alone", () => {
  const queue = waiting({ 1: 2 });
  queue.measured({ owner: 1, command: "settle" }, 400, 1);
  expect(namesOf(queue.take(0).calls)).toEqual(["1.0"]);
  expect(namesOf(queue.take(0).calls)).toEqual(["1.1"]);
});

test("one costly call does not end a batch: the others' go on, and its turn comes when its owner has saved enough", () => {
  const queue = waiting({ 1: 10_000, 2: 2 });
  queue.measured({ owner: 1, command: "settle" }, 0.1, 1);
  queue.measured({ owner: 2, command: "settle" }, 40, 1);
  const batches: string[][] = [];
  for (let i = 0; i < 200; i++) batches.push(namesOf(queue.take(0).calls));
  const quick = batches.filter((names) => names.every((name) => name.startsWith("1.")));
  expect(quick.every(({ length }) => length >= 4)).toBe(true);
  expect(batches.flat().filter((name) => name.startsWith("2."))).toEqual(["2.0", "2.1"]);
  expect(batches.flat().length).toBeGreaterThan(700);
});

test("what is of no account has half of the time beside many busy accounts", () => {
  const queue = createWriteQueue<Call>();
  queue.measured({ owner: "", command: "claim" }, 0.125, 1);
  for (let n = 0; n < 100; n++) queue.push({ owner: "", command: "claim", bytes: 0, name: `none.${n}` });
  for (let owner = 1; owner <= 200; owner++) for (let n = 0; n < 50; n++) queue.push(call(owner, n));
  const first = namesOf(queue.take(0).calls);
  expect(first.filter((name) => name.startsWith("none."))).toHaveLength(20);
});

test("a large call that no longer fits is the first of the next batch", () => {
  const queue = createWriteQueue<Call>();
  queue.push(call(1, 0, 3 * 1024 * 1024));
  queue.push(call(2, 0, 3 * 1024 * 1024));
  queue.push(call(3, 0));
  expect(namesOf(queue.take(0).calls)).toEqual(["1.0", "3.0"]);
  queue.push(call(1, 1, 3 * 1024 * 1024));
  expect(namesOf(queue.take(0).calls)).toEqual(["2.0"]);
});

test("a batch has 4 MB and 1,000 calls at most", () => {
  const queue = createWriteQueue<Call>();
  for (let n = 0; n < 3; n++) queue.push(call(1, n, 2 * 1024 * 1024));
  expect(queue.take(0).calls).toHaveLength(2);
  expect(queue.take(0).calls).toHaveLength(1);
  for (let n = 0; n < 1001; n++) queue.push(call(1, n));
  queue.measured({ owner: 1, command: "settle" }, 0.001, 1);
  expect(queue.take(0).calls).toHaveLength(1000);
});

test("what an owner's calls cost follows what they cost lately", () => {
  const queue = waiting({ 1: 1000 });
  queue.measured({ owner: 1, command: "settle" }, 10, 1);
  for (let n = 0; n < 100; n++) queue.measured({ owner: 1, command: "settle" }, 0.1, 1);
  expect(queue.take(0).calls.length).toBeGreaterThan(90);
});
