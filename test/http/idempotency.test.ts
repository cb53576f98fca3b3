import { afterEach, expect, test } from "vitest";
import { Refusal } from "../../src/errors.ts";
import type { Acceptance } from "../../src/submission/submission.ts";
import { settle } from "../support/clock.ts";
import { acceptance, startHttp, type Harness } from "./harness.ts";

let http: Harness | null = null;
afterEach(async () => {
  await http?.stop();
  http = null;
});

interface Waiting {
  key: string | null;
  answer(): void;
  refuse(error: Error): void;
}

/** A submission that stores successes as the real one does, and answers when the test says so. */
async function start() {
  const stored = new Map<string, { fingerprint: Uint8Array; status: number; body: string; at: number }>();
  const sends: Waiting[] = [];
  const running = await startHttp({
    store: {
      idempotent: (account, test_, key, notBefore) => {
        const found = stored.get(`${account}:${test_}:${key}`);
        return Promise.resolve(found && found.at >= notBefore ? found : null);
      },
    },
    submission: {
      send: (sender, _request, _arrival, idempotency) =>
        new Promise<Acceptance>((resolve, reject) => {
          sends.push({
            key: idempotency?.key ?? null,
            answer() {
              const accepted = acceptance(sends.length);
              if (idempotency) {
                const record = { ...idempotency, status: 202, body: accepted.body, at: running.clock.now() };
                stored.set(`${sender.account.key}:${sender.test}:${idempotency.key}`, record);
              }
              resolve(accepted);
            },
            refuse: reject,
          });
        }),
    },
  });
  http = running;
  const post = (key: string | null, body: unknown, apiKey?: string) =>
    running.ask({
      method: "POST",
      path: "/v1/messages",
      body,
      headers: key === null ? {} : { "idempotency-key": key },
      ...(apiKey === undefined ? {} : { key: apiKey }),
    });
  const begun = async (count: number) => {
    while (sends.length < count) await settle();
    return sends[count - 1] as Waiting;
  };
  return { running, sends, post, begun };
}

test("the same request again is answered from what was stored, with a new request id", async () => {
  const { post, begun, sends } = await start();
  const first = post("k1", { a: 1 });
  (await begun(1)).answer();
  const one = await first;
  const two = await post("k1", { a: 1 });
  expect([two.status, two.text, two.headers["location"]]).toEqual([
    202,
    one.text,
    `/v1/messages/${acceptance().id}`,
  ]);
  expect(two.headers["idempotency-replayed"]).toBe("true");
  expect(one.headers["idempotency-replayed"]).toBeUndefined();
  expect(two.headers["x-request-id"]).not.toBe(one.headers["x-request-id"]);
  expect(sends).toHaveLength(1);
});

test("one byte of difference under the same key is 409", async () => {
  const { post, begun } = await start();
  const first = post("k1", { a: 1 });
  (await begun(1)).answer();
  await first;
  const other = await post("k1", { a: 2 });
  expect([other.status, other.json["code"]]).toEqual([409, "duplicate_idempotency_key"]);
});

test("what arrives while the first runs waits for it: the same gets its answer, another 409", async () => {
  const { post, begun, sends } = await start();
  const first = post("k1", { a: 1 });
  const sending = await begun(1);
  const [same, another] = [post("k1", { a: 1 }), post("k1", { a: 2 })];
  await settle();
  expect(sends).toHaveLength(1);
  sending.answer();
  expect((await first).status).toBe(202);
  expect((await same).headers["idempotency-replayed"]).toBe("true");
  expect((await another).status).toBe(409);
  expect(sends).toHaveLength(1);
});

test("a failure is not stored: the request that waited runs itself", async () => {
  const { post, begun } = await start();
  const first = post("k1", { a: 1 });
  const sending = await begun(1);
  const second = post("k1", { a: 1 });
  sending.refuse(new Refusal("sender_not_verified", "not yet"));
  expect((await first).status).toBe(422);
  (await begun(2)).answer();
  expect((await second).headers["idempotency-replayed"]).toBeUndefined();
  expect((await second).status).toBe(202);
});

test("a request that was given up on still holds its key until its work is over", async () => {
  const { post, begun, running, sends } = await start();
  const first = post("k1", { a: 1 });
  const sending = await begun(1);
  await running.clock.advance(30_000);
  expect((await first).status).toBe(504);
  const second = post("k1", { a: 1 });
  await settle();
  expect(sends).toHaveLength(1);
  sending.answer();
  expect((await second).headers["idempotency-replayed"]).toBe("true");
});

test("live and test keys of an account do not share a key, two live ones do", async () => {
  const { post, begun, running, sends } = await start();
  const [live, other, testing] = await Promise.all([
    running.key("send"),
    running.key("send"),
    running.key("send", { test: true }),
  ]);
  const first = post("k1", {}, live.value);
  (await begun(1)).answer();
  await first;
  expect((await post("k1", {}, other.value)).headers["idempotency-replayed"]).toBe("true");
  const tested = post("k1", {}, testing.value);
  (await begun(2)).answer();
  await tested;
  expect(sends).toHaveLength(2);
});

test("after 24 hours the key is free", async () => {
  const { post, begun, running, sends } = await start();
  const first = post("k1", {});
  (await begun(1)).answer();
  await first;
  await running.clock.advance(24 * 3_600_000 + 1);
  const again = post("k1", {});
  (await begun(2)).answer();
  expect((await again).status).toBe(202);
  expect(sends).toHaveLength(2);
});

test("a key is looked at before the shape, and not without one", async () => {
  const { post, begun } = await start();
  const first = post("k1", {});
  (await begun(1)).answer();
  await first;
  expect((await post("k1", [])).status).toBe(409);
  expect((await post(null, [])).status).toBe(422);
});

test.each(["", "a".repeat(256), "caf\u00e9"])("%j is not an idempotency key", async (key) => {
  const { post } = await start();
  const { status, json } = await post(key, {});
  expect([status, json["field"]]).toEqual([400, "Idempotency-Key"]);
});
