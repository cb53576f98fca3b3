// The specification of the API, "Idempotency", where one request comes after another: on every endpoint that changes
// something, for 24 hours. Requests at the same moment are idempotency-races.test.ts's.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TravelClock } from "../support/travel-clock.ts";
import { eventually, sound, startAsking, type Answer, type Asking } from "./asking.ts";

const hour = 3_600_000;
const clock = new TravelClock();
let api: Asking;
beforeAll(async () => void (api = await startAsking({ clock })));
afterAll(() => api.stop());

let n = 0;
const unique = (): string => `n${++n}`;
const post = async (path: string, body: unknown): Promise<Answer["json"]> => {
  const { status, json, text } = await api.ask("POST", path, { body });
  expect(status, text).toBeLessThan(300);
  return json;
};
const scheduled = () =>
  post("/v1/messages", sound({ send_at: new Date(clock.now() + hour).toISOString() })).then(({ id }) => id);
const webhook = () => post("/v1/webhooks", { url: "https://hooks.test/a" }).then(({ id }) => id);
const pool = () => post("/v1/ip_pools", { name: unique() }).then(({ name }) => name);
const domain = () => post("/v1/domains", { name: `${unique()}.test` }).then(({ name }) => name);
const suppressed = async () => {
  const email = `${unique()}@one.test`;
  await post("/v1/suppressions", { emails: [email] });
  return email;
};
const addressed = async () => {
  const name = await pool();
  const ip = `127.0.1.${++n}`;
  await post(`/v1/ip_pools/${name}/ips`, { ip_address: ip });
  return `${name}/ips/${ip}`;
};

/** What is asked, and another body for the same path: none where it takes none. */
type Row = [
  name: string,
  status: number,
  make: () => Promise<[path: string, body?: unknown, other?: unknown]>,
];
const rows: Row[] = [
  ["POST /v1/messages", 202, async () => ["/v1/messages", sound(), sound({ subject: "Other" })]],
  [
    "POST /v1/messages/batch",
    200,
    async () => ["/v1/messages/batch", { messages: [sound(), sound()] }, { messages: [sound()] }],
  ],
  [
    "POST /v1/messages/{id}/cancel",
    200,
    async () => [`/v1/messages/${await scheduled()}/cancel`, {}, { a: 1 }],
  ],
  [
    "POST /v1/suppressions",
    201,
    async () => ["/v1/suppressions", { emails: [`${unique()}@one.test`] }, { emails: ["other@one.test"] }],
  ],
  ["DELETE /v1/suppressions/{email}", 204, async () => [`/v1/suppressions/${await suppressed()}`]],
  [
    "POST /v1/webhooks",
    201,
    async () => ["/v1/webhooks", { url: "https://hooks.test/b" }, { url: "https://hooks.test/c" }],
  ],
  [
    "PATCH /v1/webhooks/{id}",
    200,
    async () => [`/v1/webhooks/${await webhook()}`, { description: "a" }, { description: "b" }],
  ],
  [
    "POST /v1/webhooks/{id}/rotate_secret",
    200,
    async () => [`/v1/webhooks/${await webhook()}/rotate_secret`, {}, { overlap_seconds: 1 }],
  ],
  [
    "POST /v1/webhooks/{id}/replay",
    202,
    async () => [`/v1/webhooks/${await webhook()}/replay`, { status: "all" }, {}],
  ],
  [
    "POST /v1/webhooks/{id}/test",
    200,
    async () => [`/v1/webhooks/${await webhook()}/test`, {}, { event: "ip.blacklisted" }],
  ],
  ["DELETE /v1/webhooks/{id}", 204, async () => [`/v1/webhooks/${await webhook()}`]],
  ["POST /v1/ip_pools", 201, async () => ["/v1/ip_pools", { name: unique() }, { name: unique() }]],
  [
    "PATCH /v1/ip_pools/{name}",
    200,
    async () => [`/v1/ip_pools/${await pool()}`, { description: "a" }, { description: "b" }],
  ],
  [
    "POST /v1/ip_pools/{name}/ips",
    201,
    async () => [
      `/v1/ip_pools/${await pool()}/ips`,
      { ip_address: `127.0.1.${++n}` },
      { ip_address: "127.0.1.250" },
    ],
  ],
  [
    "PATCH /v1/ip_pools/{name}/ips/{ip}",
    200,
    async () => [`/v1/ip_pools/${await addressed()}`, { weight: 2 }, { weight: 3 }],
  ],
  ["DELETE /v1/ip_pools/{name}/ips/{ip}", 204, async () => [`/v1/ip_pools/${await addressed()}`]],
  ["DELETE /v1/ip_pools/{name}", 204, async () => [`/v1/ip_pools/${await pool()}`]],
  [
    "POST /v1/domains",
    201,
    async () => ["/v1/domains", { name: `${unique()}.test` }, { name: `${unique()}.test` }],
  ],
  [
    "PATCH /v1/domains/{name}",
    200,
    async () => [
      `/v1/domains/${await domain()}`,
      { tracking: { opens: true } },
      { tracking: { opens: false } },
    ],
  ],
  ["POST /v1/domains/{name}/verify", 200, async () => [`/v1/domains/${await domain()}/verify`, {}, { a: 1 }]],
  [
    "POST /v1/domains/{name}/dkim/rotate",
    200,
    async () => [`/v1/domains/${await domain()}/dkim/rotate`, {}, { a: 1 }],
  ],
  ["DELETE /v1/domains/{name}", 204, async () => [`/v1/domains/${await domain()}`]],
];

describe("the same request with the same key", () => {
  test.each(rows)("%s: is answered as before, and another body is 409", async (name, status, make) => {
    const method = name.split(" ")[0] ?? "";
    const [path, body, other] = await make();
    const headers = { "idempotency-key": randomUUID() };
    const first = await api.ask(method, path, { body, headers });
    expect([first.status, first.headers["idempotency-replayed"]], first.text).toEqual([status, undefined]);
    const again = await api.ask(method, path, { body, headers });
    expect([again.status, again.text, again.headers["idempotency-replayed"]]).toEqual([
      status,
      first.text,
      "true",
    ]);
    expect(again.headers["x-request-id"]).not.toBe(first.headers["x-request-id"]);
    expect(again.headers["location"]).toBe(first.headers["location"]);
    if (body === undefined) return;
    const refused = await api.ask(method, path, { body: other, headers });
    expect([refused.status, refused.json.code]).toEqual([409, "duplicate_idempotency_key"]);
    expect(refused.headers["content-type"]).toMatch(/^application\/problem\+json/);
    const spaced = await api.ask(method, path, { body: `${JSON.stringify(body)} `, headers });
    expect(spaced.status).toBe(409); // it is the bytes that are compared
  });

  test("has no second effect: one message, one event, one entry of the list", async () => {
    const headers = { "idempotency-key": randomUUID() };
    const body = sound({ tags: ["once"] });
    for (let i = 0; i < 5; i++) await api.ask("POST", "/v1/messages", { body, headers });
    const events = await eventually(async () => {
      const { data } = (await api.ask("GET", "/v1/events?tag=once")).json;
      return data.length > 0 && data;
    });
    const { data } = (await api.ask("GET", "/v1/messages?tag=once")).json;
    expect([data.length, events.length]).toEqual([1, 1]);
  });

  test("with another path or method is 409 too", async () => {
    const headers = { "idempotency-key": randomUUID() };
    await api.ask("POST", "/v1/messages", { body: sound(), headers });
    const validate = await api.ask("POST", "/v1/messages/batch", { body: sound(), headers });
    expect([validate.status, validate.json.code]).toEqual([409, "duplicate_idempotency_key"]);
  });

  test("is answered for 24 hours, and done again after that", async () => {
    const headers = { "idempotency-key": randomUUID() };
    const ask = () => api.ask("POST", "/v1/messages", { body: sound(), headers });
    const first = await ask();
    clock.skip(24 * hour - 120_000);
    const late = await ask();
    expect([late.text, late.headers["idempotency-replayed"]]).toEqual([first.text, "true"]);
    clock.skip(121_000);
    const after = await ask();
    expect([after.status, after.headers["idempotency-replayed"]]).toEqual([202, undefined]);
    expect(after.json.id).not.toBe(first.json.id);
  });

  test("is answered by another key of the account, and by none of another kind or account", async () => {
    const headers = { "idempotency-key": randomUUID() };
    const first = await api.ask("POST", "/v1/suppressions", { body: { emails: ["k@one.test"] }, headers });
    const ask = (key: string) =>
      api.ask("POST", "/v1/suppressions", { body: { emails: ["k@one.test"] }, headers, key });
    const sibling = await ask(api.keys.suppressions);
    expect([sibling.text, sibling.headers["idempotency-replayed"]]).toEqual([first.text, "true"]);
    const live = await ask((await api.newKey({ test: false })).key);
    expect(live.headers["idempotency-replayed"]).toBeUndefined();
    await api.program.admin("POST", "/v1/accounts", { name: "other" });
    const { key } = await api.program.admin(
      "POST",
      "/v1/keys",
      { name: "k", scope: "admin", test: true },
      "other",
    );
    const stranger = await ask(key);
    expect([stranger.status, stranger.headers["idempotency-replayed"]]).toEqual([201, undefined]);
  });

  test("is done where what came before was refused: a failure is not kept", async () => {
    const headers = { "idempotency-key": randomUUID() };
    const refused = await api.ask("POST", "/v1/messages", {
      body: sound({ from: "a@nobody.test" }),
      headers,
    });
    const { status } = await api.ask("POST", "/v1/messages", { body: sound(), headers });
    expect([refused.status, status]).toEqual([422, 202]);
  });
});

describe("a key", () => {
  test.each([
    ["a UUID", randomUUID(), 202],
    ["one character", "k", 202],
    ["255 characters", "k".repeat(255), 202],
    ["printable ASCII of every kind", "a b!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~", 202],
    ["256 characters", "k".repeat(256), 400],
    ["nothing", "", 400],
    ["a character that is not ASCII", "k\u00e9", 400],
  ])("of %s", async (_name, key, status) => {
    const answer = await api.ask("POST", "/v1/messages", {
      body: sound(),
      headers: { "idempotency-key": key },
    });
    expect(answer.status).toBe(status);
    if (status === 400) expect(answer.json.code).toBe("invalid_request");
  });
});
