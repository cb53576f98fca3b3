// The API's description of itself: two linters find nothing in it, it holds what the routes hold, and it and its page are
// served to anybody without a word from another host.
import { Validator } from "@seriousme/openapi-schema-validator";
import { execFile } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { errorCatalog } from "../../src/errors.ts";
import { eventTypes } from "../../src/events/catalog.ts";
import type { RouteDeps } from "../../src/http/deps.ts";
import { createDocument } from "../../src/http/openapi/document.ts";
import { allRoutes } from "../../src/http/routes.ts";
import { createConformance } from "../support/conformance.ts";
import { fake, startHttp, type Harness, type Json } from "./harness.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const routes = allRoutes(fake<RouteDeps>("deps", { config: { publicUrl: "" } as RouteDeps["config"] }));

let http: Harness;
let document: Json;
beforeAll(async () => {
  http = await startHttp({ config: { publicUrl: "https://mail.acme.example:8443" } });
  ({ json: document } = await http.ask({ path: "/openapi.json", key: null }));
});
afterAll(() => http.stop());

describe.each(["public", "admin"] as const)("the %s API's description", (name) => {
  const described = createDocument(routes, { listener: name, publicUrl: "https://mail.acme.example" });

  test("passes Redocly's recommended rules without a warning", async () => {
    const folder = mkdtempSync(join(tmpdir(), "svc-openapi-"));
    writeFileSync(join(folder, "openapi.json"), JSON.stringify(described));
    const environment = { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
    const redocly = [join(root, "node_modules/@redocly/cli/bin/cli.js"), "lint", "openapi.json"];
    const { stdout } = await run(process.execPath, [...redocly, "--extends=recommended", "--format=json"], {
      cwd: folder,
      env: environment,
    });
    expect(JSON.parse(stdout)).toMatchObject({ totals: { errors: 0, warnings: 0 }, problems: [] });
  });

  test("passes a second validator", async () => {
    expect(await new Validator().validate(structuredClone(described))).toEqual({ valid: true });
  });

  test("has every route that its listener serves, and no other", () => {
    const shown = routes
      .filter(({ listeners }) => listeners === "both" || listeners === name)
      .map(({ method, path }) => `${method} ${path}`);
    const told = Object.entries(described["paths"] as Record<string, object>).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(told.toSorted()).toEqual(shown.toSorted());
  });
});

test("is served to anybody, with the public address and every code of an error", () => {
  expect(document).toMatchObject({
    openapi: "3.1.0",
    info: { version: "2026-11" },
    servers: [{ url: "https://mail.acme.example:8443" }],
  });
  const codes = document["components"]?.["schemas"]?.["ErrorCode"]?.["enum"];
  expect(codes).toEqual(Object.keys(errorCatalog));
});

test("what only the operator's socket shows is told there alone", async () => {
  const { json } = await http.ask({ path: "/openapi.json", admin: true });
  expect(json["paths"]).toHaveProperty(["/v1/keys"]);
  expect(document["paths"]).not.toHaveProperty(["/v1/keys"]);
});

test("an operation says who may call it, how often, and all that can come back", () => {
  const { post } = document["paths"]?.["/v1/messages"] ?? {};
  expect(post).toMatchObject({
    operationId: "createMessage",
    security: [{ apiKey: [] }],
    "x-required-scope": "send",
    "x-rate-limit-bucket": "messages-write",
  });
  const statuses = [
    "202",
    "400",
    "401",
    "403",
    "405",
    "409",
    "413",
    "415",
    "422",
    "429",
    "500",
    "503",
    "504",
  ];
  expect(Object.keys(post?.["responses"] ?? {})).toEqual(statuses);
  expect(post?.["responses"]?.["202"]?.["headers"]).toHaveProperty("Location");
  expect(document["paths"]?.["/healthz"]?.["get"]?.["security"]).toEqual([]);
});

test("each event type is a webhook with the data of its own", () => {
  expect(Object.keys(document["webhooks"] ?? {})).toEqual(eventTypes);
});

test("an answer that departs from it is seen", () => {
  const conformance = createConformance(document);
  const headers = {
    "content-type": "application/json",
    "x-request-id": `req_${"0".repeat(26)}`,
    "x-api-version-used": "2026-11",
    "x-ratelimit-limit": "100",
    "x-ratelimit-remaining": "99",
    "x-ratelimit-reset": "1764234922",
    "x-ratelimit-bucket": "default",
    "last-modified": "Fri, 27 Nov 2026 09:15:22 GMT",
  };
  const good = { method: "GET", path: "/healthz", status: 200, headers, text: '{"status":"ok"}' };
  const { "x-request-id": _, ...nameless } = headers;
  const departures = [
    { status: 418 },
    { text: '{"status":"ill"}' },
    { text: '{"status":"ok","more":1}' },
    { headers: nameless },
    { headers: { ...headers, "x-ratelimit-limit": "many" } },
    { headers: { ...headers, allow: "GET" } },
    { headers: { ...headers, "content-type": "text/plain" } },
    { path: "/v1/nowhere" },
  ];
  expect(conformance.faultsOf(good)).toEqual([]);
  for (const departure of departures) {
    expect(conformance.faultsOf({ ...good, ...departure }), JSON.stringify(departure)).not.toEqual([]);
  }
});

test("its page and script come to anybody, load nothing from another host, and may not", async () => {
  const page = await http.ask({ path: "/docs", key: null });
  expect([page.status, page.headers["content-type"]]).toEqual([200, "text/html; charset=utf-8"]);
  const policy = String(page.headers["content-security-policy"]).split("; ");
  expect(policy).toContain("default-src 'none'");
  expect(policy.filter((rule) => /https?:|\*|-src .*unsafe-eval|script-src .*unsafe/.test(rule))).toEqual([]);
  const loaded = [...page.text.matchAll(/(?:src|href|spec-url)="([^"]*)"/g)].map((match) => match[1]);
  expect(loaded).toEqual(["data:,", "openapi.json", "openapi.json", "docs/redoc.js"]);

  const script = await http.ask({ path: "/docs/redoc.js", key: null });
  expect([script.status, script.headers["content-type"]]).toEqual([200, "text/javascript; charset=utf-8"]);
  expect(script.headers["cache-control"]).toMatch(/^public, max-age=\d+$/);
  expect(script.text).not.toContain("cdn.redoc");
  const head = await http.ask({ path: "/docs/redoc.js", key: null, method: "HEAD" });
  expect([head.text, head.headers["content-length"]]).toEqual(["", script.headers["content-length"]]);
});
