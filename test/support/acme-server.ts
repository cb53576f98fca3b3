// An ACME server as a function of requests (RFC 8555), for what pebble does not do: hostile and wrong answers, renewal
// information, short lives. It verifies signatures and nonces, and signs real certificates.
import "reflect-metadata";
import { createPublicKey, verify, webcrypto, type JsonWebKey } from "node:crypto";
import * as x509 from "@peculiar/x509";
import type { Https, HttpsAnswer, HttpsRequest } from "../../src/https.ts";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const origin = "https://acme.test";

export interface Asked {
  method: string;
  path: string;
  /** The payload of a signed request; null: it has none. */
  payload: Record<string, unknown> | null;
}

export interface AcmeServer {
  https: Https;
  asked: Asked[];
  /** The names of each order, also of one that was refused. */
  ordered: string[][];
  /** Paths of requests that match, in order. */
  paths(form: RegExp): string[];
}

export interface AcmeServerOptions {
  /** In place of its own answer; null: its own. */
  answer?: (
    asked: Asked,
    times: number,
  ) => (Partial<Omit<HttpsAnswer, "body">> & { body?: string | object }) | Error | null;
  /** Of what it issues, milliseconds since 1970. */
  life?: () => { from: number; until: number };
  renewalInfo?: boolean;
}

export async function startAcmeServer(options: AcmeServerOptions = {}): Promise<AcmeServer> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const day = 86_400_000;
  const life = options.life ?? (() => ({ from: Date.now() - 3_600_000, until: Date.now() + 90 * day }));
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: "01",
    name: "CN=Fake ACME CA",
    notBefore: new Date(0),
    notAfter: new Date("2200-01-01"),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  const asked: Asked[] = [];
  const ordered: string[][] = [];
  const nonces = new Set<string>();
  const accounts = new Map<string, JsonWebKey>();
  let names: string[] = [];
  let proved = 0;
  let issued = 0;
  let chain = "";

  const issue = async (csr: string): Promise<void> => {
    const request = new x509.Pkcs10CertificateRequest(Buffer.from(csr, "base64url"));
    const { from, until } = life();
    issued += 1;
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: (0x80 + issued).toString(16),
      subject: "",
      issuer: ca.subject,
      notBefore: new Date(from),
      notAfter: new Date(until),
      signingAlgorithm: algorithm,
      publicKey: await request.publicKey.export(),
      signingKey: keys.privateKey,
      extensions: [
        new x509.SubjectAlternativeNameExtension(names.map((value) => ({ type: "dns", value }))),
        await x509.AuthorityKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    chain = `${certificate.toString("pem")}\n${ca.toString("pem")}\n`;
  };

  const own = async ({
    path,
    payload,
  }: Asked): Promise<{ status: number; headers?: object; body: string | object }> => {
    const order = {
      finalize: `${origin}/finalize`,
      authorizations: names.map((_, n) => `${origin}/authz/${n}`),
    };
    if (path === "/dir") {
      const known = ["newNonce", "newAccount", "newOrder", ...(options.renewalInfo ? ["renewalInfo"] : [])];
      return { status: 200, body: Object.fromEntries(known.map((name) => [name, `${origin}/${name}`])) };
    }
    if (path === "/newNonce") return { status: 200, body: "" };
    if (path === "/newAccount")
      return { status: 201, headers: { location: `${origin}/account/1` }, body: {} };
    if (path === "/newOrder") {
      names = namesOf(payload);
      [proved, chain] = [0, ""];
      return {
        status: 201,
        headers: { location: `${origin}/order` },
        body: { ...order, status: "pending", authorizations: names.map((_, n) => `${origin}/authz/${n}`) },
      };
    }
    if (path.startsWith("/challenge/")) {
      proved += 1;
      return { status: 200, body: {} };
    }
    if (path.startsWith("/authz/")) {
      const n = Number(path.slice(7));
      const challenge = { type: "http-01", token: `token-of-the-name-${n}`, url: `${origin}/challenge/${n}` };
      return {
        status: 200,
        body: {
          status: proved > n ? "valid" : "pending",
          identifier: { value: names[n] },
          challenges: [challenge],
        },
      };
    }
    if (path === "/finalize") {
      await issue(String(payload?.["csr"]));
      return { status: 200, body: {} };
    }
    if (path === "/order") {
      const status = chain !== "" ? "valid" : proved >= names.length ? "ready" : "pending";
      return { status: 200, body: { ...order, status, certificate: `${origin}/cert` } };
    }
    if (path === "/cert") return { status: 200, body: chain };
    return { status: 404, body: { type: "urn:ietf:params:acme:error:malformed", detail: "no such page" } };
  };

  return {
    asked,
    ordered,
    paths: (form) => asked.map(({ path }) => path).filter((path) => form.test(path)),
    async https(request) {
      request.signal.throwIfAborted();
      const { payload, fault } = signedBy(request, nonces, accounts);
      const one = { method: request.method, path: request.path, payload };
      asked.push(one);
      if (one.path === "/newOrder") ordered.push(namesOf(payload));
      const times = asked.filter(({ path }) => path === one.path).length;
      const nonce = `nonce-${asked.length}`;
      nonces.add(nonce);
      const changed = options.answer?.(one, times) ?? null;
      if (changed instanceof Error) throw changed;
      const said = fault === null ? await own(one) : { status: 400, body: { detail: fault } };
      const { body, headers, status } = { ...said, ...changed };
      return {
        status,
        headers: { "replay-nonce": nonce, ...headers },
        body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
      };
    },
  };
}

function namesOf(payload: Asked["payload"]): string[] {
  const identifiers = payload?.["identifiers"];
  return Array.isArray(identifiers) ? identifiers.map(({ value }: { value: string }) => value) : [];
}

/** The payload, and what is wrong with the signature; requests without one are GET and HEAD. */
function signedBy(
  { method, body, host, path }: HttpsRequest,
  nonces: Set<string>,
  accounts: Map<string, JsonWebKey>,
): { payload: Asked["payload"]; fault: string | null } {
  if (method !== "POST") return { payload: null, fault: null };
  const jws = JSON.parse(body?.toString() ?? "{}") as Record<"protected" | "payload" | "signature", string>;
  const decoded = (text: string): Record<string, unknown> =>
    JSON.parse(Buffer.from(text, "base64url").toString()) as Record<string, unknown>;
  const head = decoded(jws.protected);
  const payload = jws.payload === "" ? null : decoded(jws.payload);
  const kid = typeof head["kid"] === "string" ? head["kid"] : null;
  if (kid === null) accounts.set(`${origin}/account/1`, head["jwk"] as JsonWebKey);
  const jwk = kid === null ? (head["jwk"] as JsonWebKey) : accounts.get(kid);
  if (!jwk) return { payload, fault: `the account ${kid} is unknown` };
  if (!nonces.delete(String(head["nonce"]))) return { payload, fault: "the nonce is not ours" };
  if (head["url"] !== `https://${host}${path}`) return { payload, fault: "the url is another" };
  const key = createPublicKey({ key: jwk, format: "jwk" });
  const data = Buffer.from(`${jws.protected}.${jws.payload}`);
  const signature = Buffer.from(jws.signature, "base64url");
  const isRight = verify("sha256", data, { key, dsaEncoding: "ieee-p1363" }, signature);
  return { payload, fault: isRight ? null : "the signature is wrong" };
}
