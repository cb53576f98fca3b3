// Whether the certificate that a mail host showed matches its TLSA records (RFC 7672 §3, RFC 7671). Usage 3 is about the
// host's own certificate, whatever names and dates stand in it; usage 2 about an authority above it, and then names and
// dates count. Pure. A server chooses which certificates it sends beside its own, and in which order (RFC 8446 §4.4.2), so they
// and the signatures that are checked are few.
import { hash } from "node:crypto";
import type { X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import type { TlsaRecord } from "../dns/tlsa.ts";
import { safeText } from "../mail/reply.ts";
import type { HostTls } from "./tls-policy.ts";

/** Certificates of a server that are read: more are not in use. */
const maxSent = 10;
/** Signatures that are checked: each certificate's by its issuer, and a few by others of the same name. */
const maxSignatures = 12;

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
  const sent = sentWith(leaf);
  const anchoring = new Set(sent.filter((certificate) => anchors.some(matcher(certificate))));
  if (anchoring.size === 0) return "neither its certificate nor one above it matches its TLSA records";
  const problem = pathProblem(leaf, sent, anchoring, now);
  if (problem !== null) return problem;
  return names.some((name) => leaf.checkHost(name) !== undefined)
    ? null
    : `its certificate is not for ${names.join(" or ")}`;
}

/** The certificates as the server sent them, its own first. */
function sentWith(leaf: X509Certificate): X509Certificate[] {
  const sent: X509Certificate[] = [];
  for (let at: X509Certificate | undefined = leaf; at && sent.length < maxSent; at = at.issuerCertificate)
    sent.push(at);
  return sent;
}

/** Why no path of signatures leads from the leaf to one of `anchoring`, each certificate within its dates; null: one does. */
function pathProblem(
  leaf: X509Certificate,
  sent: readonly X509Certificate[],
  anchoring: ReadonlySet<X509Certificate>,
  now: number,
): string | null {
  let problem = "its certificate is not signed by the authority that its TLSA records name";
  let signatures = 0;
  const open = [leaf];
  const seen = new Set(open);
  for (let at = open.pop(); at; at = open.pop()) {
    const dates = dateProblem(at, now);
    if (dates !== null) problem = dates;
    else if (anchoring.has(at)) return null;
    else
      for (const issuer of sent) {
        if (seen.has(issuer) || !issuer.ca || !at.checkIssued(issuer)) continue;
        if (++signatures > maxSignatures) return problem;
        if (!at.verify(issuer.publicKey)) continue;
        seen.add(issuer);
        open.push(issuer);
      }
  }
  return problem;
}

function dateProblem(certificate: X509Certificate, now: number): string | null {
  if (now < certificate.validFromDate.getTime()) return "a certificate of its chain is not valid yet";
  if (now > certificate.validToDate.getTime()) return "a certificate of its chain has expired";
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
