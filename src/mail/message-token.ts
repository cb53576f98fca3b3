// The message token: proof that a report speaks of a message of ours. It is the ULID of the message's id and 80 bits of
// HMAC-SHA256 over it, joined by a dot. It stands in the Message-ID of every message that this program composes, and in
// a field of its own in every message that the relay passes on, whose Message-ID may be the client's. An id without the
// MAC proves nothing: ids are shown in Received fields, answers and logs. All recipients of a message see the same
// token, so it does not prove which of them reports; the return path does (return-path.ts).
import { timingSafeEqual } from "node:crypto";
import { base32 } from "./base32.ts";
import { createMac } from "./mac.ts";

/** In what the relay passes on. Removed where a client supplies it. */
export const messageTokenField = "X-Feedback-Token";

/** Not followed by more of the same alphabet, so that no longer word is taken for one. */
export const messageTokenForm = /(?<![0-9a-z.])[0-7][0-9a-hjkmnp-tv-z]{25}\.[a-z2-7]{16}(?![0-9a-z])/i;

const macBytes = 10;
const idPrefix = "msg_";

export interface MessageTokens {
  /** The token of `msg_…`. About 3 µs. */
  of(messageId: string): string;
  /** The id that the token (in any case) was made for; null for one that we did not make. */
  read(token: string): string | null;
}

/** `secret`: that of the return paths, 32 bytes; a purpose of its own keeps the two kinds of MAC apart. */
export function createMessageTokens(secret: Uint8Array): MessageTokens {
  const macOf = createMac(secret);
  const of = (messageId: string): string => {
    const ulid = messageId.slice(idPrefix.length);
    const mac = macOf("message\0", Buffer.from(ulid, "latin1"));
    return `${ulid}.${base32(mac.subarray(0, macBytes))}`;
  };
  return {
    of,
    read(token) {
      const given = token.toLowerCase();
      if (given.length !== 43 || !messageTokenForm.test(given)) return null;
      const messageId = idPrefix + given.slice(0, 26);
      return timingSafeEqual(Buffer.from(of(messageId)), Buffer.from(given)) ? messageId : null;
    },
  };
}

/** The field that carries it, with its final CRLF. */
export function messageTokenHeader(token: string): string {
  return `${messageTokenField}: ${token}\r\n`;
}
