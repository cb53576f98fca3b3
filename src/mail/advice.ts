// For people: whose the fault of a failure is, and what to do about it. A sentence a classification.
import type { Classification } from "../model/classification.ts";

export type Fault = "recipient" | "sender" | "receiver" | "network" | "nobody";

export const advice = {
  invalid_recipient: [
    "recipient",
    "The mailbox does not exist. Take the address off your lists and ask for another one.",
  ],
  invalid_domain: [
    "recipient",
    "The domain does not exist or takes no mail. Look for a misspelling; else take the address off your lists.",
  ],
  inactive_mailbox: ["recipient", "The mailbox was closed or disabled. Take the address off your lists."],
  mailbox_full: ["recipient", "The mailbox is full. Later mail may get through; nothing needs to be done."],
  spam_content: [
    "sender",
    "The receiver took the message for spam. Look at its text and links, and at complaints about your mail.",
  ],
  attachment_rejected: [
    "sender",
    "The receiver refuses what is attached. Send a link instead, or another type of file.",
  ],
  message_too_large: [
    "sender",
    "The message is larger than the receiver takes. Make it smaller, or send a link to the large part.",
  ],
  reputation_block: [
    "sender",
    "The sending address or domain is blocked. Look for the address on blocklists, at its reverse DNS and at complaints, then ask the receiver to lift the block.",
  ],
  rate_limited: [
    "sender",
    "The receiver wants fewer mails at a time. What it deferred is sent again more slowly by itself; what it refused for good is not. Send new volume in smaller steps.",
  ],
  authentication_failed: [
    "sender",
    "SPF, DKIM or DMARC did not pass. Look at the domain's records: svc domains verify DOMAIN",
  ],
  greylisted: ["nobody", "The receiver greets strangers so. The message is sent again by itself."],
  recipient_policy: [
    "receiver",
    "The receiver or this recipient refuses by a rule of its own. Ask the recipient to allow your mail; the address stays good.",
  ],
  invalid_sender: [
    "sender",
    "The receiver does not accept the sender's address. See that the From domain exists and can take mail.",
  ],
  relay_denied: [
    "sender",
    "That server does not take mail for this domain or from us. Look at the domain's MX records, or at the smart host's login.",
  ],
  suppressed: ["recipient", "The address is on the suppression list. See why: svc suppressions show ADDRESS"],
  dns_failure: [
    "network",
    "A name could not be looked up. If it lasts, look at your resolver; else the fault is the receiver's DNS.",
  ],
  connection_failed: [
    "network",
    "The receiver's server could not be reached. If it is so for many domains, see whether your network lets port 25 out.",
  ],
  tls_failure: [
    "network",
    "No encrypted connection could be made as one side demands it. Look at outbound.tls, or tell the receiver.",
  ],
  routing_error: [
    "receiver",
    "The domain's mail hosts cannot be used: a loop, or no host with an address. Tell the receiver by another way.",
  ],
  protocol_error: [
    "sender",
    "The receiver calls the message or a command malformed. Look at what was sent: svc messages trace ID",
  ],
  receiver_error: ["receiver", "The receiving server has trouble of its own. Later mail may get through."],
  message_expired: [
    "receiver",
    "It was tried for days without success. The last reply says why; the address stays good.",
  ],
  unclassified: ["nobody", "These words are not known. Read them; the address stays good."],
} as const satisfies Record<Classification, readonly [Fault, string]>;
