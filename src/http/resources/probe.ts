// POST /v1/probe, on the operator's socket only: the road of mail to a mailbox, up to the reply to RCPT. No message is
// sent. How: delivery/probe.ts.
import { z } from "zod";
import { Refusal } from "../../errors.ts";
import { parseAddress, rcptTo } from "../../mail/address.ts";
import { dialogueSides } from "../../model/attempt.ts";
import { bounceCategories, type Classification } from "../../model/classification.ts";
import { probeOutcomes } from "../../model/probe.ts";
import { outboundTlsModes } from "../../model/tls.ts";
import { count, ipAddress, smtpCode, smtpStatus, tlsSchema } from "../../value-schemas.ts";
import { viewOf } from "../codec.ts";
import type { RouteDeps } from "../deps.ts";
import { json, keepReply, route, type Route } from "../route.ts";
import { replyCode } from "../view-fields.ts";

const classifications = Object.keys(bounceCategories) as [Classification, ...Classification[]];

const probeSchema = z
  .strictObject({
    recipient: z.string(),
    domain: z.string(),
    mx_group: z
      .string()
      .nullable()
      .describe("The provider, or the registered domain, of its first MX host; null: it has none."),
    mx: z.array(
      z.strictObject({
        host: z.string(),
        preference: count,
        addresses: z.array(ipAddress),
        failure: z.string().nullable().describe("Why its addresses are not known."),
      }),
    ),
    tls_wanted: z.enum(outboundTlsModes).describe("What the operator asks of TLS there."),
    sending_ip: ipAddress.nullable(),
    host: z.string().nullable(),
    address: ipAddress.nullable(),
    tls: tlsSchema.nullable(),
    outcome: z
      .enum(probeOutcomes)
      .describe("accepted: the server takes the recipient; unreached: no server was asked."),
    classification: z.enum(classifications).nullable(),
    smtp_code: smtpCode.nullable(),
    smtp_status: smtpStatus.nullable(),
    smtp_response: z.string().describe("The server's words, or the program's own where none spoke."),
    dialogue: z.array(
      z.strictObject({ at_ms: z.number().min(0), from: z.enum(dialogueSides), text: z.string() }),
    ),
  })
  .meta({ id: "Probe" });

const probeView = viewOf(probeSchema, { smtp_code: replyCode });

const recipient = z
  .string()
  .max(1000)
  .transform((text, context) => {
    const address = parseAddress(text);
    if (address.ok) return { rcptTo: rcptTo(address.value), domain: address.value.ascii };
    context.addIssue({ code: "custom", message: address.issue });
    return z.NEVER;
  });

/** Less than a client of the command line waits. */
const probeTimeoutMs = 55_000;

export function probeRoutes({ pools, probe }: RouteDeps): Route[] {
  return [
    route({
      method: "POST",
      path: "/v1/probe",
      summary: "Try the road to a mailbox up to the reply to RCPT; no message is sent",
      answers: { 200: probeSchema },
      refuses: ["ip_pool_not_found", "conflict"],
      act: "probe",
      scopes: ["admin"],
      bucket: "default",
      listeners: "admin",
      query: z.object({}),
      auditFields: ["ip_pool"],
      body: z.strictObject({
        recipient,
        ip_pool: z
          .string()
          .max(64)
          .optional()
          .describe("The pool to leave from; the default pool if left out."),
      }),
      timeoutMs: probeTimeoutMs,
      upstream: true,
      async handle({ account, body, idempotent }) {
        const pool = pools.nameFor(account.key, body.ip_pool ?? null);
        if (pool === null) throw new Refusal("ip_pool_not_found", `There is no pool ${body.ip_pool ?? ""}.`);
        const result = await probe({ accountKey: account.key, pool, ...body.recipient });
        if (result === null) throw new Refusal("conflict", "Ten probes run. Try again when one has ended.");
        return keepReply(idempotent, json(200, probeView(result)));
      },
    }),
  ];
}
