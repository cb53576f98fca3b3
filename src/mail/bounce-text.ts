// Bounces that are written for people alone: qmail, Exim, old Sendmail, Exchange, Gmail, Yahoo, Notes and the many
// others that hold no delivery status (RFC 3464). A mail is taken for one only if it comes from a mail system and
// says in a way that is known that a delivery has failed; a warning that it is late is none. What follows the mark
// of the returned message is never read: the customer's own words must not be taken for a server's.
import type { Failure } from "./failure.ts";
import { textFromHtml } from "./html-text.ts";
import { allParts, fieldOf, fieldText, textOf, type MimePart } from "./mime.ts";
import { oneLine, quotedReply } from "./reply-text.ts";

/** Openings that only a mail system writes; a mail that also marks itself as answered automatically needs one. */
const forms: readonly (readonly [RegExp, string])[] = [
  [/^Hi\. This is the .{1,100}\b(?:program|daemon|deliver\w{0,20})\b/m, "qmail and its descendants"],
  [/This message was created automatically by mail delivery software/, "Exim; GMX and others after it"],
  [/^Delivery to the following recipients? (?:failed|has been delayed)/m, "Gmail"],
  [/^This is the .{0,80}(?:Postfix.{0,20} program|mail system) at host/m, "Postfix"],
  [/This is the DragonFly Mail Agent/, "DragonFly Mail Agent"],
  [/following addresses had (?:permanent|transient|delivery)|Transcript of session follows/i, "Sendmail"],
  [/did not reach the following recipient|recipient\(s\) could not be reached/i, "Exchange 5.5, 2000, 2003"],
  [
    /Delivery has failed to these recipients or (?:groups|distribution lists)/i,
    "Exchange 2007, Microsoft 365",
  ],
  [/Diagnostic information for administrators/i, "Exchange 2007, Microsoft 365"],
  [/^-+\s*Failure Reasons\s*-+/m, "Notes SMTP"],
  [/was not delivered to:\s[\s\S]{0,400}because:/i, "Domino"],
  [/Each of the following recipients was rejected/i, "KDDI"],
  [/we were unable to deliver your message to the following address/i, "Yahoo"],
  [/The following message to <[^<>]{1,300}> was undeliverable/i, "Oracle, IronPort"],
  [/Below is a copy of the original message/i, "OpenSMTPD"],
  [/Unable to deliver message to: </i, "MailFoundry"],
  [/SMTP Server <[^<>]{1,255}> rejected recipient </i, "gateways that quote the server so"],
  [/^-+server message$/m, "m-FILTER"],
];

const fromSystem =
  /mailer-?daemon|post-?_?master|mail ?delivery ?(?:sub)?system|mail-?daemon|system administrator|delivery (?:service|notification)|\bmailer\b|^\s*<>\s*$|no-?reply@\S{0,255}ne\.jp/i;
const subjectSays =
  /undeliver|not be delivered|returned (?:e?mail|message|to sender)|mail (?:system )?(?:error|failure|failed)|failure notice|deliver\w{0,20} (?:has )?(?:fail|error|problem|status|unsuccess|notif)|(?:fail|error|problem)\w{0,20} (?:in )?deliver|unable to deliver|non.?deliver|mail delivery|bounce|rejected|message status|メールエラー|nicht zugestellt|non remis|unzustellbar/i;
const textSays =
  /(?:can ?not|could ?n['’o]t|was ?n['’o]t|not|unable to) (?:been |be )?(?:success\w{0,20} )?deliver|undeliver|permanent(?:ly)?\b.{0,30}(?:fail|error)|deliver\w{0,20}.{0,60}(?:fail|error|reject|refus)|(?:fail|error)\w{0,20}.{0,60}deliver|(?:unknown|invalid|no such) (?:user|recipient|address|final)|user (?:unknown|not found)|does(?:n['’]t| not) exist|rejected by|mailbox (?:is )?full|returned to (?:the )?sender|not (?:recognized|listed)|recipient'?s? (?:rejected|refused)|did not receive|is no longer|has been (?:disabled|suspended)|no valid recipient|failed address|unknown host|host unknown/i;
/** It is late and will be tried again: no failure. */
const late =
  /this is a warning message only|you do not need to resend|(?:no action is required|not need to).{0,80}|has not yet been delivered|delivery attempts will continue|will (?:be retried|keep trying|continue to (?:be )?tr)|delayed \d+ hours|message delayed/i;
const lateSubject = /\b(?:warning|delayed?)\b|\(delay\)/i;
const finalToo = /permanent(?:ly)? (?:error|fail)|given up|failed permanently|will not be retried/i;

/** Where the returned message begins. */
const returned: readonly RegExp[] = [
  /^[ \t|]*-{2,}[ \t]*(?:below this line|enclosed|this is a copy|the header of the original|original message|unsent message|returned (?:message|mail)|return(?:ed)? text|start of returned|undelivered message|message headers? follow|body of|message text follows|the following is|begin (?:message|returned)|transcript of the (?:header|message))/im,
  /^[ \t]*(?:original message follows|message headers? follow|below is a copy of|included is a copy|original message headers?:|the (?:body|header|headers|text) of the (?:original )?message (?:is|are)|your original message|bounced e-?mail:|returned message:|-+original m(?:essage|ail)|here is the message|begin forwarded message)/im,
  /^(?:received: (?:from|by) |return-path: |dkim-signature: |mime-version: 1|message-id: <)/im,
];
const longestText = 100_000;
const maxAddresses = 20;
/** Of a line, as far as addresses are looked for in it: some tests cost more than its length. */
const longestLine = 2_000;

/** What a mail says to people, up to the returned message; at most 100 KB. */
export function humanText(root: MimePart): string {
  const plain: string[] = [];
  const html: string[] = [];
  for (const part of allParts(root)) {
    if (part.type.startsWith("message/") || part.type.startsWith("text/rfc822")) break;
    if (/^\s*attachment/i.test(fieldOf(part.fields, "content-disposition"))) continue;
    const body = part.body.length > longestText ? { ...part, body: part.body.slice(0, longestText) } : part;
    if (part.type === "text/plain") plain.push(textOf(body));
    else if (part.type === "text/html") html.push(textFromHtml(textOf(body)));
  }
  const text = (plain.join("\n").trim() !== "" ? plain : html).join("\n").replace(/\r\n?/g, "\n");
  const cuts = returned.map((mark) => text.search(mark)).filter((at) => at > 0);
  return text.slice(0, Math.min(longestText, text.length, ...cuts));
}

/** The failures of a bounce in prose; a string says why it is none. */
export function readProseBounce(root: MimePart, autoReply: string | null): Failure[] | string {
  const { fields } = root;
  const text = humanText(root);
  const subject = fieldText(fields, "subject");
  const listed = addressesIn(fieldOf(fields, "x-failed-recipients"));
  const known = listed.length > 0 || forms.some(([opening]) => opening.test(text));
  if (autoReply !== null && !known) return `an automatic reply (${autoReply})`;
  const system =
    known ||
    fromSystem.test(fieldText(fields, "from")) ||
    /^<>$|mailer-daemon/i.test(fieldOf(fields, "return-path"));
  const says = subjectSays.test(subject) ? 1 : 0;
  if (
    !system ||
    (!known && says + (textSays.test(text) ? 1 : 0) < (system ? 1 : 2)) ||
    !(known || textSays.test(text))
  )
    return "no report";
  if ((late.test(text) || lateSubject.test(subject)) && !finalToo.test(text))
    return "a warning that it is late";
  return failuresIn(text, listed, ownAddresses(root));
}

/** Gives the lines of a text that speak of one of some recipients, each with what follows it. Read once for all. */
export function wordsIn(text: string): (recipients: readonly string[]) => string {
  const segments = segmentsOf(text);
  return (recipients) => {
    const wanted = new Set(recipients.map((address) => address.toLowerCase()));
    return segments
      .filter(({ address }) => wanted.has(address.toLowerCase()))
      .map(({ words }) => words)
      .join("\n")
      .trim();
  };
}

function failuresIn(text: string, listed: string[], own: ReadonlySet<string>): Failure[] {
  const segments = segmentsOf(text).filter(({ address }) => !own.has(address.toLowerCase()));
  const named = [...new Set(segments.map(({ address }) => address))].slice(0, maxAddresses);
  const recipients = listed.length > 0 ? listed : named;
  if (recipients.length < 2) return [failureFrom(text, recipients)];
  const wordsAbout = wordsIn(text);
  return recipients.map((address) => failureFrom(wordsAbout([address]) || text, [address]));
}

function failureFrom(words: string, recipients: string[]): Failure {
  const reply = quotedReply(words);
  return {
    recipients,
    code: reply.code,
    status: reply.status,
    // Without a reply in it the whole text is the reason, and behind a short one the text explains it.
    text: reply.code === null ? oneLine(words) : reply.text,
    mta: null,
    reportedAt: null,
  };
}

/** Tried where a word begins and nowhere else: a long word without an `@` costs its length, not the square of it. */
const address = /(?<![^\s<>"'`(),;:[\]|=])[^\s<>"'`(),;:[\]|=]+@(?:[A-Za-z0-9_-]+\.)+[A-Za-z0-9-]{2,}/;
const everyAddress = new RegExp(address.source, "g");
/** Lines whose address is somebody else's. */
const elsewhere =
  /mail ?from|^\s*(?:from|sender|sent by|reply-to|message-id|return-path|contact|subject)\b|https?:|postmaster@|mailer-daemon@|support@|contact|assistance|helpdesk|mailto:.{0,320}\?|x-sender|generated (?:from|by)/i;

/** A line of a transcript that says all of one recipient: `550 <a@b.test>... User unknown`. */
const wholeReply = /^\s*[45]\d\d[ -].*<[^<>@]{1,320}@[^<>@]{1,320}>\.\.\./;

/** The text cut at the lines that name a recipient. */
function segmentsOf(text: string): { address: string; words: string }[] {
  const segments: { address: string; words: string; whole: boolean }[] = [];
  for (const line of text.split("\n")) {
    const behind = line.slice(0, longestLine).replace(/^.*\brcpt(?: to)?:/i, "");
    const found = elsewhere.test(behind) ? undefined : address.exec(behind)?.[0];
    const last = segments.at(-1);
    if (found !== undefined && found.length <= 320 && found.toLowerCase() !== last?.address.toLowerCase())
      segments.push({ address: found, words: line, whole: wholeReply.test(line) });
    else if (last && !last.whole) last.words += `\n${line}`;
    if (segments.length > 1_000) break;
  }
  return segments;
}

/** Who the bounce was sent to and who wrote it are not whom it is about. */
function ownAddresses(root: MimePart): Set<string> {
  const names = [
    "to",
    "from",
    "return-path",
    "delivered-to",
    "x-original-to",
    "reply-to",
    "envelope-to",
    "sender",
  ];
  return new Set(
    names
      .flatMap((name) => root.fields.filter(({ lower }) => lower === name))
      .flatMap(({ value }) => addressesIn(value))
      .map((one) => one.toLowerCase()),
  );
}

function addressesIn(value: string): string[] {
  return [...value.slice(0, 10_000).matchAll(everyAddress)].slice(0, maxAddresses).map(([found]) => found);
}
