// Which words of a bounce decide: a reply or a statement about the failed address, and nothing that our customer wrote,
// that advises, or that lists what may be the reason.
import { expect, test } from "vitest";
import { classifyFailure, failureType } from "../../src/mail/failure.ts";
import { readReturned, type ReturnContext } from "../../src/mail/returned.ts";
import { failureSuppresses } from "../../src/suppressions/policy.ts";
import { here, leastCpuMs } from "../support/cpu.ts";
import { dsnMail, plainMail, reportMail } from "../support/reports.ts";

const to = "b+x@rp.test";
const home: ReturnContext = { nullSender: true, ownReturnPath: true, subjects: [] };

function read(mail: string, came: Partial<ReturnContext> = home) {
  const returned = readReturned(Buffer.from(mail), came);
  if (returned.kind !== "bounce") return [];
  return returned.failures.map((failure) => ({
    to: failure.recipients[0],
    code: failure.code,
    text: failure.text,
    type: failureType(failure),
    cause: classifyFailure(failure),
    suppresses: failureSuppresses(failure),
  }));
}
const one = (mail: string, came?: Partial<ReturnContext>) => {
  const [first] = read(mail, came);
  if (!first) throw new Error("no bounce");
  return first;
};
const daemon = (subject: string, body: string, more: Record<string, string> = {}): string =>
  plainMail({ From: "MAILER-DAEMON@mx.far.test", To: to, Subject: subject, ...more }, body);

/** A report whose machine part holds `fields` and whose text is `human`. */
const report = (human: string, fields: string[], returned?: string): string =>
  reportMail({ to, human, fields: ["Final-Recipient: rfc822; ann@far.test", ...fields], returned });
const rejected = ["Action: failed", "Status: 5.0.0", "Diagnostic-Code: smtp; 550 rejected"];

test.each([
  ["a list of common reasons", "Common reasons:\n\n- the recipient does not exist\n- the mailbox is full"],
  ["reasons in a sentence", "This may be because the mailbox does not exist, or the account was disabled."],
  ["help text", "Please check that the user exists: an unknown user gives this error. No such user? Ask us."],
  [
    "our customer's subject, as a field",
    "Subject: Why your mailbox does not exist any more\nTo: ann@far.test",
  ],
  ["a folded subject", "  Subject: Why your\n    mailbox does not exist any more"],
  ["a quoted subject with a code", 'The message with the subject "550 5.1.1 user unknown" was refused.'],
  ["boilerplate that states it of all", "The recipient does not exist."],
])("with `550 rejected`, %s neither classifies, suppresses nor is shown", (_, human) => {
  expect(one(report(human, rejected))).toMatchObject({
    code: 550,
    text: "550 rejected",
    suppresses: false,
  });
  expect(["recipient_policy", "unclassified"]).toContain(one(report(human, rejected)).cause);
});

test("the subject of the returned message is our customer's, wherever the report repeats it", () => {
  const subject = "No such user: who is 550 5.1.1 unknown?";
  const human = `I could not deliver your message\n\n${subject}\n\nto ann@far.test`;
  expect(one(report(human, ["Action: failed", "Status: 5.0.0"], `Subject: ${subject}`))).toMatchObject({
    code: null,
    text: "",
    cause: "unclassified",
    suppresses: false,
  });
  const prose = daemon("Mail failure", `It could not be delivered to ann@far.test:\n${subject}`);
  expect(one(prose, { ...home, subjects: [subject] })).toMatchObject({
    code: null,
    cause: "unclassified",
    suppresses: false,
  });
});

test.each([
  ["an extension field", "-", [...rejected, "X-Remote-Reply: 550 5.1.1 no such user"]],
  [
    "a vendor's field with host, status and type before the reply",
    "-",
    [
      "Status: 5.0.0 (permanent failure)",
      'X-Supplementary-Info: <192.0.2.7 #5.0.0 smtp; 550 "Unknown user">',
    ],
  ],
  ["a vendor's field with a status first", "-", ["Status: 5.0.0", "X-Reply: 5.1.1 smtp; 550 no such user"]],
  [
    "a vendor's field with a host first",
    "-",
    ["Status: 5.0.0", "X-Smtp-Response: mx.far.test[192.0.2.7]: 550 no such user"],
  ],
  ["a field that names no vendor", "-", [...rejected, "Remote-Response: smtp; 550 5.1.1 no such user"]],
  ["a transcript", "  ----- Transcript -----\n<<< 550 5.1.1 <ann@far.test>... User unknown", rejected],
  ["a transcript alone", "<<< 550 5.1.1 <ann@far.test>... User unknown", rejected.slice(0, 2)],
  ["a quotation", "host mx.far.test said: 550 5.1.1 No such user (in reply to RCPT TO)", rejected],
  ["marked words", "The remote server gave this error:\nNo such user here", rejected],
])("a reply elsewhere in the report decides: %s", (_, human, fields) => {
  expect(one(report(human, fields))).toMatchObject({ cause: "invalid_recipient", suppresses: true });
});

test.each([
  ["its status is a table", "Error codes:\n550 5.1.1 User unknown\n552 5.2.2 Mailbox full"],
  ["it is quoted from our message", "> 550 5.1.1 user unknown\n> is what our article is about"],
  ["reasons follow in paragraphs", "Reasons could be:\n\nUser unknown\n\nDomain does not exist"],
  [
    "our subject stands in guillemets",
    "Your message «Your mailbox does not exist» to ann@far.test came back.",
  ],
  ["it answers our subject", "Re: Your mailbox does not exist\nann@far.test"],
  ["several causes are stated", "ann@far.test\n1. The user does not exist.\n2. The mailbox is full."],
])("no cause and no suppression where %s", (_, human) => {
  expect(one(report(human, ["Action: failed", "Status: 5.0.0"]))).toMatchObject({
    cause: "unclassified",
    suppresses: false,
  });
  const prose = daemon("Mail failure", `It could not be delivered to ann@far.test.\n\n${human}`);
  expect(one(prose)).toMatchObject({ cause: "unclassified", suppresses: false });
});

test.each([
  "X-Original-Subject: 550 5.1.1 user unknown",
  "X-Note: see 550 5.1.1 user unknown",
  "X-Note: <see 550 5.1.1 user unknown>",
  "X-Queue-Id: 550 no such user",
  "Final-Log-Id: 550 no such user",
])("an extension field that repeats our message, or holds no reply, decides nothing: %s", (field) => {
  expect(one(report("-", [...rejected, field]))).toMatchObject({ text: "550 rejected", suppresses: false });
});

test.each([
  "<<< 550 5.1.1 <bob@other.test>... User unknown",
  "<bob@other.test>: host mx.other.test said: 550 5.1.1 user unknown",
  "bob@other.test\n  host mx.other.test said:\n  No such user",
])("a transcript that names another address is not about this one: %j", (human) => {
  expect(one(report(human, rejected))).toMatchObject({ text: "550 rejected", suppresses: false });
});

test("a group without a recipient does not outrank the one that has it", () => {
  const mail = reportMail({
    to,
    human: "-",
    fields: ["Action: failed", "Status: 5.1.1", "", "Final-Recipient: rfc822; ann@far.test", ...rejected],
  });
  expect(read(mail)).toMatchObject([{ to: "ann@far.test", suppresses: false }]);
});

test.each(["expired", "rejected", "gone", "failed-permanently"])(
  "Action %s is a failure of no known kind",
  (action) => {
    const mail = dsnMail({ to, recipient: "ann@far.test", action, status: "5.1.1" });
    expect(one(mail)).toMatchObject(
      action.startsWith("failed") ? { type: "hard" } : { type: "undetermined", suppresses: false },
    );
  },
);

test.each([
  "bounced",
  "undelivered",
  "undeliverable",
  "delivery-failed",
  "Delivery failed",
  "permanent-failure",
  "not-delivered",
  "failed (no such user)",
])("Action %s says that the delivery failed", (action) => {
  const mail = dsnMail({ to, recipient: "ann@far.test", action, status: "5.1.1" });
  expect(one(mail)).toMatchObject({ type: "hard", cause: "invalid_recipient", suppresses: true });
});

test.each(["delayed", "Delayed (will be retried)", "delivered", "delivered-locally", "relayed;", "expanded"])(
  "Action %s is no failure",
  (action) => {
    expect(read(dsnMail({ to, recipient: "ann@far.test", action, status: "5.1.1" }))).toEqual([]);
  },
);

test("too many recipients are temporary for RCPT alone, and a precise status outweighs the words", () => {
  for (const [status, diagnostic, type] of [
    ["5.5.3", "552 5.5.3 no more", "soft"],
    ["5.0.0", "552 too many recipients", "soft"],
    ["5.2.2", "552 5.2.2 too many recipients share this full mailbox", "hard"],
    ["5.5.3", "552 5.5.3 too many recipients (in reply to end of DATA command)", "hard"],
  ] as const)
    expect(one(dsnMail({ to, recipient: "a@far.test", status, diagnostic }))).toMatchObject({ type });
});

test.each([
  ["550 4.2.1 mailbox disabled", "5.0.0"],
  ["550 4.1.1 no such user", "4.1.1"],
])("a reply whose code and status contradict each other does not suppress: %s", (diagnostic, status) => {
  const failed = one(dsnMail({ to, recipient: "ann@far.test", status, diagnostic }));
  expect(failed).toMatchObject({ code: 550, suppresses: false });
});

test("552 for too many recipients is soft in a report, too", () => {
  const mail = dsnMail({ to, recipient: "a@far.test", status: "5.5.3", diagnostic: "552 5.5.3 Too many" });
  expect(one(mail)).toMatchObject({ type: "soft", cause: "rate_limited", suppresses: false });
});

test.each([
  ["<ann@far.test>:\nSorry, no mailbox here by that name. (#5.1.1)", "invalid_recipient", true],
  ["<ann@far.test>:\nThis account has been disabled or discontinued.", "inactive_mailbox", true],
  ["ann@far.test\n  mailbox is full: retry timeout exceeded", "mailbox_full", false],
  ["ann@far.test on Thu, 9 May 2026\n    The recipient name is not recognized", "invalid_recipient", true],
  ["<ann@far.test>:\nSorry, I couldn't find a mail exchanger or IP address.", "invalid_domain", true],
  ["ann@far.test could not be reached.\n\nThe user may not exist.", "unclassified", false],
  ["ann@far.test\n\nPossible reasons:\n * user unknown\n * mailbox full", "unclassified", false],
  ["ann@far.test\n\nThe mailbox does not exist or is full.", "unclassified", false],
])("in prose that quotes no reply its statement decides: %j is %s", (body, cause, suppresses) => {
  const mail = daemon("Delivery failure", `Your message could not be delivered to:\n\n${body}`);
  expect(one(mail)).toMatchObject({ to: "ann@far.test", cause, suppresses });
});

test("words alone that name no address do not suppress", () => {
  expect(one(daemon("Delivery failure", "It could not be delivered: no such user."))).toMatchObject({
    cause: "invalid_recipient",
    suppresses: false,
  });
});

test("what Exchange lists of our message is neither a recipient nor a reason", () => {
  const mail = daemon(
    "Undeliverable: Your mailbox is full",
    "Your message\n\n  To:      bob@other.test; cid@other.test\n  Cc:      dan@other.test\n  Subject: Your mailbox is full\n  Sent:    Fri, 27 Nov 2026\n\ndid not reach the following recipient(s):\n\nann@far.test on Fri, 27 Nov 2026 09:00:00 -0000\n    The recipient name is not recognized",
  );
  expect(read(mail)).toMatchObject([{ to: "ann@far.test", cause: "invalid_recipient" }]);
});

test("a subject of ours after the mark does not make a bounce late", () => {
  expect(
    read(
      daemon("Undeliverable: Warning: your order is delayed", "It could not be delivered to ann@far.test."),
    ),
  ).toHaveLength(1);
});

test("a permanent reply is final, even beside words of a delay", () => {
  const words = "It could not be delivered to ann@far.test. You do not need to resend it.\n\n";
  expect(read(daemon("Mail status", `${words}<<< 550 5.1.1 no such user`))).toHaveLength(1);
  expect(read(daemon("Mail status", `${words}<<< 450 4.2.0 later`))).toEqual([]);
});

test("addresses in a row share the reason behind them", () => {
  const mail = daemon(
    "failure notice",
    "It could not be delivered to:\n\nann@far.test\nbob@far.test\n\n552 5.2.2 mailbox full",
  );
  expect(read(mail)).toMatchObject([
    { to: "ann@far.test", cause: "mailbox_full" },
    { to: "bob@far.test", cause: "mailbox_full" },
  ]);
});

test.each([
  "550 Recipient ann@far.test unknown",
  "550 recipients unknown here: no such user",
  "550 messages for this user are refused: no such user",
])("%j keeps its code", (reply) => {
  expect(one(daemon("failure notice", `could not be delivered to ann@far.test\n${reply}`)).code).toBe(550);
});

const unknownForm = (from: string, more: Record<string, string> = {}) =>
  plainMail({ From: from, To: to, Subject: "???", ...more }, "Xyzzy.\n\nann@far.test");

test("at a return path from the null sender, a mail system's mail in no known words is a bounce", () => {
  for (const from of ["MAILER-DAEMON@far.test", "MDaemon@far.test", "Mail Delivery System <x@far.test>"]) {
    for (const more of [{}, { "Auto-Submitted": "auto-replied" }]) {
      expect(one(unknownForm(from, more))).toMatchObject({ cause: "unclassified", suppresses: false });
      expect(read(unknownForm(from, more), { ...home, nullSender: false })).toEqual([]);
      expect(read(unknownForm(from, more), { ...home, ownReturnPath: false })).toEqual([]);
    }
  }
  const quotes = { Subject: "Message not delivered" };
  expect(read(unknownForm("robot@far.test"))).toEqual([]);
  expect(read(plainMail({ From: "robot@far.test", To: to, ...quotes }, "Xyzzy."))).toEqual([]);
  expect(one(unknownForm("robot@far.test", quotes))).toMatchObject({ to: "ann@far.test", suppresses: false });
  const reply = plainMail({ From: "robot@far.test", To: to, ...quotes }, "ann@far.test\n550 5.1.1 gone");
  expect(one(reply)).toMatchObject({ cause: "invalid_recipient" });
});

test.each([
  ["a vacation", { From: "ann@far.test", Subject: "Away", "Auto-Submitted": "auto-replied" }],
  ["a vacation without a mark", { From: "ann@far.test", Subject: "I have left" }],
  ["an answer to a bounce", { From: "ann@far.test", Subject: "Re: Undelivered Mail" }],
  ["a challenge", { From: "postmaster@far.test", Subject: "Undelivered", "X-Challenge-Message": "1" }],
  ["an answer of a postmaster", { From: "postmaster@far.test", Subject: "Thank you" }],
])("from the null sender, %s is still no bounce", (_, fields) => {
  const body = "Ann is no longer with us.\n\n-----Original Message-----\nHello";
  expect(read(plainMail({ To: to, ...fields }, body.replace("is no longer with us", "left")))).toEqual([]);
  if (fields.From.startsWith("ann")) expect(read(plainMail({ To: to, ...fields }, body))).toEqual([]);
});

test.each([
  ["subjects without an end", `Undeliverable\n${"Subject: a\n  b\n".repeat(6_000)}`],
  ["quotations without an end", `could not be delivered ${'message "'.repeat(11_000)}`],
  ["one sentence", `could not be delivered ${"or may if ".repeat(9_000)}`],
  ["paragraphs", `could not be delivered ann@far.test${"\n\nann@far.test reasons may be".repeat(3_500)}`],
  ["marks of a quotation", `could not be delivered ${"remote server ".repeat(7_000)}`],
  ["codes behind words", `could not be delivered ${"error 550 said 550-".repeat(5_000)}`],
  ["angles", `could not be delivered ${"<".repeat(90_000)}`],
  ["titles in a row", `could not be delivered ${"message ".repeat(6_000)}${'"a" '.repeat(9_000)}`],
  ["our subject", `could not be delivered ${'"Your order" '.repeat(7_500)}`],
  ["our subject in lines", `could not be delivered\n${"Your order\n".repeat(9_000)}`],
  ["quoted replies", `could not be delivered ${`\n${"server error ".repeat(30)}\n> 550 x`.repeat(230)}`],
  ["local parts", `550 ${"a.".repeat(45_000)}`],
])("a hundred thousand characters of %s are read in time", (_, body) => {
  const mail = daemon("Returned mail", body);
  const most = here(300);
  const took = leastCpuMs(most, () => {
    read(mail, { ...home, subjects: ["Your order"] });
    read(report(body, rejected));
  });
  expect(took).toBeLessThan(most);
});

test.each([
  "Original message:",
  "Your message was:",
  "A copy of your message follows:",
  "The text of the original message:",
  "You wrote:",
  "On Mon, 2 Nov 2026, shop wrote:",
  "=== Original mail ===",
  "Ursprüngliche Nachricht:",
  "Message d'origine :",
  "Исходное сообщение:",
  "原始邮件",
])("nothing decides behind a line that introduces our message: %s", (line) => {
  const ours = "Dear ann@far.test,\nthe user does not exist.\n550 5.1.1 <ann@far.test>: user unknown";
  const said = `Your mail to ann@far.test could not be delivered.\n\n${line}\n\n${ours}`;
  expect(one(daemon("Mail failure", said))).toMatchObject({ cause: "unclassified", suppresses: false });
  expect(one(report(said, rejected))).toMatchObject({ text: "550 rejected", suppresses: false });
});

test.each([
  "Mögliche Gründe:\n\nEmpfänger unbekannt",
  "Dies kann daran liegen, dass der Benutzer unbekannt ist.",
  "Raisons possibles :\n- utilisateur inconnu",
  "Peut-être utilisateur inconnu.",
  "Posibles causas:\n- el usuario no existe",
  "Possibili cause:\n- utente sconosciuto",
  "Possíveis causas:\n- usuário inexistente",
  "Возможные причины:\n- пользователь не найден",
  "Возможно, адрес не существует.",
  "可能的原因:\n- 用户不存在",
  "可能是收件人不存在。",
  "Is the user unknown?",
  "The user is not unknown, and the mailbox is not disabled.",
])("what may be decides nothing in any language: %j", (words) => {
  const mail = plainMail(
    {
      From: "MAILER-DAEMON@mx.far.test",
      To: to,
      Subject: "Mail failure",
      "Content-Type": "text/plain; charset=utf-8",
    },
    `Your mail to ann@far.test could not be delivered.\n\n${words}`,
  );
  expect(one(mail)).toMatchObject({ cause: "unclassified", suppresses: false });
});

test("an HTML quotation of our message decides nothing, and what stands behind it does", () => {
  const html = (behind: string): string =>
    daemon(
      "Mail failure",
      `<p>Not delivered to ann@far.test</p><blockquote>552 5.2.2 full<blockquote>x</blockquote>550 5.1.1 user unknown</blockquote>${behind}`,
      { "Content-Type": "text/html" },
    );
  expect(one(html(""))).toMatchObject({ code: null, suppresses: false });
  expect(one(html("<p>550 5.1.1 ann@far.test user unknown</p>"))).toMatchObject({ suppresses: true });
});

const unknownUser = { to: "joe@far.test", cause: "invalid_recipient", suppresses: true, code: 550 };
test.each([
  'Your mail to joe@far.test failed.\n\nThe server returned the error message "550 5.1.1 User unknown".',
  'Delivery to joe@far.test failed. The server returned this message: "550 5.1.1 <joe@far.test> User unknown"',
  "Delivery to joe@far.test has failed.\nThe failure was caused by:\n550 5.1.1 User unknown",
  "Delivery to joe@far.test has failed.\n\nThe failure was caused by this reply:\n\n550 5.1.1 User unknown",
  "It could not be delivered to one of the following recipients:\njoe@far.test\n550 5.1.1 User unknown",
  "It could not be delivered to any of the following addresses:\njoe@far.test\n550 5.1.1 User unknown",
  "Could not deliver to <joe@far.test>.\nSMTP error codes returned:\n550 5.1.1 User unknown",
  "Could not deliver to <joe@far.test>.\nStatus code and reply: 550 5.1.1 User unknown",
  "For some reasons beyond our control the mail for joe@far.test failed: 550 5.1.1 User unknown",
  "Could not deliver to <joe@far.test>. Remote host said:\n> 550 5.1.1 User unknown",
  "Could not deliver to <joe@far.test>:\n> 550-5.1.1 The account\n> 550 5.1.1 is unknown: no such user",
  "Could not deliver to <joe@far.test>.\n\nPossible reasons:\n\n550 5.1.1 User unknown",
])("a reply is read wherever a report quotes it: %j", (body) => {
  expect(one(daemon("Mail failure", body))).toMatchObject(unknownUser);
});

test("a reply in quotation marks decides beside a delivery status, too", () => {
  const human = 'Delivery to ann@far.test failed with this message: "550 5.2.2 mailbox full"';
  expect(one(report(human, ["Action: failed", "Status: 5.0.0"]))).toMatchObject({
    cause: "mailbox_full",
    text: "550 5.2.2 mailbox full",
  });
});

test.each([
  'The server rejected your message "550 5.1.1 user unknown".',
  'The message "550 5.1.1 user unknown" was refused.',
  "Ann wrote:\n> 550 5.1.1 user unknown",
  "This is your message:\n> 550 5.1.1 user unknown",
  "What the codes mean:\n550 5.1.1 means that the user is unknown",
  "Common reasons:\n\n550 5.1.1 User unknown\n\n552 5.2.2 Mailbox full",
])("a title, a quotation of ours and a table of codes are no reply: %j", (human) => {
  expect(one(report(human, rejected))).toMatchObject({ text: "550 rejected", suppresses: false });
});

test.each([
  ["mailbox full", "<joe@far.test>: host mx said: 550 5.1.1 mailbox full", "mailbox_full"],
  ["blocked", "<joe@far.test>: host mx said: 550 5.1.1 blocked by blocklist", "reputation_block"],
  ["mailbox full", 'The remote server said: "mailbox full" of joe@far.test', "mailbox_full"],
  ["mailbox full", "joe@far.test: the remote server gave this error:\nmailbox full", "mailbox_full"],
  ["User unknown", "<joe@far.test>: host mx said: 550 5.1.1 User unknown", "invalid_recipient"],
  ["joe@far.test", "joe@far.test\nhost mx said: 550 5.1.1 no such user", "invalid_recipient"],
  ["mailbox full", "<joe@far.test>: host mx said: 550 5.1.1\n   mailbox full", "mailbox_full"],
])("our subject %j is not cut out of what a server said: %j", (subject, body, cause) => {
  const failed = one(daemon("Mail failure", body), { ...home, subjects: [subject] });
  expect(failed).toMatchObject({ to: "joe@far.test", cause });
  if (failed.code !== null) expect(body.replace(/\s+/g, " ")).toContain(failed.text);
});

test.each([
  "User unknown",
  '"User unknown"',
  "Subject: User unknown",
  "with the subject User unknown",
  "(User unknown)",
  "* User unknown",
  "User\nunknown",
])("our subject is cut where it stands as a title: %j", (title) => {
  const body = `It could not be delivered to joe@far.test.\n\n${title}`;
  const came = { ...home, subjects: ["User unknown"] };
  expect(one(daemon("Mail failure", body), came)).toMatchObject({ cause: "unclassified", suppresses: false });
});

const person = "Ann <ann@far.test>";
test.each([
  ["an acknowledgement", person, "配信ありがとうございます", "担当 sales@far.test まで。"],
  [
    "a challenge",
    "noreply@far.test",
    "Message status: confirm",
    "Your mail to joe@far.test has not been delivered until you confirm at http://far.test/.",
  ],
  [
    "a list's moderation",
    "list-bounces@far.test",
    "Your message to List awaits moderator approval",
    "Your mail to list@far.test awaits moderator approval: is it rejected by the list, you are told.",
  ],
  [
    "a helpdesk",
    "Support <help@far.test>",
    "[Ticket 5] Re: Mail delivery",
    "It was received. Ticket 550 - opened. user unknown to us: joe@far.test",
  ],
  [
    "a helpdesk that quotes",
    person,
    "[Ticket 5] Mail delivery failed",
    "joe@far.test asks: what is this?\n550 5.1.1 user unknown",
  ],
  ["a rejected wish", person, "Your application was rejected", "Write to sales@far.test."],
  [
    "a delivery",
    "Mail System <postmaster@far.test>",
    "Delivery notification",
    "Your message to joe@far.test was delivered successfully. Rejected by nobody.",
  ],
  [
    "a receipt",
    "postmaster@far.test",
    "Delivery report",
    "Your message to joe@far.test was displayed. Not returned to sender.",
  ],
  [
    "a quarantine",
    "postmaster@far.test",
    "Delivery notification",
    "Your mail to joe@far.test was quarantined and will be delivered\nafter the check. Unknown user? No.",
  ],
  ["an approval", "MAILER-DAEMON@far.test", "Mail held", "Mail to joe@far.test is held for approval."],
])("from the null sender at a return path, %s is not a bounce", (_, from, subject, body) => {
  const fields = { From: from, To: to, Subject: subject, "Content-Type": "text/plain; charset=utf-8" };
  expect(read(plainMail(fields, body))).toEqual([]);
});

test.each([
  ["未配信メール", "joe@far.test"],
  ["Message rejected", "joe@far.test: no such user"],
  ["Mail delivery failed", "joe@far.test"],
])("a subject that says that the delivery failed still makes a bounce: %s", (subject, body) => {
  const fields = { From: person, To: to, Subject: subject, "Content-Type": "text/plain; charset=utf-8" };
  expect(read(plainMail(fields, body))).toMatchObject([{ to: "joe@far.test" }]);
});

test.each([
  "It was delivered to the others, but could not be delivered to joe@far.test: no such user",
  "It was delivered to ann@other.test.\n\n<joe@far.test>: 550 5.1.1 no such user",
  "It was held until the time was up and failed permanently for joe@far.test: no such user",
])("a failure beside a success is a failure: %j", (body) => {
  expect(read(daemon("Delivery report", body)).length).toBeGreaterThan(0);
});
