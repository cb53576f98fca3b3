// The endpoints of the specification of the API: each method and path with what it answers when it succeeds, and what
// holds for all of them. The list is written from the specification, and the last test holds the program to it.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { routesAsData } from "../support/program.ts";
import { TravelClock } from "../support/travel-clock.ts";
import { sound, startAsking, type Answer, type Asking } from "./asking.ts";

const clock = new TravelClock();
let api: Asking;
let lastIp = 0;
/** What stands in braces in a path. */
const made: Record<string, string> = {
  email: "gone%40one.test",
  domain: "new.test",
  pool: "pool-1",
  ip: "127.0.0.9",
};

beforeAll(async () => {
  api = await startAsking({ clock });
  made["message"] = (await api.ask("POST", "/v1/messages", { body: sound() })).json.id;
  const send_at = new Date(clock.now() + 3_600_000).toISOString();
  made["scheduled"] = (await api.ask("POST", "/v1/messages", { body: sound({ send_at }) })).json.id;
});
afterAll(() => api.stop());

/** A read and the conditional one after it; again where the program itself changed it a moment ago, as the check of a domain does. */
async function readTwice(path: string): Promise<[first: Answer, since: string, again: Answer]> {
  for (let tries = 1; ; tries++) {
    const first = await api.ask("GET", filled(path));
    const since = String(first.headers["last-modified"]);
    const again = await api.ask("GET", filled(path), { headers: { "if-modified-since": since } });
    if (tries === 10 || again.status !== 200) return [first, since, again];
    clock.skip(5_000);
  }
}

const hook = { url: "https://hooks.test/a", events: ["message.bounced"] };
const bulk = { emails: ["gone@one.test"] };

/** In the order in which they are asked: what is made above is read below, and removed at the end. */
const endpoints: [method: string, path: string, status: number, body?: unknown][] = [
  ["POST", "/v1/messages", 202, sound()],
  ["POST", "/v1/messages/batch", 200, { messages: [sound()] }],
  ["POST", "/v1/messages/validate", 200, sound()],
  ["GET", "/v1/messages", 200],
  ["GET", "/v1/messages/{message}", 200],
  ["GET", "/v1/messages/{message}/attempts", 200],
  ["GET", "/v1/messages/{message}/content", 200],
  ["POST", "/v1/messages/{scheduled}/cancel", 200],
  ["POST", "/v1/suppressions", 201, bulk],
  ["POST", "/v1/suppressions", 200, bulk],
  ["GET", "/v1/suppressions", 200],
  ["GET", "/v1/suppressions/{email}", 200],
  ["DELETE", "/v1/suppressions/{email}", 204],
  ["GET", "/v1/events", 200],
  ["GET", "/v1/stats", 200],
  ["GET", "/v1/stats/summary", 200],
  ["GET", "/v1/stats/timeseries", 200],
  ["GET", "/v1/stats/tags", 200],
  ["GET", "/v1/stats/domains", 200],
  ["GET", "/v1/stats/recipient_domains", 200],
  ["GET", "/v1/stats/providers", 200],
  ["GET", "/v1/stats/ips", 200],
  ["GET", "/v1/stats/ip_pools", 200],
  ["GET", "/v1/stats/bounces", 200],
  ["GET", "/v1/stats/webhooks", 200],
  ["POST", "/v1/webhooks", 201, hook],
  ["GET", "/v1/webhooks", 200],
  ["GET", "/v1/webhooks/{webhook}", 200],
  ["PATCH", "/v1/webhooks/{webhook}", 200, { active: false }],
  ["POST", "/v1/webhooks/{webhook}/test", 200],
  ["POST", "/v1/webhooks/{webhook}/rotate_secret", 200],
  ["POST", "/v1/webhooks/{webhook}/replay", 202],
  ["GET", "/v1/webhooks/{webhook}/deliveries", 200],
  ["DELETE", "/v1/webhooks/{webhook}", 204],
  ["POST", "/v1/ip_pools", 201, { name: "pool-1" }],
  ["GET", "/v1/ip_pools", 200],
  ["GET", "/v1/ip_pools/{pool}", 200],
  ["PATCH", "/v1/ip_pools/{pool}", 200, { description: "receipts" }],
  ["POST", "/v1/ip_pools/{pool}/ips", 201, { ip_address: "127.0.0.9" }],
  ["GET", "/v1/ips", 200],
  ["PATCH", "/v1/ip_pools/{pool}/ips/{ip}", 200, { status: "paused" }],
  ["DELETE", "/v1/ip_pools/{pool}/ips/{ip}", 204],
  ["DELETE", "/v1/ip_pools/{pool}", 204],
  ["POST", "/v1/ip-pools", 201, { name: "pool-1" }],
  ["GET", "/v1/ip-pools", 200],
  ["GET", "/v1/ip-pools/{pool}", 200],
  ["PATCH", "/v1/ip-pools/{pool}", 200, { description: null }],
  ["POST", "/v1/ip-pools/{pool}/ips", 201, { ip_address: "127.0.0.9" }],
  ["PATCH", "/v1/ip-pools/{pool}/ips/{ip}", 200, { weight: 2 }],
  ["DELETE", "/v1/ip-pools/{pool}/ips/{ip}", 204],
  ["DELETE", "/v1/ip-pools/{pool}", 204],
  ["POST", "/v1/domains", 201, { name: "new.test" }],
  ["GET", "/v1/domains", 200],
  ["GET", "/v1/domains/{domain}", 200],
  ["PATCH", "/v1/domains/{domain}", 200, { tracking: { opens: false } }],
  ["POST", "/v1/domains/{domain}/verify", 200],
  ["POST", "/v1/domains/{domain}/dkim/rotate", 200],
  ["DELETE", "/v1/domains/{domain}", 204],
];
const keyless: [path: string, type: RegExp][] = [
  ["/openapi.json", /^application\/json/],
  ["/docs", /^text\/html/],
  ["/errors/invalid_request", /^text\/html/],
  ["/healthz", /./],
  ["/readyz", /./],
];

const filled = (path: string): string =>
  path.replace(/\{(\w+)\}/g, (_, name: string) => made[name] ?? "none");
const limited = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "x-ratelimit-bucket"];

describe("an endpoint answers a right request", () => {
  test.each(endpoints)("%s %s with %i", async (method, path, status, body) => {
    const answer = await api.ask(method, filled(path), { body });
    expect([answer.status, status === 204 ? answer.text : ""], answer.text).toEqual([status, ""]);
    if (path === "/v1/webhooks" && method === "POST") made["webhook"] = answer.json.id;
    if (status !== 204) expect(answer.headers["content-type"]).toMatch(/^application\/json/);
    for (const name of [...limited, "x-request-id", "x-api-version-used"])
      expect(answer.headers, name).toHaveProperty(name);
    expect(answer.headers["x-request-id"]).toMatch(/^req_[0-9a-z]{26}$/);
    if (status === 202 && path === "/v1/messages") expect(answer.headers["location"]).toBeTruthy();
  });

  test.each(keyless)("GET %s without a key", async (path, type) => {
    const answer = await api.ask("GET", path, { key: null });
    expect([answer.status, answer.headers["content-type"]]).toEqual([200, expect.stringMatching(type)]);
  });
});

describe("what holds for every endpoint", () => {
  const unique = [...new Map(endpoints.map((row) => [`${row[0]} ${row[1]}`, row])).values()];
  const writing = unique.filter(([method]) => method === "POST" || method === "PATCH");
  const reading = unique.filter(([method]) => method === "GET");

  test.each(writing)("%s %s with another content type is 415", async (method, path) => {
    const headers = { "content-type": "text/plain" };
    const answer = await api.ask(method, filled(path), { body: "{}", headers });
    expect([answer.status, answer.json.code]).toEqual([415, "unsupported_media_type"]);
  });

  test.each(unique)("%s %s without a key is 401", async (method, path) => {
    const answer = await api.ask(method, filled(path), {
      key: null,
      headers: { "x-forwarded-for": `192.0.2.${++lastIp}` }, // 50 failures of one address would lock it
    });
    expect([answer.status, answer.json.error.code]).toEqual([401, "invalid_api_key"]);
  });

  test("a read is answered 304 where nothing has changed", async () => {
    const domain = await api.ask("POST", "/v1/domains", { body: { name: "new.test" } });
    const pool = await api.ask("POST", "/v1/ip_pools", { body: { name: "pool-1" } });
    const webhook = await api.ask("POST", "/v1/webhooks", { body: hook });
    await api.ask("POST", "/v1/suppressions", { body: bulk });
    expect([domain.status, pool.status, webhook.status]).toEqual([201, 201, 201]);
    made["webhook"] = webhook.json.id;
    clock.skip(120_000);
    for (const [, path] of reading) {
      const [first, since, again] = await readTwice(path);
      expect([path, first.status, Number.isNaN(Date.parse(since))], first.text).toEqual([path, 200, false]);
      expect([path, again.status, again.text]).toEqual([path, 304, ""]);
      for (const name of [...limited, "x-request-id", "x-api-version-used"])
        expect(again.headers, `${path} ${name}`).toHaveProperty(name);
      const long = { "if-modified-since": "Thu, 01 Jan 2015 00:00:00 GMT" };
      expect([path, (await api.ask("GET", filled(path), { headers: long })).status]).toEqual([path, 200]);
    }
  });

  test("HEAD is GET without a body, and OPTIONS is 405", async () => {
    for (const [, path] of reading) {
      const [get, head] = [await api.ask("GET", filled(path)), await api.ask("HEAD", filled(path))];
      expect([path, head.status, head.text]).toEqual([path, get.status, ""]);
      expect([path, head.headers["content-type"]]).toEqual([path, get.headers["content-type"]]);
      const options = await api.ask("OPTIONS", filled(path));
      expect([path, options.status]).toEqual([path, 405]);
    }
  });

  test("a method that a path does not have is 405, and Allow names those that it has", async () => {
    for (const path of new Set(unique.map(([, one]) => one))) {
      const has = unique.filter(([, one]) => one === path).map(([method]) => method);
      for (const method of ["GET", "POST", "PATCH", "DELETE", "PUT"].filter((one) => !has.includes(one))) {
        // A path without a POST of its own may be that of another name: /v1/messages/{id} and /v1/messages/batch.
        if (/^\/v1\/messages\/(batch|validate)$/.test(path) && method === "GET") continue;
        const answer = await api.ask(method, filled(path), { body: {} });
        expect([method, path, answer.status, answer.json.code]).toEqual([
          method,
          path,
          405,
          "method_not_allowed",
        ]);
        const allowed = String(answer.headers["allow"]).split(/, */);
        expect([path, has.every((one) => allowed.includes(one)), allowed.includes(method)]).toEqual([
          path,
          true,
          false,
        ]);
      }
    }
  });

  test("a path that there is none of is 404", async () => {
    for (const path of ["/v1", "/v1/keys", "/v1/nothing", "/v1/messages/x/y", "/v2/messages"]) {
      const answer = await api.ask("GET", path);
      expect([path, answer.status, answer.json.code]).toEqual([path, 404, "resource_not_found"]);
    }
  });

  test("the public API has these endpoints and no others", () => {
    const shape = (path: string): string => path.replace(/\{\w+\}/g, "{}");
    const wanted = unique.map(([method, path]) => `${method} ${shape(path)}`);
    const has = routesAsData()
      .filter(({ listeners, path }) => listeners !== "admin" && path.startsWith("/v1/"))
      .map(({ method, path }) => `${method} ${shape(path)}`);
    expect(new Set(has)).toEqual(new Set(wanted));
  });
});
