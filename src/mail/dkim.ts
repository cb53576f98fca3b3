// DKIM signatures (RFC 6376, Ed25519 by RFC 8463): relaxed/relaxed, SHA-256, one signature a key.
// From, Subject and To are oversigned (§5.4.2, §8.15), so that a second one breaks the signature, and so are
// List-Unsubscribe and its Post where they are there.
// The body is hashed once a message (body-hash.ts); what is left is a header's work an attempt, which signing/ does off
// the loop.
import { createPrivateKey, generateKeyPair, hash, sign, type KeyObject } from "node:crypto";
import { promisify } from "node:util";
import type { DkimAlgorithm } from "../model/dkim-key.ts";
import { parseHeaderSection, type HeaderField } from "./header.ts";

export { BodyHasher } from "./body-hash.ts";

export interface SigningKey {
  /** d=, A-label form. */
  domain: string;
  selector: string;
  algorithm: DkimAlgorithm;
  /** PKCS #8 (or PKCS #1) PEM. */
  privatePem: string;
}

export interface SignInput {
  /** The header section as it goes over the wire; its empty line may be there or not. */
  headerSection: Uint8Array;
  /** BodyHasher's digest. */
  bodyHash: Uint8Array;
  keys: SigningKey[];
  /** Milliseconds since 1970-01-01 UTC. */
  signedAt: number;
}

/** DKIM-Signature fields, CRLF terminated, one a key, in the order of the keys. */
export type SignHeader = (input: SignInput) => Promise<Buffer>;

const oversigned = ["From", "Subject", "To"];
/** RFC 6376 §5.4.1, and both fields of RFC 8058 §4. */
const signedWherePresent = [
  "Date",
  "Message-ID",
  "MIME-Version",
  "Content-Type",
  "Content-Transfer-Encoding",
  "Reply-To",
  "Cc",
  "List-Unsubscribe",
  "List-Unsubscribe-Post",
  "References",
  "In-Reply-To",
];
/** Signed once more than they are there, where they are: a second one would offer another way out of the list. */
const oversignedWherePresent = ["List-Unsubscribe", "List-Unsubscribe-Post"];
const maxCachedKeys = 1_000;

/** Makes a signer with its own bounded cache of parsed keys. An RSA signature blocks its thread for 0.2 to 0.5 ms. */
export function createSigner(): (input: SignInput) => Buffer {
  const parsed = new Map<string, KeyObject>();

  const keyObject = (pem: string): KeyObject => {
    const known = parsed.get(pem);
    if (known !== undefined) return known;
    const fresh = createPrivateKey(pem);
    if (parsed.size >= maxCachedKeys) {
      for (const oldest of parsed.keys()) {
        parsed.delete(oldest);
        break;
      }
    }
    parsed.set(pem, fresh);
    return fresh;
  };

  return ({ headerSection, bodyHash, keys, signedAt }) => {
    const signed = selectFields(parseHeaderSection(headerSection));
    const bodyHashText = Buffer.from(bodyHash).toString("base64");
    const fields = keys.map((key) => {
      const unsigned = signatureField(key, signed.names, bodyHashText, signedAt);
      const data = Buffer.from(signed.canonical + relaxedField(unsigned), "latin1");
      const value = signData(key.algorithm, data, keyObject(key.privatePem));
      return `${unsigned}${foldBase64(value.toString("base64"))}\r\n`;
    });
    return Buffer.from(fields.join(""), "latin1");
  };
}

/** The h= list and the relaxed header that it names, the last field of a name first (RFC 6376 §5.4.2). */
function selectFields(fields: HeaderField[]): { names: string[]; canonical: string } {
  const byName = new Map<string, HeaderField[]>();
  for (const field of fields) {
    const same = byName.get(field.lower);
    if (same === undefined) byName.set(field.lower, [field]);
    else same.unshift(field);
  }
  const names: string[] = [];
  let canonical = "";
  for (const name of [...oversigned, ...signedWherePresent]) {
    for (const field of byName.get(name.toLowerCase()) ?? []) {
      names.push(name);
      canonical += `${relaxedField(field.raw.toString("latin1"))}\r\n`;
    }
  }
  const again = oversignedWherePresent.filter((name) => byName.has(name.toLowerCase()));
  return { names: [...names, ...oversigned, ...again], canonical };
}

/** RFC 6376 §3.4.2, without the final CRLF. Octets as latin1, so that UTF-8 passes unchanged. */
function relaxedField(raw: string): string {
  const colon = raw.indexOf(":");
  const name = raw.slice(0, colon).trimEnd().toLowerCase();
  const value = raw.slice(colon + 1).replace(/\r\n/g, "");
  return `${name}:${relaxedValue(value)}`;
}

function relaxedValue(value: string): string {
  const reduced = value.replace(/[ \t]+/g, " ");
  const from = reduced.startsWith(" ") ? 1 : 0;
  const to = reduced.endsWith(" ") ? reduced.length - 1 : reduced.length;
  return reduced.slice(from, Math.max(from, to));
}

/** The field up to `b=`, folded so that no line is over 78 octets. */
function signatureField(key: SigningKey, names: string[], bodyHash: string, signedAt: number): string {
  const tags = [
    "v=1;",
    `a=${key.algorithm};`,
    "c=relaxed/relaxed;",
    `d=${key.domain};`,
    `s=${key.selector};`,
  ];
  tags.push(`t=${Math.floor(signedAt / 1000)};`);
  const list = names.map((name, i) => `${i === 0 ? "h=" : ""}${name}${i === names.length - 1 ? ";" : ":"}`);
  let text = "DKIM-Signature:";
  let length = text.length;
  const add = (piece: string, glue: string): void => {
    const fits = length + glue.length + piece.length <= 78;
    text += fits ? glue + piece : `\r\n ${piece}`;
    length = fits ? length + glue.length + piece.length : piece.length + 1;
  };
  for (const tag of tags) add(tag, " ");
  list.forEach((piece, i) => add(piece, i === 0 ? " " : ""));
  add(`bh=${bodyHash};`, " ");
  return `${text}\r\n b=`;
}

function foldBase64(text: string): string {
  return (text.match(/.{1,72}/g) ?? []).join("\r\n ");
}

function signData(algorithm: DkimAlgorithm, data: Buffer, key: KeyObject): Buffer {
  // RFC 8463 §3: PureEdDSA over the SHA-256 of the data.
  if (algorithm === "ed25519-sha256") return sign(null, hash("sha256", data, "buffer"), key);
  return sign("sha256", data, key);
}

const generate = promisify(generateKeyPair);

/** A new key: PKCS #8 PEM, and the public key as it stands in the record (base64; RFC 8463 §4 for Ed25519). */
export async function generateDkimKey(
  algorithm: DkimAlgorithm,
): Promise<{ privatePem: string; publicKey: string }> {
  const rsa = algorithm === "rsa-sha256";
  const pair = rsa ? await generate("rsa", { modulusLength: 2048 }) : await generate("ed25519");
  const spki = pair.publicKey.export({ type: "spki", format: "der" });
  // The last 32 octets of an Ed25519 SPKI are the key itself (RFC 8410 §4).
  const publicKey = (rsa ? spki : spki.subarray(-32)).toString("base64");
  return { privatePem: pair.privateKey.export({ type: "pkcs8", format: "pem" }).toString(), publicKey };
}

/** The TXT value of `<selector>._domainkey.<domain>` (RFC 6376 §3.6.1). */
export function dkimRecordValue(algorithm: DkimAlgorithm, publicKey: string): string {
  return `v=DKIM1; k=${algorithm === "rsa-sha256" ? "rsa" : "ed25519"}; p=${publicKey}`;
}
