// Webhook endpoints over a real store.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Endpoint } from "../../src/model/webhook.ts";
import type { ManualClock } from "../support/clock.ts";
import { list, text } from "./harness.ts";
import { alphabetical, checkUrl, fields, startStored, type Stored } from "./stored.ts";

let http: Stored;
let clock: ManualClock;
let ask: Stored["call"];
let kicks = 0;
/** The types of event that webhooks were tested with. */
const tested: (string | undefined)[] = [];

beforeAll(async () => {
  http = await startStored(() => ({
    webhooks: {
      retryNow: () => void kicks++,
      checkUrl,
      test: (endpoint: Endpoint, type?: string) => {
        tested.push(type);
        return Promise.resolve({
          delivered: false,
          status: type === undefined ? 500 : null,
          durationMs: 12,
          failure: type === undefined ? null : "b.example does not resolve",
          eventId: endpoint.id.replace("whk", "evt"),
        });
      },
    },
  }));
  ({ clock, call: ask } = http);
});
afterAll(() => http.stop());
beforeEach(() => http.clock.advance(1000));

describe("webhooks", () => {
  test("the secret is shown once: 64 printable ASCII characters", async () => {
    const made = await ask("POST", "/v1/webhooks", {
      url: "https://hooks.example/in",
      events: ["message.bounced", "message.bounced"],
    });
    expect(made.status).toBe(201);
    expect(made.json["secret"]).toMatch(/^[\x21-\x7e]{64}$/);
    const id = text(made.json["id"]);
    expect(made.headers["location"]).toBe(`/v1/webhooks/${id}`);
    const { json, text: shown } = await ask("GET", `/v1/webhooks/${id}`);
    expect(shown).not.toContain(made.json["secret"]);
    expect(json).toEqual({
      id,
      url: "https://hooks.example/in",
      events: ["message.bounced"],
      all_events: false,
      description: null,
      active: true,
      format: "svc",
      secret_hint: text(made.json["secret"]).slice(-4),
      created_at: new Date(clock.now()).toISOString(),
      updated_at: new Date(clock.now()).toISOString(),
      last_success_at: null,
      last_failure_at: null,
      consecutive_failures: 0,
      failing_since: null,
    });
    const other = await ask("POST", "/v1/webhooks", { url: "https://hooks.example/in" });
    expect(list(other.json["events"])).toHaveLength(9);
    expect(other.json["secret"]).not.toBe(made.json["secret"]);
  });

  test("is changed, paused, resumed with a kick, tested and deleted", async () => {
    const { json } = await ask("POST", "/v1/webhooks", { url: "https://hooks.example/a", description: "x" });
    const path = `/v1/webhooks/${text(json["id"])}`;
    expect((await ask("PATCH", path, { active: false, description: null })).json).toMatchObject({
      active: false,
      description: null,
    });
    const before = kicks;
    expect((await ask("PATCH", path, { active: true, backlog: "discard" })).json).toMatchObject({
      active: true,
    });
    expect(kicks).toBe(before + 1);
    expect(
      (await ask("PATCH", path, { events: ["ip.delisted"], url: "https://b.example/" })).json,
    ).toMatchObject({
      events: ["ip.delisted"],
      url: "https://b.example/",
    });
    expect((await ask("PATCH", path, {})).status).toBe(200);
    expect((await ask("POST", `${path}/test`)).json).toMatchObject({
      delivered: false,
      status: 500,
      duration_ms: 12,
      error: null,
    });
    expect((await ask("POST", `${path}/test`, { event: "ip.delisted" })).json).toMatchObject({
      status: null,
      error: "b.example does not resolve",
    });
    expect(tested).toEqual([undefined, "ip.delisted"]);
    expect((await ask("DELETE", path)).status).toBe(204);
    expect((await ask("DELETE", path)).status).toBe(404);
    expect((await ask("POST", `${path}/test`)).status).toBe(404);
  });

  test.each([
    [{ url: "http://x.example/", events: [] }, ["events", "url"]],
    [{ url: "http://x.example/", evnts: [], events: ["lost"] }, ["events[0]", "evnts", "url"]],
    [{ url: "" }, ["url"]],
    [{ url: `https://x.example/${"a".repeat(2048)}`, description: "x".repeat(501) }, ["description", "url"]],
    [{ url: null, active: 1 }, ["active", "url"]],
    [{}, ["url"]],
  ])("%j is refused with every problem at once", async (body, expected) => {
    const answer = await ask("POST", "/v1/webhooks", body);
    expect([answer.status, fields(answer).toSorted(alphabetical)]).toEqual([422, expected]);
  });
});
