// What a reply means. The cause is judged by the enhanced status first, then the
// receiver's wording, then the basic code; temporary or permanent is the reply code's first digit alone.

export const bounceCategories = {
  invalid_recipient: "recipient",
  invalid_domain: "recipient",
  inactive_mailbox: "recipient",
  mailbox_full: "recipient",
  spam_content: "content",
  attachment_rejected: "content",
  message_too_large: "content",
  reputation_block: "reputation",
  rate_limited: "reputation",
  authentication_failed: "authentication",
  greylisted: "policy",
  recipient_policy: "policy",
  invalid_sender: "policy",
  relay_denied: "policy",
  suppressed: "policy",
  dns_failure: "technical",
  connection_failed: "technical",
  tls_failure: "technical",
  routing_error: "technical",
  protocol_error: "technical",
  receiver_error: "technical",
  message_expired: "technical",
  unclassified: "technical",
} as const;

export type Classification = keyof typeof bounceCategories;

export function classifyReply(reply: { code: number; status: string | null; text: string }): Classification {
  throw new Error(reply.text);
}
/** A delay that the receiver named, at most an hour; null where it named none. */
export function namedDelayMs(text: string): number | null {
  throw new Error(text);
}
