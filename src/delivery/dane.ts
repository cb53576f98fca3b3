// Whether the certificate that a mail host showed matches its TLSA records (RFC 7672 §3, RFC 7671). Usage 3 is about the
// host's own certificate, whatever names and dates stand in it; usage 2 about an authority above it, and then names and
// dates count. Pure. A server chooses how long its chain is, so the steps up it and their signatures are few.
import { hash } from "node:crypto";
import type { X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import type { TlsaRecord } from "../dns/tlsa.ts";
import { safeText } from "../mail/reply.ts";
import type { HostTls } from "./tls-policy.ts";

/** Of a chain that is read: longer ones are not in use. */
const maxChain = 10;

/** Why the certificate of a session matches no record; null: it does. `now`: Unix milliseconds. */
export function daneProblemOf(
  tls: TLSSocket | null,
  { records, names }: Extract<HostTls, { kind: "dane" }>,
  now: number,
): string | null {
  try {
    const leaf = tls?.getPeerX509Certificate();
    return leaf ? daneProblem(leaf, records, names, now) : "it has no certificate";
  } catch (error) {
    return `its certificate cannot be read: ${safeText(String(error))}`;
  }
}

/** `names`: those that a certificate under usage 2 may be for. */
export function daneProblem(
  leaf: X509Certificate,
  records: TlsaRecord[],
  names: string[],
  now: number,
): string | null {
  const own = matcher(leaf);
  if (records.some((record) => record.usage === 3 && own(record))) return null;
  const anchors = records.filter((record) => record.usage === 2);
  if (anchors.length === 0) return "its certificate matches none of its TLSA records";
  const chain = chainOf(leaf);
  const top = chain.findIndex((certificate) => anchors.some(matcher(certificate)));
  if (top === -1) return "neither its certificate nor one above it matches its TLSA records";
  const problem = signatureProblem(chain.slice(0, top + 1), now);
  if (problem !== null) return problem;
  return names.some((name) => leaf.checkHost(name) !== undefined)
    ? null
    : `its certificate is not for ${names.join(" or ")}`;
}

/** The certificates as the server sent them, its own first. */
function chainOf(leaf: X509Certificate): X509Certificate[] {
  const chain: X509Certificate[] = [];
  for (let at: X509Certificate | undefined = leaf; at && chain.length < maxChain; at = at.issuerCertificate)
    chain.push(at);
  return chain;
}

/** Each is within its dates and signed by the next. */
function signatureProblem(chain: X509Certificate[], now: number): string | null {
  for (const [i, certificate] of chain.entries()) {
    if (now < certificate.validFromDate.getTime()) return "a certificate of its chain is not valid yet";
    if (now > certificate.validToDate.getTime()) return "a certificate of its chain has expired";
    const issuer = chain[i + 1];
    if (issuer === undefined) continue;
    if (!issuer.ca || !certificate.checkIssued(issuer) || !certificate.verify(issuer.publicKey))
      return "its certificate is not signed by the authority that its TLSA records name";
  }
  return null;
}

/** Whether a record is of the certificate; each digest is made once, however many records there are. */
function matcher(certificate: X509Certificate): (record: TlsaRecord) => boolean {
  const digests = new Map<string, string>();
  return ({ selector, matching, data }) => {
    const kind = `${selector} ${matching}`;
    const digest = digests.get(kind) ?? digestOf(certificate, selector, matching);
    digests.set(kind, digest);
    return digest === data;
  };
}

function digestOf(certificate: X509Certificate, selector: number, matching: number): string {
  const bytes =
    selector === 0 ? certificate.raw : certificate.publicKey.export({ type: "spki", format: "der" });
  if (matching === 0) return bytes.toString("hex");
  return hash(matching === 1 ? "sha256" : "sha512", bytes);
}
