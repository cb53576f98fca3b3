// GET /v1/messages/{id}/attempts: every attempt at delivering a message, with its SMTP dialogue.
import { z } from "zod";
import { attemptOutcomes, dialogueSides, shownDecisions } from "../../model/attempt.ts";
import {
  count,
  emailAddress,
  idOf,
  ipAddress,
  smtpCode,
  smtpStatus,
  timestamp,
  tlsSchema,
} from "../../value-schemas.ts";
import { viewOf } from "../codec.ts";
import type { RouteDeps } from "../deps.ts";
import { json, route, type Route } from "../route.ts";
import { replyCode } from "../view-fields.ts";
import { messageOf, messageRead } from "./messages.ts";

const attemptSchema = z
  .strictObject({
    id: idOf("att"),
    recipient: emailAddress,
    attempt: z.int().min(1),
    started_at: timestamp,
    ended_at: timestamp.meta({
      description: "When the attempt ended; of an interrupted attempt, when the server started again.",
    }),
    sending_ip: ipAddress.nullable(),
    mx: z.array(z.strictObject({ host: z.string(), preference: count })),
    host: z.string().nullable(),
    address: ipAddress.nullable(),
    tls: tlsSchema.nullable(),
    outcome: z.enum(attemptOutcomes).meta({
      description:
        "interrupted: the server ended (a crash, kill -9) during the attempt; the next start makes the recipient due again.",
    }),
    ambiguous: z.boolean().meta({
      description:
        "The receiver may have a copy: the final dot was sent and no reply came, or the server ended during the attempt.",
    }),
    smtp_code: smtpCode.nullable(),
    smtp_status: smtpStatus.nullable(),
    smtp_response: z.string().nullable(),
    dialogue: z.array(
      z.strictObject({ at_ms: z.number().min(0), from: z.enum(dialogueSides), text: z.string() }),
    ),
    next_attempt_at: timestamp.nullable(),
    decided_by: z.enum(shownDecisions),
  })
  .meta({ id: "Attempt" });

const attemptsSchema = z.strictObject({ data: z.array(attemptSchema) }).meta({ id: "AttemptList" });

const attemptView = viewOf(attemptSchema, { smtp_code: replyCode });

export function attemptRoutes({ store }: RouteDeps): Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/messages/{id}/attempts",
      summary: "List the delivery attempts of a message, with their SMTP dialogue",
      answers: { 200: attemptsSchema },
      refuses: ["resource_not_found"],
      lastModifiedFrom: ["messages"],
      ...messageRead,
      async handle(call) {
        const { id } = await messageOf(store, call);
        return json(200, {
          data: (await store.attempts(call.account.key, id)).map((attempt) => attemptView(attempt)),
        });
      },
    }),
  ];
}
