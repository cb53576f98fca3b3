// What /v1/suppressions answers.
import { z } from "zod";
import { suppressionReasons, suppressionSources } from "../../model/suppression.ts";
import { count, emailAddress, idOf, list, smtpCode, smtpStatus, timestamp } from "./common.ts";

export const suppressionShape = z
  .strictObject({
    email: emailAddress.describe("In its first spelling."),
    reason: z.enum(suppressionReasons),
    source: z.enum(suppressionSources),
    message_id: idOf("msg").nullable(),
    event_id: idOf("evt").nullable(),
    smtp_code: smtpCode.nullable(),
    smtp_status: smtpStatus.nullable(),
    description: z.string().nullable(),
    created_at: timestamp,
    updated_at: timestamp,
    expires_at: timestamp.nullable(),
  })
  .meta({ id: "Suppression" });

export const suppressionListShape = list(suppressionShape);

/** The list as a file. */
export const suppressionFile = z.string().meta({
  description:
    "All that the filters leave, whatever the limit (RFC 4180); its columns are the entry's fields.",
});

export const suppressionsAddedShape = z
  .strictObject({
    added: count,
    updated: count.describe("Entries whose reason became a stronger one."),
    already_suppressed: count,
    invalid: z.array(z.strictObject({ email: z.string(), issue: z.string() })),
    data: z.array(suppressionShape),
  })
  .meta({ id: "SuppressionsAdded" });
