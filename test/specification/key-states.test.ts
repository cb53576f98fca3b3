// The states of an API key and the rules of its life, of the specification of the API. Keys are the operator's: what the
// specification calls the dashboard is the command line, over the admin socket. How long the audit log keeps what it has
// is held by the tests of retention.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, scopes, sound, startAsking, type Asking } from "./asking.ts";

let api: Asking;
beforeAll(async () => void (api = await startAsking()));
afterAll(() => api.stop());

type Act = "revoke" | "disable" | "enable" | "rotate";
const act = (id: string, verb: Act, headers: Record<string, string> = {}) =>
  api.program.ask({ method: "POST", target: `/v1/keys/${id}/${verb}`, listener: "admin", headers });
const stateOf = async (id: string): Promise<string> =>
  (await api.program.admin("GET", `/v1/keys/${id}`)).status;
const use = async (key: string): Promise<[number, string | undefined]> => {
  const { status, json } = await api.ask("GET", "/v1/messages", { key });
  return [status, json.error?.code];
};

const works: [number, string | undefined] = [200, undefined];
const gone: [number, string | undefined] = [401, "invalid_api_key"];
const off: [number, string | undefined] = [403, "key_disabled"];

describe("a transition of an API key", () => {
  const rows: [acts: Act[], state: string, used: [number, string | undefined], last: number][] = [
    [[], "active", works, 201],
    [["revoke"], "revoked", gone, 200],
    [["disable"], "disabled", off, 200],
    [["disable", "enable"], "active", works, 200],
    [["disable", "revoke"], "revoked", gone, 200],
    [["enable"], "active", works, 200],
    [["disable", "disable"], "disabled", off, 200],
    [["revoke", "enable"], "revoked", gone, 409],
    [["revoke", "disable"], "revoked", gone, 409],
    [["revoke", "rotate"], "revoked", gone, 409],
    [["revoke", "revoke"], "revoked", gone, 200],
  ];
  test.each(rows)("created %j: %s", async (acts, state, used, last) => {
    const { id, key } = await api.newKey();
    const statuses = [201];
    for (const one of acts) statuses.push((await act(id, one)).status);
    expect([await stateOf(id), await use(key), statuses.at(-1)]).toEqual([state, used, last]);
  });

  test("a revocation applies from the very next request, however many are under way", async () => {
    const { id, key } = await api.newKey();
    expect(await use(key)).toEqual(works);
    const under = Array.from({ length: 30 }, () => api.ask("POST", "/v1/messages", { key, body: sound() }));
    expect((await act(id, "revoke")).status).toBe(200);
    expect(await Promise.all(Array.from({ length: 10 }, () => use(key)))).toEqual(Array(10).fill(gone));
    // Those that were let in are accepted in full, the others not at all.
    const answers = await Promise.all(under);
    for (const { status, json } of answers) {
      expect([202, 401]).toContain(status);
      if (status === 202) expect((await api.ask("GET", `/v1/messages/${json.id}`)).status).toBe(200);
    }
  });

  test("the audit log keeps a revocation with its time and its operator", async () => {
    const { id, key } = await api.newKey();
    const before = Date.now();
    await act(id, "revoke", { "x-svc-operator": "ann" });
    await use(key);
    const find = async (): Promise<{ at: string; actor: object } | undefined> =>
      (await api.program.admin("GET", "/v1/audit?limit=200")).data.find(
        (one: { action: string; target: string }) => one.target === id && one.action === "keys.revoke",
      );
    const entry = await eventually(find);
    expect(entry).toMatchObject({ actor: { kind: "operator", name: "ann" }, account: "default" });
    expect(Date.parse(entry.at)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(entry.at)).toBeLessThanOrEqual(Date.now());
  });
});

describe("a key's life", () => {
  test.each([...scopes])("is made with exactly one scope, chosen at its creation: %s", async (scope) => {
    const { id } = await api.newKey({ scope });
    expect(await api.program.admin("GET", `/v1/keys/${id}`)).toMatchObject({ scope, status: "active" });
    const answer = await api.program.ask({
      method: "PATCH",
      target: `/v1/keys/${id}`,
      listener: "admin",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ scope: "admin" }),
    });
    expect([answer.status, await api.program.admin("GET", `/v1/keys/${id}`)]).toMatchObject([422, { scope }]);
  });

  test.each([[undefined], [""], ["all"], [["send", "reporting"]], [null]])(
    "scope %j is refused",
    async (scope) => {
      const answer = await api.program.ask({
        method: "POST",
        target: "/v1/keys",
        listener: "admin",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ name: "x", scope }),
      });
      expect([answer.status, JSON.parse(answer.text).field]).toEqual([422, "scope"]);
    },
  );

  test("its value is random: 100 differ in every way that they can", async () => {
    const made = await Promise.all(Array.from({ length: 100 }, () => api.newKey({ test: false })));
    const values = made.map(({ key }) => key.slice("svc_live_".length));
    expect(new Set(values).size).toBe(100);
    for (const value of values) expect(value).toMatch(/^[0-9A-Za-z]{43,60}$/);
    expect(new Set(values.map((value) => value.slice(8, 24))).size).toBe(100);
    // A third of its places hold any of the 62 characters: not a counter, not a clock.
    for (const place of [10, 15, 20, 25, 30])
      expect(new Set(values.map((value) => value[place])).size).toBeGreaterThan(30);
  });

  test("its value is shown once, and only a hash is on disk", async () => {
    const { id, key } = await api.newKey();
    expect((await api.ask("POST", "/v1/messages", { key, body: sound() })).status).toBe(202);
    const secret = key.slice("svc_test_".length);
    const shown = [`/v1/keys/${id}`, "/v1/keys?limit=200", "/v1/audit?limit=200", "/v1/messages"];
    for (const path of shown)
      expect(JSON.stringify(await api.program.admin("GET", path))).not.toContain(secret);
    const files = readdirSync(api.program.dataDir, { recursive: true, withFileTypes: true }).filter((one) =>
      one.isFile(),
    );
    expect(files.length).toBeGreaterThan(0);
    for (const { parentPath, name } of files)
      expect([name, readFileSync(join(parentPath, name)).includes(secret)]).toEqual([name, false]);
  });

  test("of a rotation both are valid until the old one is revoked", async () => {
    const old = await api.newKey({ scope: "send", allow_ips: ["127.0.0.1"] });
    const made = await act(old.id, "rotate");
    const next: { id: string; key: string } = JSON.parse(made.text);
    expect([made.status, next]).toMatchObject([
      201,
      { scope: "send", allow_ips: ["127.0.0.1"], status: "active" },
    ]);
    expect(next.id).not.toBe(old.id);
    expect([await use(old.key), await use(next.key)]).toEqual([works, works]);
    await act(old.id, "revoke");
    expect([await use(old.key), await use(next.key)]).toEqual([gone, works]);
  });

  test("is not the API's to manage: no key of any scope reaches /v1/keys", async () => {
    for (const scope of scopes)
      for (const method of ["GET", "POST"])
        expect((await api.ask(method, "/v1/keys", { key: api.keys[scope], body: {} })).status).toBe(404);
  });
});
