// The scopes of the specification of the API: every endpoint against a key of each scope and against none. Which scope
// grants what is written here from the specification; a route that is not in the table fails the last test.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { routesAsData } from "../support/program.ts";
import { scopes, sound, startAsking, type Asking, type Scope } from "./asking.ts";

let api: Asking;
beforeAll(async () => void (api = await startAsking()));
afterAll(() => api.stop());

/** Beside admin, which may everything; the first is what a refusal asks for. */
const grants: [endpoints: string[], by: Scope[]][] = [
  [
    [
      "POST /v1/messages",
      "POST /v1/messages/batch",
      "POST /v1/messages/validate",
      "POST /v1/messages/{id}/cancel",
      "GET /v1/messages/{id}/content",
    ],
    ["send"],
  ],
  [
    ["GET /v1/messages", "GET /v1/messages/{id}", "GET /v1/messages/{id}/attempts"],
    ["send", "reporting"],
  ],
  [
    [
      "POST /v1/suppressions",
      "GET /v1/suppressions",
      "GET /v1/suppressions/{email}",
      "DELETE /v1/suppressions/{email}",
    ],
    ["suppressions"],
  ],
  [
    [
      "GET /v1/events",
      "GET /v1/stats",
      "GET /v1/stats/summary",
      "GET /v1/stats/timeseries",
      "GET /v1/stats/tags",
      "GET /v1/stats/domains",
      "GET /v1/stats/recipient_domains",
      "GET /v1/stats/providers",
      "GET /v1/stats/ips",
      "GET /v1/stats/ip_pools",
      "GET /v1/stats/bounces",
      "GET /v1/stats/webhooks",
    ],
    ["reporting"],
  ],
  [
    [
      "POST /v1/webhooks",
      "GET /v1/webhooks",
      "GET /v1/webhooks/{id}",
      "PATCH /v1/webhooks/{id}",
      "DELETE /v1/webhooks/{id}",
      "POST /v1/webhooks/{id}/test",
      "POST /v1/webhooks/{id}/rotate_secret",
      "POST /v1/webhooks/{id}/replay",
      "GET /v1/webhooks/{id}/deliveries",
      "GET /v1/ips",
      ...["ip_pools", "ip-pools"].flatMap((pools) => [
        `GET /v1/${pools}`,
        `POST /v1/${pools}`,
        `GET /v1/${pools}/{name}`,
        `PATCH /v1/${pools}/{name}`,
        `DELETE /v1/${pools}/{name}`,
        `POST /v1/${pools}/{name}/ips`,
        `PATCH /v1/${pools}/{name}/ips/{ip}`,
        `DELETE /v1/${pools}/{name}/ips/{ip}`,
      ]),
      "GET /v1/domains",
      "POST /v1/domains",
      "GET /v1/domains/{name}",
      "PATCH /v1/domains/{name}",
      "DELETE /v1/domains/{name}",
      "POST /v1/domains/{name}/verify",
      "POST /v1/domains/{name}/dkim/rotate",
    ],
    [],
  ],
];
const matrix = grants.flatMap(([endpoints, by]) =>
  endpoints.flatMap((endpoint) =>
    [...scopes, null].map((scope): [string, Scope | null, Scope[]] => [endpoint, scope, by]),
  ),
);

describe("an endpoint and a scope", () => {
  test.each(matrix)("%s with %s", async (endpoint, scope, by) => {
    const [method = "", path = ""] = endpoint.split(" ");
    const key = scope === null ? null : api.keys[scope];
    const body = method === "POST" || method === "PATCH" ? { body: {} } : {};
    const answer = await api.ask(method, path.replace(/\{\w+\}/g, "nothing"), { key, ...body });
    const error = { request_id: answer.headers["x-request-id"], message: expect.any(String) };
    if (scope === null) {
      expect([answer.status, answer.json.error]).toEqual([401, { ...error, code: "invalid_api_key" }]);
    } else if (scope === "admin" || by.includes(scope)) {
      expect([400, 401, 403, 405, 500]).not.toContain(answer.status);
    } else {
      const refusal = { ...error, code: "scope_insufficient", required_scope: by[0] ?? "admin" };
      expect([answer.status, answer.json.error]).toEqual([403, refusal]);
      expect(answer.headers["content-type"]).toMatch(/^application\/json/);
    }
  });

  test("every endpoint of the public API is in the table", () => {
    const listed = grants.flatMap(([endpoints]) => endpoints);
    const routes = routesAsData().filter(
      ({ listeners, path }) => listeners !== "admin" && path.startsWith("/v1/"),
    );
    expect(new Set(routes.map(({ method, path }) => `${method} ${path}`))).toEqual(new Set(listed));
  });
});

describe("what a key beyond its scope asks for", () => {
  const attempts: [Scope, string, string, unknown, string][] = [
    ["reporting", "POST", "/v1/messages", sound({ subject: "never" }), "/v1/messages?subject=never"],
    ["send", "POST", "/v1/suppressions", { emails: ["never@one.test"] }, "/v1/suppressions"],
    ["suppressions", "POST", "/v1/webhooks", { url: "https://hooks.test/" }, "/v1/webhooks"],
    ["reporting", "POST", "/v1/domains", { name: "never.test" }, "/v1/domains?limit=200"],
  ];
  test.each(attempts)("is not done: %s %s %s", async (scope, method, path, body, list) => {
    expect((await api.ask(method, path, { key: api.keys[scope], body })).status).toBe(403);
    expect(JSON.stringify((await api.ask("GET", list)).json.data)).not.toMatch(/never|hooks/);
  });

  test("is not told whether it exists: an id of another's is refused like one that nobody has", async () => {
    const { id } = (await api.ask("POST", "/v1/messages", { body: sound() })).json;
    const told = async (path: string) => {
      const { error } = (await api.ask("GET", path, { key: api.keys.suppressions })).json;
      return [error.code, error.message];
    };
    expect(await told(`/v1/messages/${id}`)).toEqual(await told(`/v1/messages/msg_${"0".repeat(26)}`));
  });
});
