// What a receiver of webhooks does with a request (signature.ts has the rule), and why it fails: where the signature does
// not match, the changes that requests are known to suffer are undone one by one, until it does. What remains unknown is
// either the body or the secret; who has the event as it was sent can tell which.
import { timingSafeEqual } from "node:crypto";
import { secretLength } from "./secret.ts";
import { signature, standardSignature } from "./signature.ts";

/** Receivers refuse a timestamp that is further off. */
export const toleranceSeconds = 300;

export interface ReceivedWebhook {
  /** By lower-case name. */
  headers: ReadonlyMap<string, string>;
  body: Buffer;
  secret: string;
  nowMs: number;
}

export type VerifyCause =
  | "header_missing"
  | "header_malformed"
  | "body_changed"
  | "secret_wrong"
  | "timestamp_changed"
  | "old_secret"
  | "too_old"
  | "too_new"
  | "body_or_secret";

export interface Finding {
  /** The header that it is about. */
  header: string;
  cause: VerifyCause;
  /** What was found, and what to do. */
  said: string;
}

export interface Verdict {
  valid: boolean;
  findings: Finding[];
}

/** The two forms that a request may be signed in (`format` of an endpoint). */
interface Form {
  header: string;
  previous: string | null;
  timestamp: string;
  /** How a signature looks. */
  shape: RegExp;
  expected: string;
  sign(secret: string | Buffer, timestamp: string, body: Buffer): string;
}

const ours: Form = {
  header: "X-Svc-Signature",
  previous: "X-Svc-Signature-Previous",
  timestamp: "X-Svc-Timestamp",
  shape: /^sha256=[0-9a-f]{64}$/,
  expected: "sha256= and 64 hexadecimal digits in lower case",
  sign: signature,
};

function standard(id: string): Form {
  return {
    header: "webhook-signature",
    previous: null,
    timestamp: "webhook-timestamp",
    shape: /^v1,[A-Za-z0-9+/]{43}=$/,
    expected: "v1, and 44 characters of base64",
    sign: (secret, timestamp, body) => standardSignature(secret, id, timestamp, body),
  };
}

export function verifyWebhook(received: ReceivedWebhook): Verdict {
  const { headers } = received;
  const id = headers.get("webhook-id");
  const isStandard = headers.has("webhook-signature");
  const forms: Form[] = [];
  if (headers.has("x-svc-signature") || !isStandard) forms.push(ours);
  if (isStandard) forms.push(standard(id ?? ""));
  const missingId: Finding[] =
    isStandard && id === undefined ? [missing("webhook-id", "the signature is over it")] : [];
  const findings = [...missingId, ...forms.flatMap((form) => findingsOf(form, received))];
  return { valid: findings.every(({ cause }) => cause === "old_secret"), findings };
}

function findingsOf(form: Form, received: ReceivedWebhook): Finding[] {
  const { headers, nowMs } = received;
  const given = headers.get(form.header.toLowerCase());
  const timestamp = headers.get(form.timestamp.toLowerCase());
  const absent = [
    ...(given === undefined
      ? [missing(form.header, "the request is not signed, or a proxy removed it")]
      : []),
    ...(timestamp === undefined ? [missing(form.timestamp, "the signature is over it")] : []),
  ];
  if (given === undefined || timestamp === undefined) return absent;
  const malformed = [...timestampFindings(form, timestamp), ...signatureFindings(form, given)];
  if (malformed.length > 0) return malformed;
  return [...mismatch(form, received, given, timestamp), ...ageOf(form, Number(timestamp), nowMs)];
}

const missing = (header: string, why: string): Finding => ({
  header,
  cause: "header_missing",
  said: `the header is missing: ${why}`,
});

function timestampFindings(form: Form, timestamp: string): Finding[] {
  if (/^\d{9,11}$/.test(timestamp)) return [];
  const hint = /^\d{12,14}$/.test(timestamp) ? "; these are milliseconds" : "";
  const said = `found "${timestamp}", expected seconds since 1970 as they were sent${hint}`;
  return [{ header: form.timestamp, cause: "header_malformed", said }];
}

function signatureFindings(form: Form, given: string): Finding[] {
  if (signaturesIn(given).every((one) => form.shape.test(one))) return [];
  const said = `found "${given}", expected ${form.expected}: the value is not as it was sent`;
  return [{ header: form.header, cause: "header_malformed", said }];
}

/** During a rotation Standard Webhooks has two in one header. */
const signaturesIn = (given: string): string[] => given.split(" ");

function mismatch(form: Form, received: ReceivedWebhook, given: string, timestamp: string): Finding[] {
  const { headers, body, secret } = received;
  const matches = (key: string | Buffer, at: string, bytes: Buffer, value = given): boolean =>
    signaturesIn(value).some((one) => equal(one, form.sign(key, at, bytes)));
  if (matches(secret, timestamp, body)) return [];
  const found = (cause: VerifyCause, said: string): Finding[] => [{ header: form.header, cause, said }];

  const previous = form.previous === null ? undefined : headers.get(form.previous.toLowerCase());
  if (previous !== undefined && matches(secret, timestamp, body, previous))
    return found(
      "old_secret",
      "the secret is the one before the last rotation: it matches X-Svc-Signature-Previous until the overlap ends",
    );
  for (const [how, bytes] of bodies(body))
    if (matches(secret, timestamp, bytes)) return found("body_changed", `the body was changed: ${how}`);
  for (const [how, key] of secrets(secret)) {
    if (matches(key, timestamp, body)) return found("secret_wrong", how);
    for (const [why, bytes] of bodies(body))
      if (matches(key, timestamp, bytes)) return found("body_changed", `${how}; and the body: ${why}`);
  }
  for (const name of ["X-Svc-Timestamp", "webhook-timestamp"]) {
    const other = headers.get(name.toLowerCase());
    if (other !== undefined && name !== form.timestamp && matches(secret, other, body))
      return found("timestamp_changed", `it was made with the value of ${name}, not with ${form.timestamp}`);
  }
  return found("body_or_secret", unknownWords(secret));
}

function unknownWords(secret: string): string {
  const length =
    secret.length === secretLength
      ? ""
      : ` The secret has ${secret.length} characters, and one of svc has ${secretLength}.`;
  return `no match: either the secret is another endpoint's, or the body is not what was sent. Take the raw bytes of the request, before any framework parses them.${length}`;
}

/** What becomes of bodies on their way, undone; each with how it is said. */
function bodies(body: Buffer): [string, Buffer][] {
  const text = body.toString("utf8");
  const compact = compactJson(text);
  const changes: [string, string | null][] = [
    ["a line end was added at its end", withoutLineEnds(text)],
    ["white space was added around it", text.trim()],
    ["its line ends became CRLF", text.replaceAll("\r\n", "\n")],
    ["a byte order mark was put in front", text.replace(/^\uFEFF/, "")],
    ["it was parsed and written again: verify the raw bytes, before any JSON parser", compact],
    [
      "it was read as Latin-1 and written as UTF-8",
      text === body.toString("latin1") ? null : Buffer.from(text, "latin1").toString("utf8"),
    ],
  ];
  return changes.flatMap(([how, changed]): [string, Buffer][] =>
    changed === null || changed === text ? [] : [[how, Buffer.from(changed, "utf8")]],
  );
}

/** One pass: a pattern for the end would begin again at each of many line ends. */
function withoutLineEnds(text: string): string {
  let end = text.length;
  while (text[end - 1] === "\n") end -= text[end - 2] === "\r" ? 2 : 1;
  return text.slice(0, end);
}

function compactJson(text: string): string | null {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return null;
  }
}

/** Secrets that a person might have meant. */
function secrets(secret: string): [string, string | Buffer][] {
  const bare = secret.trim().replace(/^(["'])(.*)\1$/, "$2");
  const encoded = bare.replace(/^whsec_/, "");
  const meant: [string, string | Buffer][] = [
    ["the secret has white space or quotes around it that are not part of it", bare],
    [
      "the secret is in the form of Standard Webhooks (whsec_ and base64): the key is what the base64 decodes to",
      Buffer.from(encoded, "base64"),
    ],
  ];
  return meant.filter(([, key]) => key !== secret && key.length > 0);
}

function ageOf(form: Form, timestamp: number, nowMs: number): Finding[] {
  const age = Math.round(nowMs / 1000) - timestamp;
  if (Math.abs(age) <= toleranceSeconds) return [];
  const said =
    age > 0
      ? `the request was signed ${age} seconds ago, and receivers refuse more than ${toleranceSeconds}: it was replayed or held back, or this clock is fast`
      : `the request is signed ${-age} seconds ahead of this clock, and receivers refuse more than ${toleranceSeconds}: compare the clocks`;
  return [{ header: form.timestamp, cause: age > 0 ? "too_old" : "too_new", said }];
}

function equal(a: string, b: string): boolean {
  const [one, other] = [Buffer.from(a), Buffer.from(b)];
  return one.length === other.length && timingSafeEqual(one, other);
}
