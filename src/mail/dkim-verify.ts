// The DKIM signatures of a mail that came in (RFC 6376, Ed25519 by RFC 8463), checked in two steps: the claims, which
// need the mail and no DNS (body hash, canonical header), and one claim against the published key. A claim is only made
// where the body hash is right, the From is signed and there is only one. Signatures over a part of the body (l=, §8.2)
// and SHA-1 (RFC 8301) prove nothing. Whose signature counts for what is feedback/loops.ts.
import { createHash, createPublicKey, hash, verify, type KeyObject } from "node:crypto";
import type { DkimAlgorithm } from "../model/dkim-key.ts";
import { BodyHasher } from "./body-hash.ts";
import { parseHeaderSection, type HeaderField } from "./header.ts";

/** A signature whose body hash is right; what is left is the key. */
export interface SignatureClaim {
  /** d=, lower case. */
  domain: string;
  selector: string;
  algorithm: DkimAlgorithm;
  /** The canonical header that was signed, octets as Latin-1. */
  signed: string;
  /** b=, base64. */
  signature: string;
  /** x=, milliseconds since 1970; null: it does not expire. */
  expiresAt: number | null;
}

const maxSignatures = 5;
const maxFieldLength = 8_000;
const longestHeader = 131_072;
const maxNames = 200;
const endOfHeader = Buffer.from("\r\n\r\n");
const hostForm = /^[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_])?$/;
const base64Form = /^[A-Za-z0-9+/]{1,1400}={0,2}$/;

/** Of the first five signatures of a mail (CRLF line ends) those that verify as far as the mail alone shows. Never throws. */
export function signatureClaims(mail: Uint8Array): SignatureClaim[] {
  const bytes = Buffer.from(mail.buffer, mail.byteOffset, mail.byteLength);
  const end = bytes.subarray(0, longestHeader).indexOf(endOfHeader);
  if (end < 0) return [];
  const fields = fieldsOf(bytes.subarray(0, end + 2));
  if (fields.filter(({ lower }) => lower === "from").length !== 1) return [];
  const bodyHash = bodyHashes(bytes.subarray(end + 4));
  return fields
    .filter(({ lower, raw }) => lower === "dkim-signature" && raw.length <= maxFieldLength)
    .slice(0, maxSignatures)
    .flatMap((field) => claimOf(field, fields, bodyHash) ?? []);
}

/** Whether the claim's signature is that of the key in this TXT record (RFC 6376 §3.6.1). Checked outside of the loop. */
export async function signatureHolds(claim: SignatureClaim, record: string): Promise<boolean> {
  const key = publishedKey(claim.algorithm, record);
  if (key === null) return false;
  const signed = Buffer.from(claim.signed, "latin1");
  const rsa = claim.algorithm === "rsa-sha256";
  const data = rsa ? signed : hash("sha256", signed, "buffer");
  return new Promise((resolve) =>
    verify(rsa ? "sha256" : null, data, key, Buffer.from(claim.signature, "base64"), (error, holds) =>
      resolve(error === null && holds),
    ),
  );
}

function fieldsOf(section: Buffer): HeaderField[] {
  try {
    return parseHeaderSection(section);
  } catch {
    return []; // no header that anybody signs
  }
}

type Canonical = "simple" | "relaxed";

function claimOf(
  field: HeaderField,
  fields: readonly HeaderField[],
  bodyHash: (form: Canonical) => string,
): SignatureClaim | null {
  const tags = tagsOf(field.value);
  const tag = (name: string): string => tags.get(name) ?? "";
  const [headerForm = "simple", bodyForm = "simple"] = (tag("c") || "simple").toLowerCase().split("/");
  const names = tag("h").toLowerCase().split(":");
  const algorithm = tag("a").toLowerCase();
  const domain = tag("d").toLowerCase();
  const selector = tag("s").toLowerCase();
  if (tag("v") !== "1" || tags.has("l") || !names.includes("from") || names.length > maxNames) return null;
  if (algorithm !== "rsa-sha256" && algorithm !== "ed25519-sha256") return null;
  if (!isCanonical(headerForm) || !isCanonical(bodyForm)) return null;
  if (!hostForm.test(domain) || !hostForm.test(selector) || !base64Form.test(tag("b"))) return null;
  if (bodyHash(bodyForm) !== tag("bh")) return null;
  const expiry = /^\d{1,12}$/.test(tag("x")) ? Number(tag("x")) * 1000 : null;
  return {
    domain,
    selector,
    algorithm,
    signed: signedHeader(field, fields, names, headerForm),
    signature: tag("b"),
    expiresAt: expiry,
  };
}

const isCanonical = (text: string): text is Canonical => text === "simple" || text === "relaxed";

/** RFC 6376 §3.2; white space within values is removed from those that are used. */
function tagsOf(value: string): Map<string, string> {
  const tags = new Map<string, string>();
  for (const pair of value.split(";")) {
    const equals = pair.indexOf("=");
    const name = pair.slice(0, Math.max(0, equals)).trim();
    if (name !== "" && !tags.has(name)) tags.set(name, pair.slice(equals + 1).replace(/\s+/g, ""));
  }
  return tags;
}

/** RFC 6376 §3.7: the named fields, of one name from the bottom up, then the signature's own without its b=. */
function signedHeader(
  own: HeaderField,
  fields: readonly HeaderField[],
  names: readonly string[],
  form: Canonical,
): string {
  const left = new Map<string, HeaderField[]>();
  for (const field of fields) {
    const same = left.get(field.lower);
    if (same) same.push(field);
    else left.set(field.lower, [field]);
  }
  let text = "";
  for (const name of names) {
    const field = left.get(name.trim())?.pop();
    if (field) text += `${canonicalField(field.raw.toString("latin1"), form)}\r\n`;
  }
  const bare = own.raw.toString("latin1").replace(/((?:;|^[^:]*:)[ \t\r\n]*b[ \t\r\n]*=)[^;]*/, "$1");
  return text + canonicalField(bare, form).replace(/\r\n$/, "");
}

/** RFC 6376 §3.4.1 and §3.4.2, without the final CRLF. */
function canonicalField(raw: string, form: Canonical): string {
  if (form === "simple") return raw.replace(/\r\n$/, "");
  const colon = raw.indexOf(":");
  const value = raw
    .slice(colon + 1)
    .replace(/\r\n/g, "")
    .replace(/[ \t]+/g, " ");
  return `${raw.slice(0, colon).trimEnd().toLowerCase()}:${value.trim()}`;
}

/** Each form is hashed once, however many signatures name it. */
function bodyHashes(body: Buffer): (form: Canonical) => string {
  const made = new Map<Canonical, string>();
  return (form) => {
    const known = made.get(form);
    if (known !== undefined) return known;
    const digest = form === "relaxed" ? relaxedHash(body) : simpleHash(body);
    made.set(form, digest);
    return digest;
  };
}

function relaxedHash(body: Buffer): string {
  const hasher = new BodyHasher();
  hasher.update(body);
  return hasher.digest().toString("base64");
}

/** RFC 6376 §3.4.3: empty lines at the end are one line end, and so is an empty body. */
function simpleHash(body: Buffer): string {
  let end = body.length;
  while (end >= 2 && body[end - 1] === 10 && body[end - 2] === 13) end -= 2;
  return createHash("sha256").update(body.subarray(0, end)).update("\r\n").digest("base64");
}

/** SubjectPublicKeyInfo of an Ed25519 key but for its 32 octets (RFC 8410 §4). */
const ed25519Prefix = Buffer.from("302a300506032b6570032100", "hex");

function publishedKey(algorithm: SignatureClaim["algorithm"], record: string): KeyObject | null {
  const tags = tagsOf(record.slice(0, maxFieldLength));
  const p = tags.get("p") ?? "";
  const kind = algorithm === "rsa-sha256" ? "rsa" : "ed25519";
  if ((tags.get("v") ?? "DKIM1") !== "DKIM1" || (tags.get("k") ?? "rsa").toLowerCase() !== kind || p === "")
    return null;
  const bytes = Buffer.from(p, "base64");
  try {
    const der = kind === "rsa" || bytes.length !== 32 ? bytes : Buffer.concat([ed25519Prefix, bytes]);
    const key = createPublicKey({ key: der, format: "der", type: "spki" });
    const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
    const fits = kind === "rsa" ? bits >= 1024 && bits <= 8192 : true;
    return key.asymmetricKeyType === kind && fits ? key : null;
  } catch {
    return null;
  }
}
