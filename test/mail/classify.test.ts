import { expect, test } from "vitest";
import { classifyReply, ruleOf, saysNothing } from "../../src/mail/classify.ts";
import { namedDelayMs } from "../../src/mail/named-delay.ts";
import { bounceCategories } from "../../src/model/classification.ts";
import { here, leastCpuMs } from "../support/cpu.ts";

const classify = (code: number, status: string | null, text = ""): string =>
  classifyReply({ code, status, text });

test.each([
  [421, "4.7.0", "Service unavailable, closing channel", "greylisted"],
  [421, "4.7.28", "unusual rate of unsolicited mail", "rate_limited"],
  [450, "4.2.1", "Mailbox temporarily disabled", "inactive_mailbox"],
  [451, "4.3.0", "Local error", "receiver_error"],
  [451, "4.7.500", "Server busy. Please try again later", "rate_limited"],
  [452, "4.2.2", "Mailbox full", "mailbox_full"],
  [452, "4.5.3", "Too many recipients", "rate_limited"],
  [550, "5.1.1", "Mailbox does not exist", "invalid_recipient"],
  [550, "5.1.2", "Domain does not exist", "invalid_domain"],
  [550, "5.1.10", "Rejected by recipient policy", "recipient_policy"],
  [550, "5.2.1", "Mailbox disabled", "inactive_mailbox"],
  [550, "5.7.1", "Blocked", "reputation_block"],
  [550, "5.7.26", "This mail is unauthenticated", "authentication_failed"],
  [550, "5.7.28", "Your IP is on our list", "reputation_block"],
  [551, "5.1.6", "User moved", "invalid_recipient"],
  [552, "5.2.3", "Message too large", "message_too_large"],
  [553, "5.1.7", "Bad sender address", "invalid_sender"],
  [554, "5.7.1", "Rejected", "recipient_policy"],
])("%i %s (%s) is %s", (code, status, text, classification) => {
  expect(classify(code, status, text)).toBe(classification);
  // The status alone must be enough: receivers word it as they like.
  expect(classify(code, status, "")).toBe(classification);
});

test.each([
  [421, "4.4.1", "[local] no connection", "connection_failed"],
  [421, "4.4.2", "[local] silence", "connection_failed"],
  [451, "4.4.3", "[local] SERVFAIL", "dns_failure"],
  [451, "4.5.0", "[local] no SMTP reply", "protocol_error"],
  [451, "4.7.5", "[local] TLS failed", "tls_failure"],
  [550, "5.4.6", "[local] the MX is this server", "routing_error"],
  [550, "5.4.7", "[local] expired", "message_expired"],
  [556, "5.1.10", "[local] null MX", "invalid_domain"],
  [552, "5.3.4", "[local] SIZE", "message_too_large"],
  [550, "5.6.7", "[local] SMTPUTF8", "protocol_error"],
])("our own %i %s (%s) is %s", (code, status, text, classification) => {
  expect(classify(code, status, text)).toBe(classification);
});

test.each([
  [550, "5.7.1", "Our system has detected that this message is likely unsolicited mail", "spam_content"],
  [550, "5.7.1", "Service unavailable; Client host [192.0.2.1] blocked using Spamhaus", "reputation_block"],
  [554, "5.7.1", "<x@y.test>: Relay access denied", "relay_denied"],
  [
    550,
    "5.7.1",
    "Unauthenticated email is not accepted due to domain's DMARC policy",
    "authentication_failed",
  ],
  [
    421,
    "4.7.0",
    "[TSS04] Messages from 192.0.2.1 temporarily deferred due to unexpected volume",
    "rate_limited",
  ],
  [451, "4.7.1", "Greylisting in action, please come back in 00:04:59", "greylisted"],
  [451, "4.7.1", "Please try again", "greylisted"],
  [
    550,
    "5.7.1",
    "Unfortunately, messages from [192.0.2.1] weren't sent. part of their network is on our block list (S3150)",
    "reputation_block",
  ],
  [450, "4.2.1", "The user you are trying to contact is receiving mail at a rate that", "recipient_policy"],
  [550, "5.5.0", "Requested action not taken: mailbox unavailable (S2017062302)", "invalid_recipient"],
  [554, "5.0.0", "User unknown", "invalid_recipient"],
  [550, "5.7.0", "Attachment type not allowed: virus found", "attachment_rejected"],
])("the wording refines %i %s: %s", (code, status, text, classification) => {
  expect(classify(code, status, text)).toBe(classification);
});

test.each([
  ["No such user here", "invalid_recipient"],
  ["<x@y.test>: Recipient address rejected: User unknown in local recipient table", "invalid_recipient"],
  ["The email account that you tried to reach does not exist", "invalid_recipient"],
  ["Requested mail action aborted: this user doesn't have a yahoo.com account", "invalid_recipient"],
  ["Mailbox for x@y.test is full", "mailbox_full"],
  ["This account has been disabled or discontinued", "inactive_mailbox"],
  ["Your account has been suspended", "recipient_policy"],
  ["Sender address rejected: Domain not found", "invalid_sender"],
  ["Sender verify failed", "invalid_sender"],
  ["blocked: no reverse DNS for your IP address, host not found", "reputation_block"],
  ["Requested action not taken: mailbox unavailable", "unclassified"],
  ["", "unclassified"],
  ["\ufffd".repeat(3_000), "unclassified"],
])("a bare 550 is judged by its wording: %j", (text, classification) => {
  expect(classify(550, null, text)).toBe(classification);
});

test.each([
  [550, "5.7.1", "No such user here", "invalid_recipient"],
  [550, "5.7.1", "<ann@far.test>: Recipient address rejected: User unknown", "invalid_recipient"],
  [553, "5.7.1", "Invalid recipient ann@far.test (Mode: normal)", "invalid_recipient"],
  [550, "5.7.1", "No such user, or you may not write to it", "reputation_block"],
  [550, "5.7.1", "user unknown (sender denied)", "invalid_sender"],
])(
  "beside 5.7.1 plain words about the recipient count, and no others: %i %s %s",
  (code, status, text, cause) => {
    expect(classify(code, status, text)).toBe(cause);
  },
);

test("a permanent block is a block, whatever rate it names; the same for now is a rate", () => {
  const words =
    "Our system has detected an unusual rate of unsolicited mail originating from your IP address. Mail has been blocked";
  expect(classify(550, "5.7.1", words)).toBe("reputation_block");
  expect(classify(550, "5.7.0", words)).toBe("reputation_block");
  expect(classify(421, "4.7.0", words)).toBe("rate_limited");
  expect(classify(450, "4.7.1", "too many connections")).toBe("rate_limited");
  expect(ruleOf({ code: 550, status: "5.7.1", text: words })).toContain("unusual rate");
});

test.each([
  [451, "4.7.500", "Server busy. Please try again later from [192.0.2.1]. (S77719)"],
  [421, null, "Service not available: the client has exceeded the rate limit allowed. (S77719)"],
  [421, "4.7.0", "The maximum number of concurrent server connections has exceeded a limit (S77719)"],
  [
    421,
    "4.3.2",
    "The maximum number of concurrent connections has exceeded a limit, closing transmission channel",
  ],
  [421, null, "The maximum number of concurrent server connections has exceeded a limit"],
  [421, null, "RP-001 (COL004-MC5F18) Unfortunately, some messages from 192.0.2.1 weren't sent."],
  [421, null, "RP-003 The mail server IP has exceeded the connection limit allowed."],
  [432, "4.3.2", "Concurrent connections limit exceeded."],
  [421, "4.4.5", "Service unavailable, concurrency limit reached"],
  [421, null, "Too many simultaneous connections from 192.0.2.1"],
  [421, null, "MAX connections exceeded: try again later"],
  [450, "4.7.1", "You have exceeded the number of allowed connections"],
])("a temporary reply that names a rate or connections is rate_limited: %i %s %s", (code, status, text) => {
  expect(classify(code, status, text)).toBe("rate_limited");
});

test.each([
  [550, "5.7.1", "Unfortunately, messages from [192.0.2.1] weren't sent. (S3150)", "reputation_block"],
  [550, "5.7.1", "Access denied, traffic from this address is refused (S77719)", "reputation_block"],
  [421, "4.4.2", "Connection time limit exceeded", "connection_failed"],
  [552, "5.3.4", "Message size exceeds fixed maximum message size", "message_too_large"],
])("words of a block or of a size are no rate: %i %s %s is %s", (code, status, text, classification) => {
  expect(classify(code, status, text)).toBe(classification);
});

test.each([
  ["<spam@far.test>: user unknown", "invalid_recipient"],
  ["<spam@far.test>... User unknown", "invalid_recipient"],
  ["a@barracuda.test user unknown", "invalid_recipient"],
  ["User dmarc@spf.virus.test not found", "invalid_recipient"],
  ["<greylist>: no such user", "invalid_recipient"],
  ["nosuchuser@no-such-user.test: rejected", "recipient_policy"],
  ["spam@far.test: taken for spam", "spam_content"],
])("of an address only that there is one is judged: %j is %s", (text, cause) => {
  expect(classify(550, null, text)).toBe(cause);
});

test.each([
  [552, "5.1.1", "message size exceeds fixed limit", "message_too_large"],
  [554, "5.1.1", "taken for spam", "spam_content"],
  [550, "5.1.1", "SPF check failed", "authentication_failed"],
  [554, "5.1.1", "ann@far.test... aliasing/forwarding loop broken (11 aliases deep)", "routing_error"],
])("5.1.1 beside words of another cause is that cause: %i %s %s", (code, status, text, cause) => {
  expect(classify(code, status, text)).toBe(cause);
});

test.each([
  ["550 5.4.1 [ann@far.test]: Recipient address rejected: Access denied [X.prod.outlook.com]", "5.4.1"],
  ["550 5.4.1 <ann@far.test>: Recipient address rejected: Access denied.", "5.4.1"],
  ["550 5.4.1 Recipient address rejected: Access denied. AS(201806281) [X.outlook.com]", "5.4.1"],
  ["Recipient address rejected: Access denied", "5.4.1"],
  ["550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup", "5.1.10"],
])("Exchange says by %j that there is no such recipient", (text, status) => {
  expect(classify(550, status, text)).toBe("invalid_recipient");
});

test.each([
  ["5.4.1", "Access denied", "recipient_policy"],
  ["5.4.1", "Sender address rejected: Access denied", "invalid_sender"],
  ["5.4.1", "your host: Recipient address rejected: Access denied", "reputation_block"],
  ["5.4.1", "Recipient address rejected: Access denied by policy", "recipient_policy"],
  ["5.7.1", "Recipient address rejected: Access denied", "recipient_policy"],
  ["5.1.10", "host/domain does not accept mail", "invalid_domain"],
  ["5.1.10", "Recipient rejected, may be temporary", "recipient_policy"],
])("the same status or words alone do not say so: 550 %s %s", (status, text, cause) => {
  expect(classify(550, status, text)).toBe(cause);
});

test("a block never reads as the recipient's fault, whatever else the text says", () => {
  const suppressing = ["invalid_recipient", "invalid_domain", "inactive_mailbox"];
  for (const status of ["5.7.1", "5.7.0", "5.7.26", "5.7.28", "5.7.99", "5.1.10", "5.4.1", "5.5.1"]) {
    for (const text of [
      ...(status === "5.7.1"
        ? ["blocked: no such user", "user unknown, or spam"]
        : ["no such user", "user unknown"]),
      "account disabled",
      "mailbox not found",
      "no such domain",
    ]) {
      expect(suppressing).not.toContain(classify(550, status, text));
    }
  }
});

test("without status and words the basic code decides, and an unknown one is unclassified", () => {
  expect([421, 452, 500, 552, 556, 550, 554, 599].map((code) => classify(code, null))).toEqual([
    "receiver_error",
    "receiver_error",
    "protocol_error",
    "mailbox_full",
    "invalid_domain",
    "unclassified",
    "unclassified",
    "unclassified",
  ]);
});

test("every cause belongs to a category, and a long hostile text is judged at once", () => {
  const most = here(1_000);
  const took = leastCpuMs(most, () => {
    for (const bit of ["user ", "sender ", "spf ", "again ", "mailbox", "1", "address ", " "]) {
      expect(bounceCategories).toHaveProperty(classify(550, null, bit.repeat(1_000_000 / bit.length)));
      namedDelayMs(bit.repeat(1_000_000 / bit.length));
    }
  });
  expect(took).toBeLessThan(most);
});

test.each([
  ["Greylisted, try again in 300 seconds", 300_000],
  ["please retry in 5 minutes", 300_000],
  ["Retry after 90s", 90_000],
  ["come back in 00:04:59", 299_000],
  ["Please wait for 10 min and try again", 600_000],
  ["try again in 2 hours", 3_600_000],
  ["try again in 999999 h", 3_600_000],
  ["try again later", null],
  ["try again in 0 seconds", null],
  ["more than 100 messages in 10 minutes", null],
  ["retry. 300 seconds", null],
  ["try again in 5 months", null],
])("%j names %j ms", (text, delayMs) => {
  expect(namedDelayMs(text)).toBe(delayMs);
});

test.each([
  ["Veuillez essayer plus tard. Adresse IP source bloquee", "reputation_block"],
  ["Unfortunately, messages from 192.0.2.7 weren't sent (SC-001)", "reputation_block"],
  [
    "This message does not have authentication information or fails to pass checks, spam",
    "authentication_failed",
  ],
  ["The group you tried to contact (team) may not exist. https://groups.google.com/", "recipient_policy"],
  ["This message is not RFC 5322 compliant", "protocol_error"],
  ["Unroutable sender address", "invalid_sender"],
  ["Sender address has null MX", "invalid_sender"],
  ["retry timeout exceeded", "message_expired"],
  ["mailbox is full: retry timeout exceeded", "mailbox_full"],
  ["The recipient server did not accept our requests to connect", "connection_failed"],
  ["Name service error for domain far.test: Host not found, try again", "dns_failure"],
  ["Host or domain name not found: Host not found", "invalid_domain"],
  ["an MX or SRV record indicated no SMTP service", "invalid_domain"],
  ["User ann not listed in Domino Directory", "invalid_recipient"],
  ["user's mailfolder is full", "mailbox_full"],
  ["vdelivermail: account is locked", "inactive_mailbox"],
])("the words of mail systems in a report: %j is %s", (text, classification) => {
  expect(classifyReply({ code: 0, status: null, text })).toBe(classification);
});

test("a status of a bad address is doubted beside words of a block or a full mailbox, and the row that decides is named", () => {
  expect(classify(550, "5.1.1", "rejected, listed at zen.spamhaus.org")).toBe("reputation_block");
  expect(classify(552, "5.1.1", "mailbox over quota")).toBe("mailbox_full");
  expect(classify(550, "5.1.1", "no such user, policy 7")).toBe("invalid_recipient");
  expect(ruleOf({ code: 550, status: "5.1.1", text: "no" })).toBe(
    "status X X.1.1: the mailbox does not exist",
  );
  expect(ruleOf({ code: 0, status: null, text: "?" })).toBe("no rule matches this text");
  expect([saysNothing("OK"), saysNothing("user unknown")]).toEqual([true, false]);
});

test.each([
  [550, "5.7.1", "Callout verification failed: 550 5.1.1 user unknown", "invalid_sender"],
  [550, "5.1.1", "Sender verify failed: no such user", "invalid_sender"],
  [550, null, "Could not verify sender: user unknown", "invalid_sender"],
  [550, "5.1.2", "DNS lookup of sender domain example.test failed", "invalid_sender"],
  [550, "5.1.2", "we can't find sender's domain", "invalid_sender"],
  [553, "5.1.2", "Domain of sender address <a@b.test> does not exist", "invalid_sender"],
  [550, "5.1.2", "Unknown sender domain", "invalid_sender"],
  [550, "5.2.1", "Sender account disabled", "invalid_sender"],
  [550, "5.1.1", "<a@b.test> Sender rejected; not exist", "invalid_sender"],
  [550, "5.1.1", "sender unknown", "invalid_sender"],
  [550, "5.1.1", "MAIL FROM <a@b.test>: no such user", "invalid_sender"],
  [550, "5.1.1", "Your domain does not exist", "recipient_policy"],
  [550, "5.2.1", "Your e-mail account is suspended", "recipient_policy"],
])("%i %s (%s) speaks of the sender and not of the recipient: %s", (code, status, text, expected) => {
  expect(classify(code, status, text)).toBe(expected);
});

test.each([
  ["5.1.1", "User unknown; message returned to sender"],
  ["5.1.1", "User unknown. The sender must use another address"],
  ["5.1.1", "Recipient callout verification failed: user unknown"],
  ["5.1.1", "Recipient address rejected: undeliverable address: host mx.b.test said: 550 user unknown"],
  ["5.1.1", "<sender@b.test>: Recipient address rejected: User unknown"],
  ["5.1.1", "No such user: check the name in your address book"],
])("550 %s (%s) still speaks of the recipient", (status, text) => {
  expect(classify(550, status, text)).toBe("invalid_recipient");
});

test.each([
  [554, "5.7.5", "Permanent Error Evaluating DMARC Policy", "authentication_failed"],
  [451, "4.7.5", "Temporary Error Evaluating DMARC Policy", "authentication_failed"],
  [550, "5.7.5", "Message refused: your address is on the Spamhaus list", "reputation_block"],
  [550, "5.7.5", "no such user", "tls_failure"],
  [550, "5.7.5", "Certificate could not be verified", "tls_failure"],
  [550, "5.7.2", "Message refused as spam", "spam_content"],
  [550, "5.7.2", "Not a member of this list", "recipient_policy"],
  [550, "5.7.10", "SPF check failed", "authentication_failed"],
  [421, "4.4.2", "Too many connections from your host", "rate_limited"],
  [421, "4.4.2", "Timeout", "connection_failed"],
  [452, "4.4.5", "Mailbox is over quota", "mailbox_full"],
  [451, "4.4.5", "Server busy", "receiver_error"],
])(
  "a status that receivers use for several things gives way to words that name a cause: %d %s %j is %s",
  (code, status, text, classification) => {
    expect(classify(code, status, text)).toBe(classification);
  },
);
