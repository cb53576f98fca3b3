// Fields that several types of event share.
import { z } from "zod";
import { bounceCategories, type Classification } from "../model/classification.ts";
import { count, emailAddress, idOf, ipAddress, smtpCode, smtpStatus, tlsSchema } from "../value-schemas.ts";

const classifications = Object.keys(bounceCategories) as Classification[];
const categories = [...new Set(Object.values(bounceCategories))];

/** Every event of a recipient begins with them. */
export const ofMessage = {
  message_id: idOf("msg"),
  to: emailAddress,
  from: emailAddress,
  subject: z.string(),
  tags: z.array(z.string()),
  metadata: z.record(z.string(), z.string()),
  test: z.literal(true).optional().describe("True for mail sent with a test key and for a webhook test."),
};

export const reply = {
  smtp_code: smtpCode,
  smtp_status: smtpStatus,
  smtp_response: z
    .string()
    .describe(
      "The reply of the receiving server; for a failure without a reply, a text of svc that begins with [local].",
    ),
  receiving_mta: z.string().nullable(),
  sending_ip: ipAddress.nullable(),
};

export const tried = { attempt: count, delivery_time_ms: count, tls: tlsSchema.nullable() };

export const cause = {
  bounce_classification: z.enum(classifications),
  bounce_category: z.enum(categories),
};

export const visit = {
  ip_address: ipAddress,
  user_agent: z.string(),
  first: z.boolean(),
  machine: z.boolean().describe("A proxy or a scanner, as far as it can be distinguished from a person."),
};

export const listing = {
  ip_address: ipAddress,
  blacklist_name: z.string(),
  blacklist_zone: z.string(),
  affected_pools: z.array(z.string()),
  test: z.literal(true).optional(),
};
