// Why an ACME server did not issue: its problem document (RFC 8555 §6.7, RFC 7807), or what became of the request. The
// scope says what backs off: a refusal that is about the name does not keep other names waiting.
import { dayMs } from "../../clock.ts";
import { unsafeCharacters } from "../../unsafe-text.ts";

export type AcmeScope = "name" | "directory";

export class AcmeError extends Error {
  readonly type: string | null;
  readonly scope: AcmeScope;
  /** How long the server asks to be left alone, at most a week. */
  readonly retryAfterMs: number;

  constructor(
    message: string,
    {
      type = null,
      scope = "directory",
      retryAfterMs = 0,
    }: { type?: string | null; scope?: AcmeScope; retryAfterMs?: number } = {},
  ) {
    super(message);
    this.type = type;
    this.scope = scope;
    this.retryAfterMs = retryAfterMs;
  }
}

const prefix = "urn:ietf:params:acme:error:";
/** What is about our account or the server. All else, limits included, is about the name or its domain. */
const ofDirectory = new Set([
  "accountDoesNotExist",
  "badNonce",
  "badPublicKey",
  "badSignatureAlgorithm",
  "externalAccountRequired",
  "invalidContact",
  "serverInternal",
  "unsupportedContact",
  "userActionRequired",
]);
const longestText = 300;
const mostSubproblems = 3;
const longestWaitMs = 7 * dayMs;

/** Text of the server for the operator's eyes: one short line without characters that a terminal obeys. */
export function said(text: unknown): string {
  if (typeof text !== "string") return "";
  const line = text
    .slice(0, 4 * longestText)
    .replace(unsafeCharacters, " ")
    .replace(/\s+/g, " ")
    .trim();
  return line.length > longestText ? `${line.slice(0, longestText)}…` : line;
}

/** Of an answer other than success, or of the error in an order, an authorization or a challenge. */
export function problemOf(
  body: unknown,
  { status, retryAfter, now }: { status: number | null; retryAfter: string | undefined; now: number },
): AcmeError {
  const { type, detail, subproblems } = fieldsOf(body);
  const short = typeof type === "string" && type.startsWith(prefix) ? said(type.slice(prefix.length)) : null;
  const more = (Array.isArray(subproblems) ? subproblems.slice(0, mostSubproblems) : [])
    .map((one) => `${said(fieldsOf(fieldsOf(one)["identifier"])["value"])}: ${said(fieldsOf(one)["detail"])}`)
    .join("; ");
  const words = [said(detail), more].filter((text) => text !== "").join("; ");
  const what = short ?? (status === null ? "no reason" : `status ${status}`);
  const isServer = (status ?? 0) >= 500 || short === null || ofDirectory.has(short);
  return new AcmeError(words === "" ? what : `${what}: ${words}`, {
    type: short,
    scope: isServer ? "directory" : "name",
    retryAfterMs: Math.min(retryAfterMs(retryAfter, now) ?? 0, longestWaitMs),
  });
}

/** Retry-After (RFC 9110 §10.2.3); null: there is none that can be read. */
export function retryAfterMs(value: string | undefined, now: number): number | null {
  if (value === undefined || value.length > 64) return null;
  if (/^\d{1,10}$/.test(value)) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}

export function fieldsOf(value: unknown): Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}
