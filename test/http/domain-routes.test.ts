// The routes of domains over a real store, with a fake of what asks the DNS.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ManualClock } from "../support/clock.ts";
import { list, startHttp } from "./harness.ts";
import { addDomain, fields, newDomain, startStored, type Stored } from "./stored.ts";

let http: Stored;
let clock: ManualClock;
let ask: Stored["call"];

beforeAll(async () => {
  http = await startStored((opened) => ({
    domains: {
      add: addDomain(opened),
      verify: (domain) =>
        Promise.resolve({ ...domain, status: "verified" as const, verifiedAt: clock.now() }),
    },
  }));
  ({ clock, call: ask } = http);
});
afterAll(() => http.stop());
beforeEach(() => http.clock.advance(1000));

describe("domains", () => {
  test("a domain is added, listed, verified and deleted, and its private keys stay inside", async () => {
    const made = await ask("POST", "/v1/domains", { name: "B\u00fccher.example" });
    expect([made.status, made.headers["location"]]).toEqual([201, "/v1/domains/xn--bcher-kva.example"]);
    expect(made.json).toMatchObject({
      name: "xn--bcher-kva.example",
      status: "pending",
      return_path_domain: "rp.xn--bcher-kva.example",
      records: [{ purpose: "spf", type: "TXT", required: true, status: "unchecked", found: [], issue: null }],
      verified_at: null,
    });
    const path = "/v1/domains/B%C3%BCCHER.example";
    const shown = await ask("GET", path);
    expect(shown.text).not.toMatch(/SECRET|private/i);
    expect((await ask("POST", "/v1/domains", { name: "xn--bcher-kva.example" })).status).toBe(409);
    expect((await ask("POST", `${path}/verify`)).json).toMatchObject({ status: "verified" });
    expect(list((await ask("GET", "/v1/domains")).json["data"]).map((row) => row["name"])).toContain(
      "xn--bcher-kva.example",
    );
    expect((await ask("DELETE", path)).status).toBe(204);
    expect((await ask("GET", path)).status).toBe(404);
  });

  test("the simulator's own domain is nobody's sender", async () => {
    const refused = await ask("POST", "/v1/domains", { name: "Simulator.SVC." });
    expect([refused.status, fields(refused)]).toEqual([422, ["name"]]);
  });

  test("a name that is none is 422 where it is given and 404 where it is asked for", async () => {
    expect(await ask("POST", "/v1/domains", { name: "no domain" })).toMatchObject({
      status: 422,
      json: { field: "name" },
    });
    expect((await ask("GET", "/v1/domains/no%20domain")).status).toBe(404);
  });

  test("a resolver that fails is 502, one that hangs 504 after ten seconds", async () => {
    const running = await startHttp({
      store: { domainByName: (account, name) => Promise.resolve({ ...newDomain(account, name, 0), key: 1 }) },
      domains: {
        verify: ({ name }) =>
          name === "hang.example" ? new Promise(() => undefined) : Promise.reject(new Error("SERVFAIL")),
      },
    });
    expect(await running.ask({ method: "POST", path: "/v1/domains/fail.example/verify" })).toMatchObject({
      status: 502,
      json: { code: "upstream_error" },
    });
    const asked = running.ask({ method: "POST", path: "/v1/domains/hang.example/verify" });
    while (running.clock.pending === 0) await new Promise((resolve) => setImmediate(resolve));
    await running.clock.advance(10_000);
    expect((await asked).status).toBe(504);
    await running.stop();
  });
});
