// Why a delivery failed: the classifications of a bounce or deferral, and the category of each.

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
