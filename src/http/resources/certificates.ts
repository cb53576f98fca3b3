// /v1/certificates, on the operator's socket only: the certificates that the listeners serve, when they are renewed, and
// what became of that. Orders one at once; takes one of the operator's. What is served is tls/tls.ts's.
import { z } from "zod";
import { isoTime, isoTimeOrNull } from "../../clock.ts";
import type { Config, ListenAddress } from "../../config.ts";
import { Refusal } from "../../errors.ts";
import { certificateSources } from "../../model/tls.ts";
import type { CertificateState } from "../../tls/states.ts";
import { timestamp } from "../../value-schemas.ts";
import type { RouteDeps } from "../deps.ts";
import { json, keepReply, operatorRoute, route, type Route } from "../route.ts";

const certificateSchema = z
  .strictObject({
    name: z.string().describe("The host name, or a tracking name."),
    source: z
      .enum(certificateSources)
      .describe("files: tls.cert or tls.tracking_certificates; installed: by `svc cert install`."),
    names: z.string().nullable().describe("What it is valid for; null: there is none yet."),
    issuer: z.string().nullable(),
    serial: z.string().nullable(),
    not_before: timestamp.nullable(),
    not_after: timestamp.nullable(),
    listeners: z.array(z.string()).describe("Where it is served."),
    renew_at: timestamp
      .nullable()
      .describe(
        "When the next one is ordered; null: it is not ordered by the service, or there is none yet.",
      ),
    renewing: z.boolean().describe("It is being ordered, or about to be."),
    failures: z.int().min(0).describe("Orders that failed, in a row."),
    last_error: z.string().nullable(),
    next_attempt_at: timestamp.nullable().describe("When it is ordered next, if nothing else is in the way."),
  })
  .meta({ id: "Certificate" });

const certificatesSchema = z.strictObject({ data: z.array(certificateSchema) }).meta({ id: "Certificates" });

/** A chain has a few thousand characters. */
const pem = z.string().max(100_000);

export function certificateRoutes({ tls, config }: RouteDeps): Route[] {
  const body = async (): Promise<z.input<typeof certificatesSchema>> => ({
    data: (await tls.list()).map((one) => bodyOf(one, placesOf(config))),
  });
  return [
    route({
      ...operatorRoute,
      method: "GET",
      path: "/v1/certificates",
      summary: "List the certificates that the listeners serve",
      lastModifiedFrom: "always",
      answers: { 200: certificatesSchema },
      body: null,
      handle: async () => json(200, await body()),
    }),
    route({
      ...operatorRoute,
      method: "POST",
      path: "/v1/certificates/renew",
      summary: "Order a certificate from the ACME server at once",
      answers: { 202: certificatesSchema },
      refuses: ["conflict", "resource_not_found"],
      auditFields: ["name"],
      body: z.strictObject({
        name: z.string().min(1).max(253).optional().describe("The host's if left out; else a tracking name."),
      }),
      bodyOptional: true,
      async handle({ body: { name = null }, idempotent }) {
        const refused = await tls.renew(name?.toLowerCase() ?? null);
        if (refused)
          throw new Refusal(
            refused.reason === "unknown" ? "resource_not_found" : "conflict",
            sentence(refused.text),
          );
        return keepReply(idempotent, json(202, await body()));
      },
    }),
    route({
      ...operatorRoute,
      method: "POST",
      path: "/v1/certificates/install",
      summary: "Serve another certificate",
      answers: { 200: certificatesSchema },
      refuses: ["conflict"],
      auditFields: [],
      body: z.strictObject({
        certificate: pem.describe("The chain, PEM, the host's own certificate first."),
        private_key: pem.describe("Its key, PEM, without a passphrase."),
      }),
      async handle({ body: { certificate, private_key: key }, idempotent }) {
        try {
          await tls.install(certificate, key);
        } catch (error) {
          throw new Refusal("conflict", sentence(error instanceof Error ? error.message : String(error)));
        }
        return keepReply(idempotent, json(200, await body()));
      },
    }),
  ];
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

interface ServedAt {
  host: string[];
  tracking: string[];
}

function placesOf({ http, relay, inbound }: Config): ServedAt {
  const of = (name: string, listen: readonly ListenAddress[]): string[] =>
    listen.map((one) => `${name} ${"path" in one ? one.path : one.port}`);
  const api = of("http", http.listen);
  return {
    host: [
      ...api,
      ...of("smtp", relay.starttls),
      ...of("smtps", relay.implicitTls),
      ...of("inbound", inbound.listen),
    ],
    tracking: api,
  };
}

function bodyOf(state: CertificateState, places: ServedAt): z.input<typeof certificateSchema> {
  const { name, source, pair, isHost, renewAt, renewing, failures, error, nextAttemptAt } = state;
  return {
    name,
    source,
    names: pair?.leaf.subjectAltName ?? null,
    issuer: pair === null ? null : pair.leaf.issuer.split("\n").join(", "),
    serial: pair?.leaf.serialNumber.toLowerCase() ?? null,
    not_before: pair === null ? null : isoTime(pair.validFrom),
    not_after: pair === null ? null : isoTime(pair.validUntil),
    listeners: isHost ? places.host : places.tracking,
    renew_at: isoTimeOrNull(renewAt),
    renewing,
    failures,
    last_error: error,
    next_attempt_at: isoTimeOrNull(nextAttemptAt),
  };
}
