// The ACME client against servers that lie, stall and refuse; what a right one does is shown with pebble (test/peers).
import "reflect-metadata";
import { createHmac, generateKeyPairSync, webcrypto, X509Certificate } from "node:crypto";
import * as x509 from "@peculiar/x509";
import { expect, test } from "vitest";
import { createAcmeClient } from "../../../src/tls/acme/client.ts";
import { makeRequest, renewalId } from "../../../src/tls/acme/csr.ts";
import { AcmeError } from "../../../src/tls/acme/error.ts";
import type { ExternalAccount } from "../../../src/tls/acme/requests.ts";
import { certificatePair } from "../../../src/tls/files.ts";
import { startAcmeServer, type AcmeServerOptions } from "../../support/acme-server.ts";
import { ManualClock } from "../../support/clock.ts";

const { privateKey: key } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const problem = (type: string, detail: string) => ({ type: `urn:ietf:params:acme:error:${type}`, detail });

async function rig(options: AcmeServerOptions = {}, externalAccount: ExternalAccount | null = null) {
  const server = await startAcmeServer(options);
  const clock = new ManualClock();
  const tokens = new Map<string, string>();
  const seen: string[] = [];
  const stop = new AbortController();
  const client = createAcmeClient({
    https: server.https,
    directoryUrl: "https://acme.test/dir",
    key,
    email: "ops@a.test",
    externalAccount,
    answers: {
      add: (token, proof) => (seen.push(proof), void tokens.set(token, proof)),
      remove: (token) => void tokens.delete(token),
    },
    clock,
    signal: stop.signal,
  });
  const order = async (names = ["mail.a.test"], replaces: string | null = null) => {
    const { csr, key: own } = await makeRequest(names);
    return { chain: await client.order({ names, csr, replaces }), key: own };
  };
  const failure = async (names?: string[]): Promise<AcmeError> =>
    order(names).then(
      () => expect.fail("an order that was to fail was filled"),
      (error: unknown) => {
        expect(error).toBeInstanceOf(AcmeError);
        return error as AcmeError;
      },
    );
  return { server, clock, tokens, seen, client, order, failure, stop };
}

/** A server to which our key is new. */
const withoutAccount: AcmeServerOptions = {
  answer: ({ payload }) =>
    payload?.["onlyReturnExisting"] === true
      ? { status: 400, body: problem("accountDoesNotExist", "no such account") }
      : null,
};

test("a new account is bound to the external one: our public key, under the key that the server gave", async () => {
  const macKey = Buffer.from("a key of thirty-two octets, given");
  const { order, server } = await rig(withoutAccount, { keyId: "kid-1", macKey });
  await order();
  const made = server.asked.findLast(({ path }) => path === "/newAccount")?.payload;
  const bound = made?.["externalAccountBinding"] as Record<"protected" | "payload" | "signature", string>;
  const read = (text: string): unknown => JSON.parse(Buffer.from(text, "base64url").toString());
  expect(read(bound.protected)).toMatchObject({
    alg: "HS256",
    kid: "kid-1",
    url: expect.stringMatching(/^https:/),
  });
  const { kty, crv, x, y } = key.export({ format: "jwk" });
  expect(read(bound.payload)).toEqual({ kty, crv, x, y });
  const signature = createHmac("sha256", macKey).update(`${bound.protected}.${bound.payload}`);
  expect(bound.signature).toBe(signature.digest("base64url"));
});

test("an account that was bound before is used on, though the external key is spent by now", async () => {
  const { order, server } = await rig(
    {
      answer: ({ payload }) =>
        payload !== null && "externalAccountBinding" in payload
          ? { status: 403, body: problem("unauthorized", "unknown external account binding key") }
          : null,
    },
    { keyId: "kid-1", macKey: Buffer.from("a key of thirty-two octets, given") },
  );
  await order();
  await order();
  expect(server.asked.filter(({ path }) => path === "/newAccount").map(({ payload }) => payload)).toEqual([
    { onlyReturnExisting: true },
  ]);
});

test("that the server does not answer who has an account is no reason to make one", async () => {
  const { failure, server } = await rig(
    {
      answer: ({ path }) =>
        path === "/newAccount" ? { status: 500, body: problem("serverInternal", "later") } : null,
    },
    { keyId: "kid-1", macKey: Buffer.from("a key of thirty-two octets, given") },
  );
  expect(await failure()).toMatchObject({ type: "serverInternal", scope: "directory" });
  expect(server.paths(/newAccount/)).toHaveLength(1);
});

test("an order of two names proves both, one token at a time, and gives a certificate of our key", async () => {
  const { order, tokens, seen, server } = await rig();
  const { chain, key: own } = await order(["mail.a.test", "api.a.test"]);
  const pair = certificatePair(chain, own, { cert: "cert", key: "key" });
  expect(["mail.a.test", "api.a.test", "other.test"].map((name) => pair.covers(name))).toEqual([
    true,
    true,
    false,
  ]);
  expect(seen.map((proof) => proof.split(".")[0])).toEqual(["token-of-the-name-0", "token-of-the-name-1"]);
  expect(seen.every((proof) => /^[\w-]+\.[\w-]{43}$/.test(proof))).toBe(true);
  expect(tokens.size).toBe(0);
  expect(server.asked.find(({ path }) => path === "/newAccount")?.payload).toEqual({
    termsOfServiceAgreed: true,
    contact: ["mailto:ops@a.test"],
  });
});

test("the account is registered once, and once more by a server that has forgotten it", async () => {
  let forgets = false;
  const { order, server } = await rig({
    answer: ({ path }) => {
      if (path !== "/newOrder" || !forgets) return null;
      forgets = false;
      return { status: 400, body: problem("accountDoesNotExist", "no such account") };
    },
  });
  await order();
  await order();
  expect(server.paths(/newAccount/)).toHaveLength(1);
  forgets = true;
  await order();
  expect(server.paths(/newAccount/)).toHaveLength(2);
});

test("a rejected nonce is replaced, but not for ever", async () => {
  const some = await rig({
    answer: ({ path }, times) =>
      path === "/newOrder" && times <= 5 ? { status: 400, body: problem("badNonce", "try again") } : null,
  });
  await some.order();
  const all = await rig({
    answer: ({ path }) => (path === "/newOrder" ? { status: 400, body: problem("badNonce", "no") } : null),
  });
  expect((await all.failure()).message).toBe("badNonce: no");
  expect(all.server.paths(/newOrder/)).toHaveLength(10);
});

test("why a name was not proved is told, for that name", async () => {
  const { failure, tokens } = await rig({
    answer: ({ path }, times) =>
      path === "/authz/0" && times > 1
        ? {
            body: {
              status: "invalid",
              identifier: { value: "mail.a.test" },
              challenges: [
                { type: "http-01", error: problem("connection", "refused\u001b[31m by 192.0.2.1") },
              ],
            },
          }
        : null,
  });
  const error = await failure();
  expect(error.message).toBe("mail.a.test: connection: refused [31m by 192.0.2.1");
  expect(error.scope).toBe("name");
  expect(tokens.size).toBe(0);
});

test.each([
  ["limits of a name's domain", 429, problem("rateLimited", "too many"), "name", "rateLimited: too many"],
  ["CAA", 403, problem("caa", "not us"), "name", "caa: not us"],
  ["trouble of the server", 500, problem("serverInternal", "oops"), "directory", "serverInternal: oops"],
  ["a proxy's page", 502, "<html>bad gateway</html>", "directory", "status 502"],
  [
    "new terms",
    403,
    problem("userActionRequired", "read them"),
    "directory",
    "userActionRequired: read them",
  ],
  [
    "a revoked account",
    401,
    problem("unauthorized", "deactivated"),
    "directory",
    "unauthorized: deactivated",
  ],
] as const)("%s backs off what it is about", async (_, status, body, scope, text) => {
  const { failure } = await rig({ answer: ({ path }) => (path === "/newOrder" ? { status, body } : null) });
  const error = await failure();
  expect([error.scope, error.message]).toEqual([scope, text]);
});

test.each(["/dir", "/newNonce"])(
  "a limit on %s is one of the server for all names, and its Retry-After is kept to",
  async (at) => {
    const { failure } = await rig({
      answer: ({ path }) =>
        path === at
          ? {
              status: 429,
              headers: { "retry-after": "120", "replay-nonce": "" },
              body: problem("rateLimited", "slow down"),
            }
          : { headers: { "replay-nonce": "" } },
    });
    const error = await failure();
    expect([error.message, error.scope, error.retryAfterMs]).toEqual([
      "rateLimited: slow down",
      "directory",
      120_000,
    ]);
  },
);

test("a refused account is no failure of the name that was ordered", async () => {
  const { failure } = await rig({
    answer: ({ path }) =>
      path === "/newAccount" ? { status: 429, body: problem("rateLimited", "too many accounts") } : null,
  });
  expect((await failure()).scope).toBe("directory");
});

test("an authorization that has failed before is not asked for again", async () => {
  const { failure, server } = await rig({
    answer: ({ path }) =>
      path === "/authz/0" ? { body: { status: "deactivated", identifier: { value: "mail.a.test" } } } : null,
  });
  expect((await failure()).message).toBe("mail.a.test: the authorization is deactivated");
  expect(server.paths(/challenge/)).toEqual([]);
});

test("Retry-After is kept to, at most a week, whatever the server says", async () => {
  const asking = (value: string) =>
    rig({
      answer: ({ path }) =>
        path === "/newOrder"
          ? { status: 429, headers: { "retry-after": value }, body: problem("rateLimited", "later") }
          : null,
    });
  const waits: number[] = [];
  for (const value of ["120", "9999999999", "99999999999999999999", "-5", "soon", "x".repeat(10_000)])
    waits.push((await (await asking(value)).failure()).retryAfterMs);
  expect(waits).toEqual([120_000, 604_800_000, 0, 0, 0, 0]);
});

const elsewhere = [
  "https://other.test/x",
  "http://acme.test/x",
  "https://acme.test:444/x",
  "https://127.0.0.1/x",
  "file:///x",
  "",
  `https://acme.test/${"x".repeat(3_000)}`,
];
test.each(elsewhere)(
  "no request goes to an address that is not https on the server's own host: %s",
  async (url) => {
    for (const change of [
      { at: "/dir", body: { newNonce: url, newAccount: url, newOrder: url } },
      {
        at: "/newOrder",
        headers: { location: "https://acme.test/order" },
        status: 201,
        body: { authorizations: [url] },
      },
      { at: "/newOrder", headers: { location: url }, status: 201, body: { authorizations: [] } },
    ]) {
      const { at, ...answer } = change;
      const { failure, server } = await rig({ answer: ({ path }) => (path === at ? answer : null) });
      expect((await failure()).message).toMatch(
        /names an address that is not https on acme\.test|not an ACME directory/,
      );
      expect(server.paths(/^\/x/)).toEqual([]);
    }
  },
);

test.each([
  ["the directory is no JSON", "/dir", { body: "hello" }, /is not an ACME directory: it has no newNonce/],
  ["the directory is a list", "/dir", { body: [] as object }, /is not an ACME directory/],
  ["the account has no address", "/newAccount", { headers: {} }, /no address of the account/],
  ["the order has no authorizations", "/newOrder", { body: {} }, /is not an order/],
  [
    "the order has a thousand authorizations",
    "/newOrder",
    { body: { authorizations: Array.from({ length: 1_000 }, () => "https://acme.test/authz/0") } },
    /is not an order/,
  ],
  [
    "another name is to be proved",
    "/authz/0",
    { body: { status: "pending", identifier: { value: "bank.test" } } },
    /a proof of bank\.test, which was not ordered/,
  ],
  [
    "there is no HTTP-01",
    "/authz/0",
    { body: { status: "pending", identifier: { value: "mail.a.test" }, challenges: [{ type: "dns-01" }] } },
    /offers no HTTP-01 challenge/,
  ],
  [
    "the token is a path",
    "/authz/0",
    {
      body: {
        status: "pending",
        identifier: { value: "mail.a.test" },
        challenges: [
          { type: "http-01", token: "../../../../etc/passwd", url: "https://acme.test/challenge/0" },
        ],
      },
    },
    /offers no HTTP-01 challenge/,
  ],
] as const)("an answer that is none ends the order: %s", async (_, at, answer, words) => {
  const { failure, seen } = await rig({ answer: ({ path }) => (path === at ? answer : null) });
  expect((await failure()).message).toMatch(words);
  expect(seen).toEqual([]);
});

test.each(["", "a\r\nb", "x".repeat(1_000)])(
  "a server without a usable nonce ends the order: %j",
  async (nonce) => {
    const { failure, server } = await rig({ answer: () => ({ headers: { "replay-nonce": nonce } }) });
    expect((await failure()).message).toBe("acme.test gives no nonce");
    expect(server.asked.filter(({ method }) => method === "POST")).toEqual([]);
  },
);

test("a check that does not end is a failure of its name alone, with what the server says of it, and few requests", async () => {
  const { failure, server, clock, tokens } = await rig({
    answer: ({ path }) =>
      path === "/authz/0"
        ? {
            headers: { "retry-after": "0" },
            body: {
              status: "pending",
              identifier: { value: "mail.a.test" },
              challenges: [
                {
                  type: "http-01",
                  token: "token-of-the-name-0",
                  url: "https://acme.test/challenge/0",
                  error: problem("connection", "refused"),
                },
              ],
            },
          }
        : null,
  });
  const before = clock.now();
  let ended = false;
  const failing = failure().finally(() => (ended = true));
  // Beside the time of the whole order, a second timer waits only between two questions: time passes there alone, and not
  // while a request is signed.
  while (!ended) {
    await new Promise((next) => setImmediate(next));
    if (clock.pending > 1) await clock.advance(1_000);
  }
  const error = await failing;
  expect([error.scope, tokens.size]).toEqual(["name", 0]);
  expect(error.message).toBe("mail.a.test: connection: refused");
  expect(clock.now() - before).toBeLessThan(130_000);
  expect(server.paths(/authz/).length).toBeLessThan(125);
});

test("a stop of the program ends the order at once", async () => {
  const { client, stop, tokens } = await rig({
    answer: ({ path }) => (path === "/order" ? { body: { status: "pending" } } : null),
  });
  const { csr } = await makeRequest(["mail.a.test"]);
  const ordered = client.order({ names: ["mail.a.test"], csr, replaces: null });
  ordered.catch(() => undefined);
  for (let n = 0; n < 50; n++) await new Promise((next) => setImmediate(next));
  stop.abort(new Error("the program stops"));
  await expect(ordered).rejects.toThrow("the program stops");
  expect(tokens.size).toBe(0);
});

test("a name without a check over HTTP is in no other name's way", async () => {
  const { failure } = await rig({
    answer: ({ path }) =>
      path === "/authz/0" ? { body: { status: "pending", identifier: { value: "mail.a.test" } } } : null,
  });
  expect((await failure()).scope).toBe("name");
});

test("a server with renewal information is told what is replaced, and asked again without where it says no", async () => {
  let refuses = false;
  const { order, server, client } = await rig({
    renewalInfo: true,
    answer: ({ path, payload }) => {
      if (path.startsWith("/renewalInfo/"))
        return {
          status: 200,
          body: { suggestedWindow: { start: "2026-01-01T00:00:00Z", end: "2026-01-02T00:00:00Z" } },
        };
      return path === "/newOrder" && refuses && payload?.["replaces"] !== undefined
        ? { status: 409, body: problem("alreadyReplaced", "by another") }
        : null;
    },
  });
  const first = await order();
  const id = await renewalId(certificatePair(first.chain, first.key, { cert: "cert", key: "key" }).leaf);
  expect(id).toMatch(/^[\w-]{27}\.[\w-]+$/);
  expect(await client.hasRenewalInfo()).toBe(true);
  expect(await client.renewalWindow(id ?? "")).toEqual({
    from: Date.parse("2026-01-01T00:00:00Z"),
    until: Date.parse("2026-01-02T00:00:00Z"),
  });
  refuses = true;
  await order(["mail.a.test"], id);
  const orders = server.asked
    .filter(({ path }) => path === "/newOrder")
    .map(({ payload }) => payload?.["replaces"]);
  expect(orders).toEqual([undefined, id, undefined]);
});

test.each([
  [404, "malformed", "no such certificate"],
  [403, "unauthorized", "of another account"],
  [500, "serverInternal", "could not find an order for the given certificate"],
])(
  "a certificate of another account or authority is replaced all the same: %i %s",
  async (status, type, text) => {
    const { order, server } = await rig({
      renewalInfo: true,
      answer: ({ path, payload }) =>
        path === "/newOrder" && payload?.["replaces"] !== undefined
          ? { status, body: problem(type, text) }
          : null,
    });
    expect((await order(["mail.a.test"], "a.b")).chain).toContain("BEGIN CERTIFICATE");
    expect(server.paths(/newOrder/)).toHaveLength(2);
  },
);

test("a limit on orders is no reason to ask again without what is replaced", async () => {
  const { client, server } = await rig({
    renewalInfo: true,
    answer: ({ path }) =>
      path === "/newOrder" ? { status: 429, body: problem("rateLimited", "later") } : null,
  });
  const { csr } = await makeRequest(["mail.a.test"]);
  await expect(client.order({ names: ["mail.a.test"], csr, replaces: "a.b" })).rejects.toThrow("later");
  expect(server.paths(/newOrder/)).toHaveLength(1);
});

test("a renewal window that is none is not gone by", async () => {
  for (const body of [
    {},
    { suggestedWindow: { start: "x", end: "y" } },
    { suggestedWindow: { start: "2027-01-02", end: "2027-01-01" } },
  ]) {
    const { client } = await rig({
      renewalInfo: true,
      answer: ({ path }) => (path.startsWith("/renewalInfo/") ? { status: 200, body } : null),
    });
    expect(await client.renewalWindow("a.b")).toBeNull();
  }
});

test("the name of a certificate for renewal information is the one of the example in RFC 9773", async () => {
  const keys = await webcrypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, [
    "sign",
    "verify",
  ]);
  const made = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: "87654321",
    name: "CN=example",
    keys,
    signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
    extensions: [new x509.AuthorityKeyIdentifierExtension("69885b6b87464041e1b37b847ba0ae2cde01c8d4")],
  });
  expect(await renewalId(new X509Certificate(made.toString("pem")))).toBe(
    "aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE",
  );
});
