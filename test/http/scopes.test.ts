// Every route against every scope: what each may reach is said here by the path, so that a route that is added later
// is judged too. On the public listener no key of any scope reaches what is the operator's.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RouteDeps } from "../../src/http/deps.ts";
import type { Route } from "../../src/http/route.ts";
import { allRoutes } from "../../src/http/routes.ts";
import type { Scope } from "../../src/model/api-key.ts";
import { newDirectory, openSqlite } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { fake, startHttp, type Answer, type Harness } from "./harness.ts";

const routes = allRoutes(fake<RouteDeps>("deps", { config: fake("config", {}) }));
const scopes = ["send", "suppressions", "reporting", "admin"] as const;

/** Who may, but for admin, which may everything. */
function mayUse({ method, path }: Route): Scope[] {
  if (path.startsWith("/v1/messages"))
    return method === "GET" && !path.endsWith("/content") ? ["send", "reporting"] : ["send"];
  if (path.startsWith("/v1/suppressions")) return ["suppressions"];
  if (path.startsWith("/v1/events") || path.startsWith("/v1/stats")) return ["reporting"];
  return [];
}

let http: Harness;
const keys = new Map<Scope, string>();
beforeAll(async () => {
  const clock = new ManualClock();
  const high = { burst: 1e9, perSecond: 1e9 };
  const buckets = [
    "default",
    "messages-write",
    "messages-read",
    "events-read",
    "stats-read",
    "webhooks-write",
  ];
  const more = ["suppressions-write", "suppressions-list", "suppressions-read", "suppressions-delete"];
  http = await startHttp({
    opened: { store: await openSqlite(newDirectory(), clock), clock },
    config: { rates: Object.fromEntries([...buckets, ...more].map((name) => [name, high])) },
  });
  for (const scope of scopes) keys.set(scope, (await http.key(scope)).value);
});
afterAll(() => http.stop());

const ask = ({ method, path, body }: Route, scope: Scope): Promise<Answer> =>
  http.ask({
    method,
    path: path.replace(/\{\w+\}/g, "x"),
    key: keys.get(scope) ?? null,
    ...(body ? { body: {} } : {}),
  });

const guarded = routes.filter((route) => route.scopes !== "open" && route.listeners !== "admin");
const named = (list: Route[]): [string, Route][] =>
  list.map((route) => [`${route.method} ${route.path}`, route]);

describe("a route with a scope", () => {
  test.each(named(guarded))(
    "%s lets in those who may, and names what the others lack",
    async (_name, route) => {
      const may = mayUse(route);
      for (const scope of scopes) {
        const { status, json } = await ask(route, scope);
        const refused = status === 403 ? json["error"] : undefined;
        const wanted = scope === "admin" || may.includes(scope);
        expect([scope, refused?.["code"], refused?.["required_scope"]]).toEqual(
          wanted ? [scope, undefined, undefined] : [scope, "scope_insufficient", may[0] ?? "admin"],
        );
      }
    },
  );
});

describe("an operator's route", () => {
  const also = new Set(guarded.map(({ path }) => path));
  const shown = new Set(named(guarded).map(([name]) => name)); // some have more filters for the operator
  const own = routes.filter(
    ({ listeners, method, path }) => listeners === "admin" && !shown.has(`${method} ${path}`),
  );
  test.each(named(own))("%s is not there for any key", async (_name, route) => {
    const status = also.has(route.path) ? 405 : 404;
    for (const scope of scopes) expect([scope, (await ask(route, scope)).status]).toEqual([scope, status]);
  });
});
