// A customer's webhook receiver, written from the API reference alone (docs/events.md): it shares no
// code with the product, so that a mistake in signing cannot be made twice. HTTPS with a certificate of its own made
// at start; verifies the signature over the raw bytes in constant time, refuses timestamps more than five minutes off,
// and deduplicates on event_id. What it answers is a script that a test may change while it runs.
import "reflect-metadata";
import { createHmac, timingSafeEqual, webcrypto } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, writeFile } from "node:fs/promises";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { isIP } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as x509 from "@peculiar/x509";
import { removeFolder } from "./folders.ts";

const toleranceSeconds = 300;

export interface Received {
  event: string;
  eventId: string;
  attempt: number;
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  /** null: the signature is right and fresh; else what is wrong with it. */
  problem: string | null;
  /** Signed with the second of two secrets, by the header of the rotation overlap. */
  byPreviousSecret: boolean;
  /** An event_id seen before. */
  duplicate: boolean;
}

export interface Script {
  status: number;
  headers?: Record<string, string>;
  body?: string;
  /** Sends the head and part of a body, and never the end. */
  drip?: boolean;
}

/** "hang": takes the request and never answers; "drop": closes the connection. */
export type Reaction = Script | "hang" | "drop";

export interface WebhookReceiver {
  port: number;
  /** `https://localhost:PORT/hook` */
  url: string;
  identity: Identity;
  /** PEM file of the certificate, for `webhooks.ca_file`. */
  caFile: string;
  requests: Received[];
  /** TCP connections accepted so far. */
  connections(): number;
  /** The answer to every verified request from now on; 200 at first. An unverified one gets 401. */
  answer(react: (request: Received) => Reaction | Promise<Reaction>): void;
  /** Resolves once `count` requests have come in all. */
  received(count: number): Promise<Received[]>;
  stop(): Promise<void>;
}

export interface ReceiverOptions {
  secret: string;
  /** The receiver's own clock, milliseconds. */
  now(): number;
  certificate?: CertificateOptions | Identity;
  /** Highest TLS version offered. */
  maxVersion?: "TLSv1.1" | "TLSv1.3";
  host?: string;
  /** A free one where it is not given. */
  port?: number;
}

/** PEM texts of a key and its certificate. */
export interface Identity {
  key: string;
  cert: string;
}

export interface CertificateOptions {
  names?: string[];
  notAfter?: Date;
}

export async function startWebhookReceiver(options: ReceiverOptions): Promise<WebhookReceiver> {
  const given = options.certificate ?? {};
  const { key, cert } = "key" in given ? given : await selfSigned(given);
  const folder = await mkdtemp(join(tmpdir(), "webhook-receiver-"));
  const caFile = join(folder, "ca.pem");
  await writeFile(caFile, cert);

  const requests: Received[] = [];
  const seen = new Set<string>();
  let waiting: { count: number; resolve: (all: Received[]) => void }[] = [];
  let react: (request: Received) => Reaction | Promise<Reaction> = () => ({ status: 200 });
  let connections = 0;

  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const received = read(request, Buffer.concat(chunks), options, seen);
    requests.push(received);
    for (const one of waiting) if (requests.length >= one.count) one.resolve(requests);
    waiting = waiting.filter((one) => requests.length < one.count);
    const reaction =
      received.problem === null ? await react(received) : { status: 401, body: received.problem };
    if (reaction === "hang") return;
    if (reaction === "drop") return void request.socket.destroy();
    response.writeHead(reaction.status, reaction.headers);
    if (reaction.drip) return void response.write("x");
    response.end(reaction.body ?? "");
  };
  const server = createServer(
    {
      key,
      cert,
      minVersion: "TLSv1",
      maxVersion: options.maxVersion ?? "TLSv1.3",
      ciphers: "DEFAULT:@SECLEVEL=0",
    },
    (request, response) => {
      take(request, response).catch(() => response.destroy());
    },
  );
  server.on("connection", () => connections++);
  server.on("tlsClientError", () => undefined);
  server.listen(options.port ?? 0, options.host ?? "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;

  return {
    port,
    url: `https://localhost:${port}/hook`,
    identity: { key, cert },
    caFile,
    requests,
    connections: () => connections,
    answer: (next) => void (react = next),
    received: (count) =>
      requests.length >= count
        ? Promise.resolve(requests)
        : new Promise((resolve) => waiting.push({ count, resolve })),
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
      removeFolder(folder);
    },
  };
}

function read(request: IncomingMessage, body: Buffer, options: ReceiverOptions, seen: Set<string>): Received {
  const header = (name: string): string => String(request.headers[name] ?? "");
  const timestamp = header("x-svc-timestamp");
  const signed = Buffer.concat([Buffer.from(`${timestamp}.`), body]);
  const expected = `sha256=${createHmac("sha256", Buffer.from(options.secret, "ascii")).update(signed).digest("hex")}`;
  const current = equal(header("x-svc-signature"), expected);
  const previous = equal(header("x-svc-signature-previous"), expected);
  const eventId = header("x-svc-event-id");
  const problem = ((): string | null => {
    if (request.method !== "POST") return "not a POST";
    if (header("content-type") !== "application/json") return "not JSON";
    if (!/^\d+$/.test(timestamp)) return "no timestamp";
    if (Math.abs(options.now() / 1000 - Number(timestamp)) > toleranceSeconds) return "stale timestamp";
    if (!current && !previous) return "wrong signature";
    return eventIdOf(body) === eventId ? null : "event id of header and body differ";
  })();
  const duplicate = seen.has(eventId);
  if (problem === null) seen.add(eventId);
  return {
    event: eventNameOf(body),
    eventId,
    attempt: Number(header("x-svc-delivery-attempt")),
    path: request.url ?? "",
    headers: request.headers,
    body,
    problem,
    byPreviousSecret: !current && previous,
    duplicate,
  };
}

function equal(given: string, expected: string): boolean {
  const a = Buffer.from(given);
  const b = Buffer.from(expected);
  return a.length === b.length && timingSafeEqual(a, b);
}

function envelopeOf(body: Buffer): Record<string, unknown> {
  return JSON.parse(body.toString("utf8")) as Record<string, unknown>;
}
const eventIdOf = (body: Buffer): unknown => envelopeOf(body)["event_id"];
const eventNameOf = (body: Buffer): string => String(envelopeOf(body)["event"]);

/** A self-signed certificate for localhost and 127.0.0.1, good for an hour, unless told otherwise. */
export async function selfSigned({
  names = ["localhost", "127.0.0.1"],
  notAfter,
}: CertificateOptions): Promise<Identity> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const hour = 3_600_000;
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: "01",
    name: "CN=webhook receiver",
    notBefore: new Date(Date.now() - 48 * hour),
    notAfter: notAfter ?? new Date(Date.now() + hour),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) === 0 ? "dns" : "ip", value })),
      ),
    ],
  });
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey)).toString("base64");
  return {
    key: `-----BEGIN PRIVATE KEY-----\n${pkcs8}\n-----END PRIVATE KEY-----\n`,
    cert: certificate.toString("pem"),
  };
}
