// The shape of POST /v1/messages: one zod type a field, from which the API's description derives, and
// the request as it is once every field is sound. The rules of each field: fields.ts.
import { z } from "zod";
import type { Mailbox } from "../mail/address.ts";
import type { ComposeAttachment } from "../mail/compose.ts";

export const party = z.union(
  [z.string(), z.strictObject({ email: z.string(), name: z.string().nullish() })],
  {
    error: 'expected an address: "a@x", "Name <a@x>" or {email, name}',
  },
);
const parties = z.union([party, z.array(party)], {
  error: "expected an address, {email, name}, or an array of them",
});

/** One zod type a field: the API's description derives from it. */
export const messageFields = {
  from: party,
  to: parties,
  cc: parties,
  bcc: parties,
  reply_to: parties,
  subject: z.string(),
  html: z.string(),
  text: z.string(),
  auto_text: z.boolean(),
  headers: z.record(z.string(), z.string()),
  attachments: z.array(
    z.strictObject({
      filename: z.string(),
      content: z.string(),
      content_type: z.string().optional(),
      content_id: z.string().optional(),
      disposition: z.enum(["attachment", "inline"]).optional(),
    }),
  ),
  ip_pool: z.string(),
  tags: z.array(z.string()),
  metadata: z.record(z.string(), z.string()),
  send_at: z.string(),
  track_opens: z.boolean(),
  track_clicks: z.boolean(),
  tracking: z.strictObject({ opens: z.boolean().optional(), clicks: z.boolean().optional() }),
  unsubscribe: z.unknown(),
} as const;

export type FieldName = keyof typeof messageFields;

export interface RecipientRequest {
  type: "to" | "cc" | "bcc";
  /** `to[0]`: where the client finds it. */
  field: string;
  mailbox: Mailbox;
  /** As the suppression list compares it. */
  canonical: string;
}

/** The fields, each sound by itself. */
export interface MessageRequest {
  from: Mailbox;
  replyTo: Mailbox[];
  recipients: RecipientRequest[];
  subject: string;
  html: string | null;
  text: string | null;
  autoText: boolean;
  headers: [string, string][];
  attachments: ComposeAttachment[];
  ipPool: string | null;
  tags: string[];
  metadata: Record<string, string>;
  /** Milliseconds since 1970; null: at once. */
  sendAt: number | null;
}
