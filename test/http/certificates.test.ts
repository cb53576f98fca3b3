// /v1/certificates on the operator's socket: what is shown of a certificate, what is ordered, what is installed.
import { afterEach, expect, test } from "vitest";
import type { HttpDeps } from "../../src/http/deps.ts";
import { certificatePair } from "../../src/tls/files.ts";
import { createAuthority } from "../support/certificates.ts";
import { startHttp, type Harness } from "./harness.ts";

let http: Harness | null = null;
afterEach(() => http?.stop());

async function ask(method: string, path: string, tls: Partial<HttpDeps["tls"]>, body?: unknown) {
  http = await startHttp({ tls });
  return http.ask({ method, path, admin: true, ...(body === undefined ? {} : { body }) });
}
const none = {
  renewAt: null,
  nextAttemptAt: null,
  renewing: false,
  failures: 0,
  isGivenUp: false,
  error: null,
};

test("a certificate is shown with its names, issuer, life and listeners, and never with its key", async () => {
  const { chain, key } = await (await createAuthority("Some CA")).issue(["mail.acme.example"]);
  const pair = certificatePair(chain, key, { cert: "cert", key: "key" });
  const { status, json, text } = await ask("GET", "/v1/certificates", {
    list: async () => [
      { ...none, name: "mail.acme.example", isHost: true, source: "acme", pair, renewAt: 0 },
      {
        ...none,
        name: "t.b.test",
        isHost: false,
        source: "self-signed",
        pair: null,
        failures: 2,
        error: "dns: no",
      },
    ],
  });
  expect(status).toBe(200);
  expect(text).not.toContain("PRIVATE");
  expect(json).toMatchObject({
    data: [
      {
        name: "mail.acme.example",
        names: "DNS:mail.acme.example",
        issuer: "CN=Some CA",
        serial: "02",
        listeners: ["http 0", "smtps 465"],
        renew_at: "1970-01-01T00:00:00.000Z",
        last_error: null,
      },
      { name: "t.b.test", names: null, serial: null, not_after: null, listeners: ["http 0"], failures: 2 },
    ],
  });
});

test("a renewal is begun for the name that is given, and refused in the words of what refuses it", async () => {
  const names: (string | null)[] = [];
  const renew = async (name: string | null) => (names.push(name), null);
  const list = async () => [];
  expect((await ask("POST", "/v1/certificates/renew", { renew, list }, { name: "T.b.test" })).status).toBe(
    202,
  );
  await http?.stop();
  expect((await ask("POST", "/v1/certificates/renew", { renew, list })).status).toBe(202);
  expect(names).toEqual(["t.b.test", null]);
  for (const [reason, status] of [
    ["unknown", 404],
    ["refused", 409],
  ] as const) {
    await http?.stop();
    const refused = await ask("POST", "/v1/certificates/renew", {
      renew: async () => ({ reason, text: "not now" }),
      list,
    });
    expect([refused.status, refused.json]).toMatchObject([status, { detail: "Not now." }]);
  }
});

test("a certificate is installed; one that cannot be is refused with the reason", async () => {
  const body = { certificate: "chain", private_key: "key" };
  const installed: string[][] = [];
  const install = async (...texts: string[]) => void installed.push(texts);
  const list = async () => [];
  expect((await ask("POST", "/v1/certificates/install", { install, list }, body)).status).toBe(200);
  expect(installed).toEqual([["chain", "key"]]);
  await http?.stop();
  const fails = async () => Promise.reject(new Error("the certificate expired"));
  const refused = await ask("POST", "/v1/certificates/install", { install: fails, list }, body);
  expect([refused.status, refused.json]).toMatchObject([409, { detail: "The certificate expired." }]);
});
