// For each classification of a failure: who is at fault, and one sentence of advice for the operator or sender.
import type { Classification } from "../model/classification.ts";

export type Fault = "recipient" | "sender" | "receiver" | "network" | "nobody";

export const advice = {
  invalid_recipient: [
    "recipient",
    "The mailbox does not exist. Remove the address from your lists and ask for another one.",
  ],
  invalid_domain: [
    "recipient",
    "The domain does not exist or accepts no mail. Correct a misspelling, or remove the address from your lists.",
  ],
  inactive_mailbox: ["recipient", "The mailbox was closed or disabled. Remove the address from your lists."],
  mailbox_full: ["recipient", "The mailbox is full. Later mail may be accepted; no action is needed."],
  spam_content: [
    "sender",
    "The receiver classified the message as spam. Check its text and links, and complaints about your mail.",
  ],
  attachment_rejected: [
    "sender",
    "The receiver refuses the attachment. Send a link or another type of file instead.",
  ],
  message_too_large: [
    "sender",
    "The message is larger than the receiver accepts. Make it smaller, or send a link to the large part.",
  ],
  reputation_block: [
    "sender",
    "The sending IP address or domain is blocked. Check blocklists, the address's reverse DNS and complaints, then ask the receiver to lift the block.",
  ],
  rate_limited: [
    "sender",
    "The receiver limits the rate of your mail. Deferred messages are retried automatically at a lower rate; permanently refused ones are not. Increase volume in smaller steps.",
  ],
  authentication_failed: [
    "sender",
    "SPF, DKIM or DMARC did not pass. Check the domain's records: svc domains verify DOMAIN",
  ],
  greylisted: [
    "nobody",
    "The receiver defers mail from senders that it does not know yet (greylisting). The message is retried automatically.",
  ],
  recipient_policy: [
    "receiver",
    "The receiver or the recipient refuses the message by local policy. Ask the recipient to allow your mail; the address stays valid.",
  ],
  invalid_sender: [
    "sender",
    "The receiver does not accept the sender's address. Check that the sender's domain exists and can receive mail.",
  ],
  relay_denied: [
    "sender",
    "The server does not relay mail for this domain or from this sender. Check the domain's MX records, or the smart host's login.",
  ],
  suppressed: ["recipient", "The address is on the suppression list. See why: svc suppressions show ADDRESS"],
  dns_failure: [
    "network",
    "A DNS lookup failed. If it fails for other domains too, check your resolver; otherwise the receiver's DNS is at fault.",
  ],
  connection_failed: [
    "network",
    "No connection to the receiver's server could be made. If this affects many domains, check whether your network blocks outgoing port 25.",
  ],
  tls_failure: [
    "network",
    "A TLS connection that meets the requirements could not be made. Check outbound.tls, or contact the receiver.",
  ],
  routing_error: [
    "receiver",
    "The domain's MX hosts cannot be used: they form a loop, or none has an address. Contact the receiver in another way.",
  ],
  protocol_error: [
    "sender",
    "The receiver rejected the message or a command as malformed. See what was sent: svc messages trace ID",
  ],
  receiver_error: ["receiver", "The receiving server reports an internal error. Later mail may be accepted."],
  message_expired: [
    "receiver",
    "The message expired after repeated attempts. The last reply shows the cause; the address stays valid.",
  ],
  unclassified: ["nobody", "The reply matches no known pattern. Read its text; the address stays valid."],
} as const satisfies Record<Classification, readonly [Fault, string]>;
