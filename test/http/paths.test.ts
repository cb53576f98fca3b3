// One request, one reading of its path: no spelling gets by a key, and none reaches what another does not. And the headers
// that a browser needs to know.
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isBelowApi } from "../../src/http/paths.ts";
import { startHttp, type Harness } from "./harness.ts";

let http: Harness;
let key: string;
beforeAll(async () => {
  http = await startHttp({
    store: { listMessages: () => Promise.resolve({ rows: [], next: null, hasMore: false }) },
    config: {
      http: { listen: [{ host: "127.0.0.1", port: 0 }], trustedProxies: [] },
      rates: { unauthenticated: { burst: 10_000, perSecond: 10_000 } },
    },
  });
  key = (await http.key("admin")).value;
});
afterAll(() => http.stop());

function get(target: string, withKey: boolean): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = connect(http.port, "127.0.0.1", () => {
      const authorization = withKey ? `Authorization: Bearer ${key}\r\n` : "";
      socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\n${authorization}Connection: close\r\n\r\n`);
    });
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    socket.on("error", reject);
    socket.on("close", () => resolve({ status: Number(text.slice(9, 12)), text }));
  });
}

test.each([
  ["/v1/messages", 401, 200],
  ["/%76%31/messages", 401, 200],
  ["/v1/%6dessages", 401, 200],
  ["/v1/messages/", 401, 200],
  ["/x/../v1/messages", 401, 200],
  ["/x/%2e%2e/v1/messages", 401, 200],
  ["http://other.test/v1/messages", 401, 200],
  ["http://other.test/%76%31/messages", 401, 200],
  ["/V1/messages", 401, 404],
  ["//v1/messages", 401, 404],
  ["/v1//messages", 401, 404],
  ["/v1%2fmessages", 401, 404],
  ["/%2576%2531/messages", 401, 404],
  ["/v1/nothing", 401, 404],
  ["/v1;a=b/messages", 401, 404],
  ["/%76%31/%zz", 401, 400],
  ["/v1/%ff", 401, 400],
  ["/v1\\messages", 401, 400],
  ["/v1/messages#a", 401, 400],
  ["file:///v1/messages", 401, 400],
  ["/v10/messages", 404, 404],
  ["/", 404, 404],
  ["*", 404, 404],
  ["/health%7a", 200, 200],
  ["/healthz/", 200, 200],
])("GET %s is %i without a key and %i with one", async (target, without, withKey) => {
  expect([(await get(target, false)).status, (await get(target, true)).status]).toEqual([without, withKey]);
});

test("an encoded spelling of the API is known however it is written", () => {
  for (const path of ["/v1", "/V1", "/%76%31", "/%56%31/x", "/./v1/x", "//v1", "/v1%5Cx", "/%2576%2531"])
    expect([path, isBelowApi(path)]).toEqual([path, true]);
  for (const path of ["/", "/v2", "/v11/x", "/xv1", "/docs", "/errors/v1"])
    expect([path, isBelowApi(path)]).toEqual([path, false]);
});

test("every HTML page may stand in no frame, loads from nowhere else, and tells nobody where its reader came from", async () => {
  for (const path of ["/docs", "/errors/invalid_request"]) {
    const { headers } = await http.ask({ path, key: null });
    expect(headers["content-type"]).toMatch("text/html");
    const policy = String(headers["content-security-policy"]).split("; ");
    expect(policy).toEqual(
      expect.arrayContaining([
        "default-src 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
      ]),
    );
    expect([headers["x-content-type-options"], headers["referrer-policy"]]).toEqual([
      "nosniff",
      "no-referrer",
    ]);
  }
});

test("HSTS is said where the client came over TLS, and nowhere else", async () => {
  const hsts = "strict-transport-security";
  expect((await http.ask({ path: "/healthz", key: null })).headers[hsts]).toBeUndefined();
  const behindProxy = await startHttp({
    config: { http: { listen: [{ host: "127.0.0.1", port: 0 }], trustedProxies: ["127.0.0.1"] } },
  });
  const over = async (proto: string) =>
    (await behindProxy.ask({ path: "/healthz", key: null, headers: { "x-forwarded-proto": proto } })).headers[
      hsts
    ];
  expect([await over("https"), await over("http")]).toEqual(["max-age=31536000", undefined]);
  expect((await behindProxy.ask({ path: "/healthz", admin: true })).headers[hsts]).toBeUndefined();
  await behindProxy.stop();
});

test("open routes draw on a bucket of the source's own, which bad keys do not empty", async () => {
  const limited = await startHttp({
    config: { rates: { open: { burst: 3, perSecond: 1 }, unauthenticated: { burst: 2, perSecond: 1 } } },
  });
  const ask = async (path: string) => {
    const { status, headers } = await limited.ask({ path, key: null });
    return [status, headers["x-ratelimit-bucket"], headers["x-ratelimit-remaining"]];
  };
  for (let n = 0; n < 5; n++) await ask("/v1/messages");
  expect(await ask("/healthz")).toEqual([200, "open", "2"]);
  expect(await ask("/docs")).toEqual([200, "open", "1"]);
  expect(await ask("/errors/conflict")).toEqual([200, "open", "0"]);
  const refused = await limited.ask({ path: "/docs", key: null });
  expect([refused.status, refused.headers["retry-after"]]).toEqual([429, "1"]);
  expect(refused.json["error"]).toMatchObject({ code: "rate_limit_exceeded", bucket: "open" });
  for (let second = 0; second < 100; second++) {
    await limited.clock.advance(1000);
    expect((await ask("/healthz"))[0], "a health check each second").toBe(200);
  }
  await limited.stop();
});
