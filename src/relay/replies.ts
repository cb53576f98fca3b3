// What a mail program is told when something is not done: one line with an enhanced status code
// (RFC 3463). The refusals of both doors come from the catalogue (errors.ts); our own trouble is always
// 4yz, so that the client keeps the mail and tries again (RFC 5321 §4.2.1).
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

/** What smtp-server says of a refused command, with what mends it; VRFY in plain words (RFC 5321 §3.5.3). */
const mended: Record<string, string> = {
  "Try to send something. No promises though":
    "Addresses are not verified; send the mail, and its delivery is attempted",
  "Error: command not recognized": "This command is not known here; EHLO lists what is offered",
  "Error: send HELO/EHLO first": "Send EHLO first",
  "Error: Bad hostname syntax": "EHLO needs the name of your host",
  "Error: Bad sender address syntax": "Not a sender: write MAIL FROM:<local@domain>, or <> for none",
  "Error: Bad recipient address syntax": "Not a recipient: write RCPT TO:<local@domain>",
  "Error: nested MAIL command": "A mail is begun already; end it with DATA or RSET",
  "Error: need MAIL command": "No sender was accepted; send MAIL first",
  "Error: need RCPT command": "No recipient was accepted; send RCPT first",
  "Error: too many recipients": "A mail has at most 100 recipients here; send the others in another one",
  "Error: Must issue a STARTTLS command first": "A login is only taken under TLS; send STARTTLS first",
  "Error: TLS already active": "This session is under TLS already",
  "Error: No identity changes permitted": "This session is logged in already; go on with MAIL",
  "Error: Unrecognized authentication type": "This mechanism is not offered; use AUTH PLAIN or AUTH LOGIN",
  "Error: invalid userdata":
    "The login is malformed: AUTH PLAIN sends NUL, user name, NUL, password in base64",
  "Error: missing username": "The user name is missing; send it in base64",
};

export function helpful(text: string): string {
  if (text.startsWith("Error: message exceeds fixed maximum message size"))
    return "The mail is larger than the 26,214,400 bytes that are taken";
  return mended[text] ?? text.replace(/^Error: /, "");
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
      ? new SmtpReply(452, "4.3.1", "There is no room for more mail now; try again later")
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
