import { afterEach, expect, test } from "vitest";
import { Refusal } from "../../src/errors.ts";
import { list, startHttp, text, type Harness } from "./harness.ts";

let http: Harness | null = null;
let taken: unknown[][] = [];
afterEach(async () => {
  await http?.stop();
  http = null;
  taken = [];
});

async function start(): Promise<Harness> {
  http = await startHttp({
    store: { idempotent: () => Promise.resolve(null) },
    config: { rates: { "messages-write": { burst: 120, perSecond: 10 } } },
    submission: {
      sendBatch(_sender, requests) {
        taken.push(requests);
        return Promise.resolve({ status: 200, body: '{"data":[]}', replayed: false });
      },
      check: (_sender, request) =>
        typeof request === "object" && request && "from" in request
          ? Promise.resolve()
          : Promise.reject(new Refusal("sender_not_verified", "no", { field: "from" })),
    },
  });
  return http;
}
const batch = (to: Harness, count: number) =>
  to.ask({
    method: "POST",
    path: "/v1/messages/batch",
    body: { messages: Array.from({ length: count }, (_, n) => ({ n })) },
  });

test("a batch costs a token for each message, and is refused whole where there are fewer", async () => {
  const to = await start();
  const first = await batch(to, 100);
  expect([first.status, first.headers["x-ratelimit-remaining"]]).toEqual([200, "20"]);
  const second = await batch(to, 40);
  expect(second.status).toBe(429);
  expect(second.json["error"]).toMatchObject({ bucket: "messages-write", retry_after_seconds: 2 });
  expect(second.headers["retry-after"]).toBe("2");
  expect(taken).toHaveLength(1);
  await to.clock.advance(2100);
  expect((await batch(to, 40)).status).toBe(200);
});

test("messages pass as they came, whatever they are", async () => {
  const to = await start();
  const raw = '{"messages":[{"__proto__":{"a":1}},null,"x",[1]]}';
  await to.ask({ method: "POST", path: "/v1/messages/batch", raw });
  expect(JSON.stringify(taken)).toBe('[[{"__proto__":{"a":1}},null,"x",[1]]]');
});

test.each([
  [{}, "messages"],
  [{ messages: [] }, "messages"],
  [{ messages: {} }, "messages"],
  [{ messages: Array.from({ length: 101 }, () => ({})) }, "messages"],
  [{ messages: [{}], dry_run: true }, "dry_run"],
])("%# is not a batch", async (body, field) => {
  const to = await start();
  const { status, json } = await to.ask({ method: "POST", path: "/v1/messages/batch", body });
  expect([status, list(json["errors"]).map((row) => text(row["field"]))]).toEqual([422, [field]]);
  expect(taken).toEqual([]);
});

test("validate says what a send would", async () => {
  const to = await start();
  const ask = (body: unknown) => to.ask({ method: "POST", path: "/v1/messages/validate", body });
  expect(await ask({ from: "a@ok.test" })).toMatchObject({ status: 200, text: '{"valid":true}' });
  expect(await ask({})).toMatchObject({ status: 422, json: { code: "sender_not_verified" } });
});

test("a key that may not send may neither send a batch nor validate", async () => {
  const to = await start();
  const { value } = await to.key("reporting");
  for (const path of ["/v1/messages/batch", "/v1/messages/validate"]) {
    const { status, json } = await to.ask({ method: "POST", path, key: value, body: {} });
    expect([status, json["error"]?.["required_scope"]]).toEqual([403, "send"]);
  }
});
