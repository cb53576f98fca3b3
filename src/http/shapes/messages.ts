// What /v1/messages takes and answers. The fields of a send are submission's to judge (submission/shape.ts, fields.ts);
// here their limits are written down for a reader, and hold nobody.
import { z } from "zod";
import { attemptOutcomes, dialogueSides, shownDecisions } from "../../model/attempt.ts";
import { messageSources, messageStatuses } from "../../model/message.ts";
import { acceptedStates, recipientStates, recipientTypes } from "../../model/recipient.ts";
import { messageFields } from "../../submission/shape.ts";
import type { SendAnswer } from "../../submission/submission.ts";
import {
  count,
  emailAddress,
  idOf,
  ipAddress,
  list,
  smtpCode,
  smtpStatus,
  timestamp,
  tlsShape,
} from "./common.ts";

const address = {
  examples: ["Shop <info@shop.example>", { email: "info@shop.example", name: "Shop" }],
};
const several = (words: string) => ({ description: words, examples: ["someone@example.net"] });

/** The body of a send. */
export const messageRequestShape = z
  .strictObject({
    from: messageFields.from.meta({
      description: "The sender; its domain must be verified. `a@x`, `Name <a@x>` or `{email, name}`.",
      ...address,
    }),
    to: messageFields.to.meta(
      several("At least one. At most 50 recipients over to, cc and bcc; duplicates are folded."),
    ),
    cc: messageFields.cc.meta(several("Copies, named in the header.")).optional(),
    bcc: messageFields.bcc.meta(several("Copies that no header names.")).optional(),
    reply_to: messageFields.reply_to.meta(several("At most 50.")).optional(),
    subject: messageFields.subject.meta({ description: "No CR, LF or NUL.", maxLength: 998 }),
    html: messageFields.html.meta({ description: "One of html and text is required." }).optional(),
    text: messageFields.text.meta({ description: "One of html and text is required." }).optional(),
    auto_text: messageFields.auto_text
      .meta({ description: "Of html alone a text part is made.", default: true })
      .optional(),
    headers: messageFields.headers
      .meta({
        description: "At most 50 fields, 8 KB; not those that the service writes itself.",
        maxProperties: 50,
      })
      .optional(),
    attachments: messageFields.attachments
      .meta({
        description:
          "`content` is base64. With a content_id it is shown in the text (`cid:`). Executable extensions are refused.",
        maxItems: 50,
      })
      .optional(),
    ip_pool: messageFields.ip_pool.meta({ description: "The name of a pool of the account." }).optional(),
    tags: messageFields.tags
      .meta({ description: "At most 10 of 128 characters.", maxItems: 10, examples: [["newsletter"]] })
      .optional(),
    metadata: messageFields.metadata
      .meta({
        description: "At most 20 strings; they come back in every event of the message.",
        maxProperties: 20,
        examples: [{ order: "4711" }],
      })
      .optional(),
    send_at: messageFields.send_at
      .meta({
        description: "ISO 8601 with a zone, at most 72 hours ahead; in the past: at once.",
        format: "date-time",
        examples: ["2026-12-01T08:00:00Z"],
      })
      .optional(),
    track_opens: messageFields.track_opens.meta({ description: "The same as tracking.opens." }).optional(),
    track_clicks: messageFields.track_clicks.meta({ description: "The same as tracking.clicks." }).optional(),
    tracking: messageFields.tracking
      .meta({ description: "`tracking_disabled` where the domain has it off." })
      .optional(),
  })
  .meta({
    id: "MessageRequest",
    // One of html and text; as an anyOf, generators of types would lose the fields over it.
    not: {
      allOf: ["html", "text"].map((name) => ({ not: { properties: { [name]: {} }, required: [name] } })),
    },
    examples: [
      {
        from: "Shop <info@shop.example>",
        to: ["someone@example.net"],
        subject: "Your order 4711",
        html: "<p>It is on its way.</p>",
        tags: ["order"],
      },
    ],
  });

export const batchRequestShape = z
  .strictObject({
    messages: z
      .array(messageRequestShape)
      .min(1)
      .max(100)
      .meta({ description: "Each is judged by itself: one that is refused does not stop the others." }),
  })
  .meta({ id: "MessageBatchRequest" });

const recipientType = z.enum(recipientTypes);

const acceptedFields = {
  id: idOf("msg"),
  status: z.enum(acceptedStates),
  created_at: timestamp,
  send_at: timestamp.nullable(),
  recipients: z.array(z.strictObject({ email: emailAddress, type: recipientType })),
  message_id_header: z.string().meta({ description: "The Message-ID of the mail, with its angle brackets." }),
};
export const messageAcceptedShape = z
  .strictObject(acceptedFields)
  .meta({ id: "MessageAccepted" }) satisfies z.ZodType<SendAnswer>;

/** One result of a batch: what the message alone would have been answered. */
export const batchShape = z
  .strictObject({
    data: z
      .array(
        z.union([
          z.strictObject({ ...acceptedFields, status: z.literal(202) }).meta({ id: "BatchAccepted" }),
          z
            .strictObject({
              status: z.int().min(400).max(499),
              error: z.looseObject({ code: z.string(), message: z.string() }).meta({
                description: "The members of a problem: errors, suppressed_recipients and so on.",
              }),
            })
            .meta({ id: "BatchRefused" }),
        ]),
      )
      .meta({ description: "In the order of the request." }),
  })
  .meta({ id: "MessageBatch" });

export const validShape = z.strictObject({ valid: z.literal(true) }).meta({ id: "MessageValid" });

export const recipientShape = z
  .strictObject({
    email: emailAddress,
    type: recipientType,
    status: z.enum(recipientStates),
    attempts: count,
    last_attempt_at: timestamp.nullable(),
    next_attempt_at: timestamp.nullable(),
    smtp_code: smtpCode.nullable(),
    smtp_status: smtpStatus.nullable(),
    smtp_response: z.string().nullable(),
    receiving_mta: z.string().nullable(),
    sending_ip: ipAddress.nullable(),
    tls: tlsShape.nullable(),
    updated_at: timestamp,
    opened_at: timestamp.nullable(),
    open_count: count,
    clicked_at: timestamp.nullable(),
    click_count: count,
    complained_at: timestamp.nullable(),
    unsubscribed_at: timestamp.nullable(),
  })
  .meta({ id: "Recipient" });

export const messageShape = z
  .strictObject({
    id: idOf("msg"),
    status: z.enum(messageStatuses).meta({
      description:
        "What the recipients have in common; partially_delivered where all are final and differ, else processing.",
    }),
    from: emailAddress,
    from_name: z.string().nullable(),
    subject: z.string(),
    message_id_header: z.string(),
    tags: z.array(z.string()),
    metadata: z.record(z.string(), z.string()),
    ip_pool: z.string(),
    source: z.enum(messageSources),
    test: z.boolean(),
    size_bytes: count,
    created_at: timestamp,
    send_at: timestamp.nullable(),
    updated_at: timestamp,
    recipients: z.array(recipientShape),
  })
  .meta({ id: "Message" });

export const messageListShape = list(messageShape);

export const attemptShape = z
  .strictObject({
    id: idOf("att"),
    recipient: emailAddress,
    attempt: z.int().min(1),
    started_at: timestamp,
    ended_at: timestamp.meta({
      description: "Of an interrupted attempt, when the server started again.",
    }),
    sending_ip: ipAddress.nullable(),
    mx: z.array(z.strictObject({ host: z.string(), preference: count })),
    host: z.string().nullable(),
    address: ipAddress.nullable(),
    tls: tlsShape.nullable(),
    outcome: z.enum(attemptOutcomes).meta({
      description:
        "interrupted: the server ended (a crash, kill -9) before the attempt did, and made it due again.",
    }),
    ambiguous: z.boolean().meta({
      description:
        "The receiver may hold a copy: the final dot was sent and its reply never came, or the server ended during the attempt.",
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

export const attemptsShape = z.strictObject({ data: z.array(attemptShape) }).meta({ id: "AttemptList" });

export const contentShape = z
  .strictObject({
    text: z.string().nullable(),
    html: z.string().nullable(),
    headers: z.array(z.strictObject({ name: z.string(), value: z.string() })),
    attachments: z.array(
      z.strictObject({ filename: z.string().nullable(), content_type: z.string(), size_bytes: count }),
    ),
  })
  .meta({ id: "MessageContent" });

/** The mail as it was accepted. */
export const rawMessage = z.string().meta({ description: "The bytes as they were accepted (RFC 5322)." });
