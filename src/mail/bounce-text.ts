// Bounces that are written for people alone: qmail, Exim, old Sendmail, Exchange, Gmail, Yahoo, Notes and the many
// others without a delivery status (RFC 3464). A mail is taken for one if it comes from a mail system and says that
// a delivery has failed; at a recipient's own return path, from the null sender (RFC 5321 §4.5.5), less is asked of its
// words. A warning that it is late is none, and so is a notice that it arrived or is held. What follows the mark of the
// returned message is never read: the customer's own words must not be taken for a server's. Which of the others decide
// the cause is bounce-words.ts's.
// Over 300 lines: the words are data.
import { statementAbout, transcriptReply, withoutOurMessage } from "./bounce-words.ts";
import type { Failure } from "./failure.ts";
import { textFromHtml } from "./html-text.ts";
import { allParts, fieldOf, fieldText, textOf, type MimePart } from "./mime.ts";

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

/** Why a warning is nothing: delivery is still tried. */
export const delayWarning = "a warning that the delivery is delayed";

const fromDaemon =
  /mailer-?daemon|\bmdaemon\b|mail ?(?:delivery )?(?:sub)?system\b|mail-?daemon|delivery subsystem|^\s*<>\s*$/i;
const fromSystem =
  /post-?_?(?:mast|office)|mail-?(?:admin|agent|robot)\b|system (?:administrator|attendant)|mail (?:administrator|server)|delivery (?:service|notification|agent|status|system)|\bmailer\b|\bmmdf\b|\b(?:daemon|mta|smtpd?|bounces?)@|no-?reply@\S{0,255}ne\.jp/i;
const subjectSays =
  /undeliver|not (?:be )?deliver|not be sent|(?:message|mail) (?:could )?not (?:be )?(?:sent|accepted)|returned (?:e?mail|message|to sender)|return to sender|mail (?:system )?(?:error|failure|failed)|failure (?:notice|notification|report)|deliver\w{0,20} (?:has )?(?:fail|error|problem|status|unsuccess|notif|report)|(?:fail|error|problem)\w{0,20} (?:in |with )?(?:mail )?deliver|unable to (?:deliver|send)|(?:cannot|can't|could not) (?:deliver|send)|non.?deliver|mail delivery (?:sub)?system|\bbounced?\b|(?:message|e?-?mail|recipient|address|user) (?:was |has been |is )?rejected|rejected (?:by|message|e?-?mail)|\bndn\b|\bndr\b|(?:unknown|invalid|no such) (?:user|recipient|address|mailbox)|(?:user|recipient|address|mailbox) (?:unknown|not found|unavailable)|メールエラー|未配信|配信(?:不能|不可|失敗|エラー|でき|され(?:ません|なかった))|送信できません|退信|系统退信|投递失败|nicht zugestellt|unzustellbar|zustellung|non remis|non distribu|échec|mancata consegna|non recapitat|devuelto|no entregado|no se (?:ha )?pud|não entregue|devolvid|falha na entrega|не доставлен|недоставлен|niedostarcz|onbestelbaar|nie można/i;
const textSays =
  /(?:can ?not|can['’]t|could ?n['’o]t|was ?n['’o]t|not|unable to) (?:been |be )?(?:success\w{0,20} )?(?:deliver|sent\b|send\b|accept|process)|undeliver|permanent(?:ly)?\b.{0,30}(?:fail|error)|deliver\w{0,20}.{0,60}(?:fail|error|reject|refus)|(?:fail|error)\w{0,20}.{0,60}deliver|(?:unknown|invalid|no such) (?:user|recipient|address|final)|user (?:unknown|not found)|does(?:n['’]t| not) exist|rejected by|mailbox (?:is )?full|returned to (?:the )?sender|not (?:recognized|listed)|recipient'?s? (?:rejected|refused)|did not receive|is no longer|has been (?:disabled|suspended)|no valid recipient|failed address|unknown host|host unknown/i;
/** It is late and will be tried again: no failure. */
const late =
  /this is a warning message only|you do not need to resend|(?:no action is required|not need to).{0,80}|has not yet been delivered|delivery attempts will continue|will (?:be retried|keep trying|continue to (?:be )?tr)|delayed \d+ hours|message delayed/i;
const lateSubject = /\b(?:warning|delayed?)\b|\(delay\)/i;
/** A warning of that is of no delay: nobody is tried again who does not exist. */
const unknownRecipient =
  /(?:unknown|invalid|no such) (?:user|recipient|address|mailbox)|(?:user|recipient|address|mailbox) (?:unknown|not found)/i;
const finalToo = /permanent(?:ly)? (?:error|fail)|given up|failed permanently|will not be retried/i;

/** The mail arrived or is held for a decision: not a failure (yet), whatever the other words are. */
const arrived =
  /\b(?:was|were|has been|have been) (?:successfully )?(?:delivered|displayed|opened)\b|\bsuccessfully delivered\b|\bdelivered successfully\b|\bdelivery (?:was )?success/i;
const held =
  /quarantined (?:and|but|until)\b|will be (?:delivered|released) (?:after|once|when|as soon|if)\b|\bawait(?:s|ing)? (?:\w{1,12} ){0,2}(?:approval|confirmation|moderation|review|release)|\bheld (?:for (?:\w{1,12} ){0,2}(?:approval|moderation|review|confirmation)|until|pending)|\buntil (?:you|the sender|the (?:list )?moderator|it is|it has been) (?:\w{1,10} )?(?:confirm|approv|releas|review|verif)|\bto confirm (?:that|your|you|this)\b|(?:reply|click|visit|follow)[^\n]{0,60} to (?:confirm|release|verify|authenticate|complete)\b/i;
/** Of some recipients it failed, of others it may have arrived. */
const failedToo =
  /(?:can ?not|can['’]t|could ?n['’o]t|not|unable to|failed to)\b (?:be |been )?(?:success\w{0,20} )?deliver|undeliver|delivery[^.]{0,60}fail|fail\w{0,4}[^.]{0,40}deliver|following (?:recipients?|address\w{0,2})/i;
/** An answer, or a helpdesk's mail. */
const answers =
  /^\s*(?:\[[^\]\n]{1,80}\]\s*)*(?:re|aw|antw|fwd?|sv|wg|rv)\s*:|[[(#]\s*(?:ticket|case|request|issue)\b|\b(?:ticket|case) ?(?:#|id\b|no\b|number)/i;

/** Where the returned message begins. */
const returned: readonly RegExp[] = [
  /^[ \t|]*-{2,}[ \t]*(?:below this line|enclosed|this is a copy|the header of the original|original message|unsent message|returned (?:message|mail)|return(?:ed)? text|start of returned|undelivered message|message headers? follow|body of|message text follows|the following is|begin (?:message|returned)|transcript of the (?:header|message))/im,
  /^[ \t]*(?:original message follows|message headers? follow|below is a copy of|included is a copy|original message headers?:|the (?:body|header|headers|text) of the (?:original )?message (?:is|are)|your original message|bounced e-?mail:|returned message:|-+original m(?:essage|ail)|here is the message|begin forwarded message)/im,
  /^(?:received: (?:from|by) |return-path: |dkim-signature: |mime-version: 1|message-id: <)/im,
];
const longestText = 100_000;
/** What of a text is searched to decide whether it reports a failure at all. */
const longestNotice = 20_000;
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
    else if (part.type === "text/html") html.push(textFromHtml(withoutQuotations(textOf(body))));
  }
  const text = (plain.join("\n").trim() !== "" ? plain : html).join("\n").replace(/\r\n?/g, "\n");
  const cuts = returned.map((mark) => text.search(mark)).filter((at) => at > 0);
  return text.slice(0, Math.min(longestText, text.length, ...cuts));
}

/** HTML's quotations are our message, as lines that begin with `>` are. */
function withoutQuotations(html: string): string {
  let depth = 0;
  return html
    .split(/(?=<\/?blockquote\b)/i)
    .filter((piece) => {
      if (/^<blockquote\b/i.test(piece)) depth += 1;
      else if (/^<\/blockquote\b/i.test(piece)) depth = Math.max(0, depth - 1);
      return depth === 0;
    })
    .join("");
}

/** What is known of how a mail came, apart from the mail. */
export interface ReturnContext {
  /** The envelope's sender is empty (RFC 5321 §4.5.5), as a bounce's is and a vacation's may be. */
  nullSender: boolean;
  /** It came to the return path of one recipient of ours. */
  ownReturnPath: boolean;
  /** Subjects of the messages that it may be about: our customer's words. */
  subjects: readonly string[];
}

/** The failures of a bounce in prose; a string says why it is none. */
export function readProseBounce(
  root: MimePart,
  autoReply: string | null,
  context: ReturnContext,
): Failure[] | string {
  const { fields } = root;
  const text = withoutOurMessage(humanText(root), context.subjects);
  const subject = withoutOurSubject(fieldText(fields, "subject"), context.subjects);
  const listed = addressesIn(fieldOf(fields, "x-failed-recipients"));
  if (listed.length === 0 && statesNoFailure(text, subject)) return "a notice that it arrived or is held";
  const known = listed.length > 0 || forms.some(([opening]) => opening.test(text));
  if (!known) {
    const signs = signsOf(root, text, subject);
    const refused =
      autoReply === null ? !isBounce(signs, context) : !isAutomaticBounce(signs, autoReply, context);
    if (refused) return autoReply === null ? "no report" : `an automatic reply (${autoReply})`;
  }
  // A permanent reply is final, whatever is said of other recipients (RFC 5321 §4.2.1).
  const final = isFinal(text);
  const isLate = late.test(text) || (lateSubject.test(subject) && !unknownRecipient.test(subject));
  if (isLate && !final) return delayWarning;
  return failuresIn(text, listed, new Set(addressedTo(root)));
}

function isFinal(text: string): boolean {
  return finalToo.test(text) || (transcriptReply(text, []).code ?? 0) >= 500;
}

function statesNoFailure(text: string, subject: string): boolean {
  const words = `${subject}\n${text.slice(0, longestNotice).replace(/\s+/g, " ")}`;
  if (!held.test(words) && !(arrived.test(words) && !failedToo.test(words))) return false;
  return !isFinal(text);
}

/** What speaks for a bounce in a mail that has no known form. */
interface Signs {
  daemon: boolean;
  system: boolean;
  subject: boolean;
  /** Its subject is an answer's. */
  answer: boolean;
  words: boolean;
  /** It quotes a reply. */
  quotes: boolean;
  /** It contains a message, or the head of one. */
  returns: boolean;
  /** It names an address that is not its sender's or receiver's. */
  names: boolean;
}

function signsOf(root: MimePart, text: string, subject: string): Signs {
  const from = fieldText(root.fields, "from");
  const daemon = fromDaemon.test(from);
  const own = new Set(addressedTo(root));
  return {
    daemon,
    system: daemon || fromSystem.test(from),
    subject: subjectSays.test(subject) && !answers.test(subject),
    answer: answers.test(subject),
    words: textSays.test(text),
    quotes: transcriptReply(text, []).code !== null,
    returns: allParts(root).some(({ type }) => /^(?:message\/|text\/rfc822)/.test(type)),
    names: segmentsOf(text).some(({ address }) => !own.has(address.toLowerCase())),
  };
}

function isBounce(signs: Signs, { nullSender, ownReturnPath }: ReturnContext): boolean {
  const { daemon, system, subject, answer, words, quotes, returns, names } = signs;
  if (system && words) return true;
  if (!nullSender) return false;
  if (!ownReturnPath) return subject && words;
  if (daemon) return true;
  if (system) return subject || quotes || returns || names;
  // A vacation may come from the null sender, too: of its words alone nothing follows.
  return (subject && (words || quotes || returns || names)) || (quotes && !answer && (words || returns));
}

/** Auto-Submitted alone does not tell a bounce from a vacation: some mail systems set it (RFC 3834 §5). */
function isAutomaticBounce(
  signs: Signs,
  mark: string,
  { nullSender, ownReturnPath }: ReturnContext,
): boolean {
  if (mark !== "auto-submitted" || !nullSender || !ownReturnPath) return false;
  return signs.daemon || (signs.system && (signs.subject || signs.words || signs.quotes));
}

/** `Undeliverable: Your order`: what follows the mark is the customer's. */
function withoutOurSubject(subject: string, ours: readonly string[]): string {
  let rest = subject
    .slice(0, 1_000)
    .replace(/^([^:]{0,60}(?:deliver|return|fail|unzustellbar|remis)[^:]{0,60}):.*$/is, "$1");
  // Ours stands at the end; elsewhere the same words are the reporter's.
  for (const one of ours) {
    const words = one.trim();
    if (words !== "" && rest.trimEnd().endsWith(words)) rest = rest.trimEnd().slice(0, -words.length);
  }
  return rest;
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
  if (recipients.length < 2) return [failureFrom(text, recipients, own)];
  const wordsAbout = wordsIn(text);
  return recipients.map((address) => {
    const about = failureFrom(wordsAbout([address]), [address], own);
    // Addresses in a row share what stands behind or before them all.
    return about.text === "" ? { ...failureFrom(text, [address], own), recipients: [address] } : about;
  });
}

const givenStatus = /(?:[([<#]|status:|code:?)\s{0,3}#?([245]\.\d{1,3}\.\d{1,3})(?![.\d])/i;

function failureFrom(words: string, recipients: string[], own: ReadonlySet<string>): Failure {
  const reply = transcriptReply(words, recipients.length > 0 ? [...recipients, ...own] : []);
  const stated = reply.code === null ? statementAbout(words, recipients) : "";
  const status = reply.status ?? (reply.code === null ? givenStatus.exec(words)?.[1] : null) ?? null;
  const mixed = reply.code !== null && status !== null && String(reply.code)[0] !== status[0];
  return {
    recipients,
    code: reply.code,
    status,
    text: reply.code === null ? stated : reply.text,
    mta: null,
    reportedAt: null,
    ...(mixed ? { mixedClasses: true as const } : {}),
  };
}

/** Tried where a word begins and nowhere else: a long word without an `@` costs its length, not the square of it. */
const address = /(?<![^\s<>"'`(),;:[\]|=])[^\s<>"'`(),;:[\]|=]+@(?:[A-Za-z0-9_-]+\.)+[A-Za-z0-9-]{2,}/;
const everyAddress = new RegExp(address.source, "g");
/** Lines whose address is not the failed recipient's. */
const elsewhere =
  /mail ?from|^\s*(?:from|sender|sent by|reply-to|message-id|return-path|contact|subject)\b|https?:|postmaster@|mailer-daemon@|support@|contact|assistance|help ?desk|\bplease\b|forward|visit|write to|send (?:it|this|your|an)|\bask\b|questions?|mailto:.{0,320}\?|x-sender|generated (?:from|by)/i;

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
export function addressedTo(root: MimePart): string[] {
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
  return names
    .flatMap((name) => root.fields.filter(({ lower }) => lower === name))
    .flatMap(({ value }) => addressesIn(value))
    .map((one) => one.toLowerCase());
}

function addressesIn(value: string): string[] {
  return [...value.slice(0, 10_000).matchAll(everyAddress)].slice(0, maxAddresses).map(([found]) => found);
}
