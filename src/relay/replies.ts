// Negative SMTP replies: one line with an enhanced status code (RFC 3463). The refusals of both interfaces come from the
// catalogue (errors.ts); our own faults are always 4yz, so that the client keeps the mail and tries again (RFC 5321
// §4.2.1).
import { errorCatalog, Refusal } from "../errors.ts";
import { MailSyntaxError } from "../mail/header.ts";
import { MailTooLarge } from "../mail/intake.ts";
import { StoreUnavailable } from "../store/store.ts";

/** A negative reply, in the form that smtp-server takes errors: code and `X.Y.Z text`. */
export class SmtpReply extends Error {
  readonly responseCode: number;
  readonly sentence: string;
  constructor(code: number, enhanced: string, sentence: string) {
    super(`${enhanced} ${replyText(sentence)}`);
    this.name = "SmtpReply";
    this.sentence = sentence;
    this.responseCode = code;
  }
}

/** A reply in place of smtp-server's: other words, and where its code is wrong another code with its enhanced status. */
type Correction = string | { code: number; enhanced: string; text: string };

/** What smtp-server says, with what mends it; VRFY in plain words (RFC 5321 §3.5.3). */
const corrections: Record<string, Correction> = {
  // Upstream's 2.1.5 says that the address is valid, which was not checked.
  "Try to send something. No promises though": {
    code: 252,
    enhanced: "2.0.0",
    text: "Cannot verify the address, but will accept the mail and attempt delivery",
  },
  "Error: command not recognized": {
    code: 500,
    enhanced: "5.5.2",
    text: "Command not recognized; EHLO lists the supported ones",
  },
  "Error: send HELO/EHLO first": "Send EHLO first",
  "Error: Bad hostname syntax": "EHLO needs the name of your host",
  "Error: syntax: EHLO hostname": "EHLO needs the name of your host",
  "Error: Syntax: HELO hostname": "HELO needs the name of your host",
  "Error: Bad sender address syntax": "Not a sender: write MAIL FROM:<local@domain>, or <> for none",
  "Error: Bad recipient address syntax": "Not a recipient: write RCPT TO:<local@domain>",
  "Error: nested MAIL command": "A mail transaction is already open; end it with DATA or RSET",
  "Error: need MAIL command": "No sender was accepted; send MAIL first",
  "Error: need RCPT command": "No recipient was accepted; send RCPT first",
  "Error: too many recipients": "A mail may have at most 100 recipients; send to the others in another one",
  // RFC 4954 §4, §6: 530 asks for what has to come first. 538 is of a mechanism that needs encryption, and obsolete.
  "Error: Must issue a STARTTLS command first": {
    code: 530,
    enhanced: "5.7.0",
    text: "Authentication requires TLS; send STARTTLS first",
  },
  "Error: TLS already active": "This session already uses TLS",
  "Error: syntax: STARTTLS": "STARTTLS takes no parameter",
  "Error: No identity changes permitted": "This session is already authenticated; continue with MAIL",
  "Error: Unrecognized authentication type": "This mechanism is not offered; use AUTH PLAIN or AUTH LOGIN",
  "Error: invalid userdata":
    "The login is malformed: AUTH PLAIN sends NUL, user name, NUL, password in base64",
  "Error: missing username": "The user name is missing; send it in base64",
};

/** Commands of SMTP and its extensions, which a server that does not have them answers with 502 (RFC 5321 §4.2.4). */
const notImplemented = new Set("EXPN SEND SOML SAML TURN ETRN ATRN BDAT BURL AUTH STARTTLS".split(" "));

export interface CorrectedReply {
  code: number;
  /** null: smtp-server's own is right. */
  enhanced: string | null;
  text: string;
}

/** `context` as smtp-server gives it: of an unknown command, its name. */
export function correctedReply(
  code: number,
  text: string,
  context: string | false | undefined,
): CorrectedReply {
  if (text.startsWith("Error: message exceeds fixed maximum message size"))
    return { code, enhanced: null, text: "The mail exceeds the maximum size of 26,214,400 bytes" };
  if (text === "Error: command not recognized" && typeof context === "string" && notImplemented.has(context))
    return {
      code: 502,
      enhanced: "5.5.1",
      text: `${context} is not supported; EHLO lists what is`,
    };
  const better = corrections[text] ?? text.replace(/^Error: /, "");
  return typeof better === "string" ? { code, enhanced: null, text: better } : better;
}

/** RFC 5321 §4.5.3.1.5: 512 octets a reply line, its code, status and CRLF among them. */
const maxTextLength = 440;

/** One line of printable ASCII (RFC 5321 §4.2 textstring). */
function replyText(sentence: string): string {
  const line = sentence
    .replace(/[\s\p{Cc}]+/gu, " ")
    .replace(/[^\x20-\x7e]/g, "?")
    .trim();
  return line.length > maxTextLength ? `${line.slice(0, maxTextLength - 3)}...` : line;
}

/** The reply for an error that is expected; null for one that is a bug. */
export function replyTo(error: unknown): SmtpReply | null {
  if (error instanceof SmtpReply) return error;
  if (error instanceof Refusal) return refusalReply(error);
  if (error instanceof MailTooLarge) return new SmtpReply(552, "5.3.4", error.message);
  if (error instanceof MailSyntaxError) return syntaxReply(error);
  if (error instanceof StoreUnavailable)
    return error.why === "full"
      ? new SmtpReply(452, "4.3.1", "Insufficient storage for more mail; try again later")
      : new SmtpReply(451, "4.3.0", "The mail could not be stored; try again later");
  return null;
}

function syntaxReply({ code, message }: MailSyntaxError): SmtpReply {
  if (code === "too_many_hops") return new SmtpReply(554, "5.4.6", message);
  return new SmtpReply(550, code === "bare_line_end" ? "5.5.2" : "5.6.0", message);
}

function refusalReply(refusal: Refusal): SmtpReply {
  const { code, enhanced } = errorCatalog[refusal.code].smtp;
  return new SmtpReply(code, enhanced, `${refusalSentence(refusal)} (${refusal.code})`);
}

/** Leaves room behind it for the refusal's code, which programs look for. */
const maxSentenceLength = 390;

function refusalSentence(refusal: Refusal): string {
  const { domain, errors } = refusal.extras;
  const first = errors?.[0];
  if (refusal.code === "sender_not_verified" && domain !== undefined) {
    // A list of all that is wrong in the DNS may be longer than a reply, and must not push the command out.
    return first && first.issue.length <= maxSentenceLength
      ? first.issue
      : `The domain ${domain} is not verified for sending; verify it with: svc domains verify ${domain}`;
  }
  return (first ? `${first.field}: ${first.issue}` : refusal.message).slice(0, maxSentenceLength);
}
