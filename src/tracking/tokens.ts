// The tokens of tracked links: what a request at /o/, /c/ or /u/ is about, signed, so that a link needs no row of its own
// and nobody can make one. The target of a click is in the token, never in a query. Content: the number of the key, flags,
// the message's id (16 bytes), the row ids of the account and of the recipient; then of a click its target, of an unsubscribe
// the address, so that it works when the message is gone. Then 16 bytes of HMAC-SHA256 over purpose, NUL and content, all of it base64url
// (RFC 4648 §5) in its one canonical spelling.
import { timingSafeEqual } from "node:crypto";
import { idBytes, idOfBytes } from "../ids.ts";
import { readVarint, writeVarint } from "../mail/varint.ts";
import type { TokenRecipient } from "../model/tracking.ts";
import type { TrackingKeys } from "./keys.ts";

export type TokenPurpose = "open" | "click" | "unsubscribe";

/** What a token says. */
export interface TokenContent {
  accountKey: number;
  messageId: string;
  recipientKey: number;
  test: boolean;
  /** Of a click: the exact Location. */
  target: string;
  /** Of an unsubscribe: the address as the sender wrote it. */
  email: string;
}

export interface TrackingTokens {
  open(recipient: TokenRecipient): string;
  /** `target`: the exact Location, printable ASCII, at most `maxTarget` octets. */
  click(recipient: TokenRecipient, target: string): string;
  unsubscribe(recipient: TokenRecipient): string;
  /** Null for a token that was not made for this purpose, whatever is wrong with it. */
  read(purpose: TokenPurpose, token: string): TokenContent | null;
}

/** The longest target of a tracked link; a longer one is left alone (mail/html-places.ts, tracking/copies.ts). */
export const maxTarget = 4_096;

const macBytes = 16;
const idEnd = 2 + 16;
/** The longest token: a click's target, and what stands around it. */
const maxTokenLength = Math.ceil(((maxTarget + idEnd + 16 + macBytes) * 4) / 3);
const testFlag = 1;

/** A token costs about as much as one HMAC. */
export function createTrackingTokens(keys: Pick<TrackingKeys, "newest" | "find">): TrackingTokens {
  const make = (purpose: TokenPurpose, recipient: TokenRecipient, text: string): string => {
    const { number, mac } = keys.newest();
    const varints: number[] = [];
    writeVarint(varints, recipient.accountKey);
    writeVarint(varints, recipient.recipientKey);
    const textAt = idEnd + varints.length;
    const length = textAt + Buffer.byteLength(text);
    const bytes = Buffer.allocUnsafe(length + macBytes);
    bytes[0] = number;
    bytes[1] = recipient.test ? testFlag : 0;
    bytes.set(idBytes(recipient.messageId), 2);
    bytes.set(varints, idEnd);
    bytes.write(text, textAt);
    mac(`${purpose}\0`, bytes.subarray(0, length)).copy(bytes, length, 0, macBytes);
    return bytes.toString("base64url");
  };

  const read = (purpose: TokenPurpose, token: string): TokenContent | null => {
    if (token.length > maxTokenLength) return null;
    const bytes = Buffer.from(token, "base64url");
    // Node skips what is not base64url and drops stray bits: only the one spelling that is made here is taken.
    if (bytes.length <= idEnd + macBytes || bytes.toString("base64url") !== token) return null;
    const length = bytes.length - macBytes;
    const content = bytes.subarray(0, length);
    const key = keys.find(bytes[0] ?? 0);
    if (!key) return null;
    const mac = key.mac(`${purpose}\0`, content).subarray(0, macBytes);
    return timingSafeEqual(mac, bytes.subarray(length)) ? contentOf(purpose, content) : null;
  };

  return {
    open: (recipient) => make("open", recipient, ""),
    click: (recipient, target) => make("click", recipient, target),
    unsubscribe: (recipient) => make("unsubscribe", recipient, recipient.email),
    read,
  };
}

/** Of content whose MAC is right, so that we wrote it. */
function contentOf(purpose: TokenPurpose, content: Buffer): TokenContent | null {
  const account = readVarint(content, idEnd);
  const recipient = account && readVarint(content, account.next);
  if (!recipient) return null;
  const text = content.toString("utf8", recipient.next);
  return {
    accountKey: account.value,
    messageId: idOfBytes("msg", content.subarray(2, idEnd)),
    recipientKey: recipient.value,
    test: ((content[1] ?? 0) & testFlag) !== 0,
    target: purpose === "click" ? text : "",
    email: purpose === "unsubscribe" ? text : "",
  };
}
