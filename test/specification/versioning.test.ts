// The specification of the API, "Versioning".
import { afterAll, beforeAll, expect, test } from "vitest";
import { mail, startCustomer, type Answer, type Customer } from "./customer.ts";

let customer: Customer;
beforeAll(async () => {
  customer = await startCustomer();
});
afterAll(() => customer.stop());

const versionUsed = ({ headers }: Answer) => headers["x-api-version-used"];

test.each(["/v1/messages", "/v1/suppressions", "/v1/events", "/v1/stats", "/v1/webhooks", "/v1/ip_pools"])(
  "%s stands below /v1/, and nowhere else",
  async (path) => {
    expect((await customer.ask("GET", path)).status).toBe(200);
    const rest = path.slice("/v1".length);
    for (const other of [rest, `/v2${rest}`, `/v0${rest}`])
      expect((await customer.ask("GET", other)).status, other).toBe(404);
  },
);

test("a request may pin 2026-11, and without the header it is the newest, which is the same", async () => {
  for (const headers of [{}, { "x-api-version": "2026-11" }]) {
    const answer = await customer.ask("GET", "/v1/events", { headers });
    expect([answer.status, versionUsed(answer)]).toEqual([200, "2026-11"]);
    const sent = await customer.ask("POST", "/v1/messages", { key: "test", body: mail, headers });
    expect([sent.status, versionUsed(sent)]).toEqual([202, "2026-11"]);
  }
});

test.each(["2026-10", "2026-12", "2025-11", "2026-1", "2026-11-01", "latest", "1", "v1", ""])(
  "%j is 400 invalid_request that names the header and the versions that there are",
  async (version) => {
    for (const [method, path, body] of [
      ["GET", "/v1/events", undefined],
      ["POST", "/v1/messages", mail],
    ] as const) {
      const headers = { "x-api-version": version };
      const { status, json } = await customer.ask(method, path, { key: "test", body, headers });
      expect([status, json.code]).toEqual([400, "invalid_request"]);
      expect(json).toMatchObject({ field: "X-API-Version", supported_versions: ["2026-11"] });
    }
  },
);

test("the version that processed the request stands on every kind of answer", async () => {
  const since = { "if-modified-since": new Date(customer.clock.now() + 5000).toUTCString() };
  await customer.clock.advance(10_000);
  const add = { emails: ["v@far.test"] };
  const seen = new Map<number, string | string[] | undefined>();
  for (const answer of [
    await customer.ask("GET", "/v1/messages"),
    await customer.ask("POST", "/v1/suppressions", { body: add }),
    await customer.ask("POST", "/v1/messages", { key: "test", body: mail }),
    await customer.ask("DELETE", "/v1/suppressions/v@far.test"),
    await customer.ask("GET", "/v1/webhooks", { headers: since }),
    await customer.ask("GET", "/v1/messages?limit=0"),
    await customer.ask("GET", "/v1/messages", { key: null }),
    await customer.ask("GET", "/v1/events", { key: "send" }),
    await customer.ask("GET", "/v1/messages/msg_1"),
    await customer.ask("PUT", "/v1/messages"),
    await customer.ask("POST", "/v1/messages", { raw: "x", headers: { "content-type": "text/plain" } }),
    await customer.ask("POST", "/v1/messages", { body: {} }),
    await customer.ask("GET", "/healthz", { key: null }),
    await customer.ask("HEAD", "/v1/messages"),
  ])
    seen.set(answer.status, versionUsed(answer));
  expect(Object.fromEntries(seen)).toEqual(
    Object.fromEntries(
      [200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 415, 422].map((s) => [s, "2026-11"]),
    ),
  );
});
