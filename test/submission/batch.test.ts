import { expect, test } from "vitest";
import { StoreUnavailable } from "../../src/store/store.ts";
import { http, liveSender, makeRig, makeSuppression, type Rig } from "./rig.ts";

interface Result {
  status: number;
  id?: string;
  error?: { code: string; errors?: { field: string }[]; suppressed_recipients?: unknown[] };
}

const mail = (over: Record<string, unknown> = {}) => ({
  from: "shop@ok.test",
  to: "a@x.test",
  subject: "Hi",
  text: "Hi",
  ...over,
});
const big = { text: "x".repeat(70_000) };
const idempotency = { key: "k", fingerprint: new Uint8Array(32) };

async function batch(rig: Rig, requests: unknown[], keyed = false): Promise<Result[]> {
  const done = await rig.submission.sendBatch(liveSender, requests, http, keyed ? idempotency : null);
  expect([done.status, done.replayed]).toEqual([200, false]);
  return (JSON.parse(done.body) as { data: Result[] }).data;
}

test("each message of a batch has its own result, in order", async () => {
  const rig = makeRig();
  rig.store.suppressions = [makeSuppression("gone@x.test")];
  const data = await batch(rig, [
    mail(),
    mail({ to: "no address", subject: 1 }),
    mail({ to: "gone@x.test" }),
    7,
    mail({ to: "b@x.test", send_at: "2026-11-27T10:00:00Z" }),
  ]);
  expect(data.map(({ status }) => status)).toEqual([202, 422, 422, 422, 202]);
  expect(data[0]).toMatchObject({ recipients: [{ email: "a@x.test", type: "to" }], send_at: null });
  expect(data[1]?.error?.errors?.map(({ field }) => field)).toEqual(["to", "subject"]);
  expect(data[2]?.error).toMatchObject({
    code: "recipient_suppressed",
    suppressed_recipients: [{ email: "gone@x.test" }],
  });
  expect(data[3]?.error?.code).toBe("validation_failed");
  expect(rig.store.accepted.map(({ message }) => message.id)).toEqual([data[0]?.id, data[4]?.id]);
});

test("an address that is suppressed only at the commit fails its own message", async () => {
  const rig = makeRig();
  rig.runner.slots = 5;
  rig.store.suppressedAtCommit = [makeSuppression("late@x.test")];
  const data = await batch(
    rig,
    [mail(), mail({ to: "late@x.test", ...big }), mail({ to: "b@x.test" })],
    true,
  );
  expect(data.map(({ status }) => status)).toEqual([202, 422, 202]);
  expect(data[1]?.error?.code).toBe("recipient_suppressed");
  expect(rig.store.accepted).toHaveLength(2);
  expect(rig.store.dropped).toHaveLength(1);
  expect(rig.runner.held.size).toBe(0);
  expect(JSON.parse(rig.store.batches.at(-1)?.body ?? "")).toEqual({ data });
});

test("a store that refuses lets go of all slots and, where it was full, of all content", async () => {
  for (const [why, dropped] of [
    ["full", 2],
    ["failed", 0],
  ] as const) {
    const rig = makeRig();
    rig.runner.slots = 5;
    rig.store.answer = new StoreUnavailable(why, "no");
    const requests = [mail(big), mail({ to: "b@x.test", ...big })];
    await expect(rig.submission.sendBatch(liveSender, requests, http, null)).rejects.toThrow("no");
    expect(rig.store.dropped).toHaveLength(dropped);
    expect(rig.runner.held.size).toBe(0);
  }
});

test("a batch of which nothing is acceptable still answers, and keeps its answer under a key only", async () => {
  const rig = makeRig();
  expect(await batch(rig, [{}, []])).toMatchObject([{ status: 422 }, { status: 422 }]);
  expect(rig.store.batches).toEqual([]);
  await batch(rig, [{}, []], true);
  expect(rig.store.batches).toHaveLength(1);
});

test("a check says what a send would and keeps nothing", async () => {
  const rig = makeRig();
  await rig.submission.check(liveSender, mail(big), http);
  await expect(rig.submission.check(liveSender, mail({ subject: "a\nb" }), http)).rejects.toMatchObject({
    code: "validation_failed",
  });
  await expect(rig.submission.check(liveSender, mail({ from: "a@no.test" }), http)).rejects.toMatchObject({
    code: "sender_not_verified",
  });
  expect([rig.store.spool.size, rig.store.asked.length]).toEqual([0, 0]);
});
