// SMTP credentials and API keys over a real store.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import type { ManualClock } from "../support/clock.ts";
import { list, text } from "./harness.ts";
import { startStored, type Stored } from "./stored.ts";

let http: Stored;
let store: Store;
let clock: ManualClock;
let accountKey: number;
let ask: Stored["call"];

beforeAll(async () => {
  http = await startStored();
  ({ store, clock, call: ask } = http);
  accountKey = http.account.key;
});
afterAll(() => http.stop());
beforeEach(() => http.clock.advance(1000));

describe("what only the operator sees", () => {
  const admin = (method: string, path: string, body?: unknown) => ask(method, path, body, { admin: true });

  test("SMTP credentials are made, listed, rotated and revoked", async () => {
    const made = await admin("POST", "/v1/smtp_credentials", { name: "shop" });
    expect(made.json).toMatchObject({
      name: "shop",
      username: http.account.id.replace("acct_", "smtp_"),
      test: false,
      status: "active",
    });
    const [id, username, password] = [
      text(made.json["id"]),
      text(made.json["username"]),
      text(made.json["password"]),
    ];
    const login = (secret: string) => http.access.authenticateSmtp(username, secret, "192.0.2.1");
    expect(await login(password)).toMatchObject({ account: { key: accountKey }, test: false });
    await expect(
      http.access.authenticateSmtp(`${username}_test`, password, "192.0.2.1"),
    ).rejects.toMatchObject({ code: "invalid_api_key" });

    const rotated = await admin("POST", `/v1/smtp_credentials/${id}/rotate`);
    expect(rotated.status).toBe(201);
    await expect(login(password)).rejects.toMatchObject({ code: "invalid_api_key" });
    const next = { id: text(rotated.json["id"]), password: text(rotated.json["password"]) };
    await login(next.password);
    expect((await admin("POST", `/v1/smtp_credentials/${id}/rotate`)).status).toBe(409);
    expect((await admin("POST", `/v1/smtp_credentials/${next.id}/revoke`)).json).toMatchObject({
      status: "revoked",
    });
    await expect(login(next.password)).rejects.toMatchObject({ code: "invalid_api_key" });
    expect((await admin("POST", "/v1/smtp_credentials/cred_none/revoke")).status).toBe(404);

    const listed = await admin("GET", "/v1/smtp_credentials");
    expect(new Map(list(listed.json["data"]).map((row) => [row["id"], row["status"]]))).toEqual(
      new Map([
        [id, "revoked"],
        [next.id, "revoked"],
      ]),
    );
    expect(listed.text).not.toContain(password);
  });

  test("an API key is not an SMTP password", async () => {
    const { value } = await http.key("admin");
    const name = http.account.id.replace("acct_", "smtp_");
    await expect(http.access.authenticateSmtp(name, value, "192.0.2.9")).rejects.toMatchObject({
      code: "invalid_api_key",
    });
  });
});

describe("a key's life", () => {
  test("an expired one is 401, and a use is written down at most once a minute", async () => {
    const { value, key } = await http.key("admin", { expiresAt: clock.now() + 5_000 });
    const use = async () => (await ask("GET", "/v1/domains", undefined, { key: value })).status;
    expect(await use()).toBe(200);
    const firstUse = clock.now();
    await clock.advance(4_000);
    expect(await use()).toBe(200);
    await store.noteUse({ apiKeys: [], smtpCredentials: [], at: 0 }); // whatever was being written is on disk after this
    const row = await store.apiKey(accountKey, key.id);
    expect(row?.lastUsedAt).toBe(firstUse);
    await clock.advance(1_000);
    expect(await use()).toBe(401);
  });
});
