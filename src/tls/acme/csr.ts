// The certificate signing request of an order (RFC 8555 §7.4, RFC 2986): a new P-256 key for each certificate, the names
// as subject alternative names, no subject. And the name that renewal information has for a certificate (RFC 9773 §4.1).
import { KeyObject, type X509Certificate } from "node:crypto";

/** Loads @peculiar/x509, which holds the loop for up to a tenth of a second: at the start, before anybody is served. */
export async function library(): Promise<typeof import("@peculiar/x509")> {
  await import("reflect-metadata"); // its decorators need it in place first
  return import("@peculiar/x509");
}

export async function makeRequest(names: readonly string[]): Promise<{ csr: Buffer; key: string }> {
  const x509 = await library();
  const keys = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, [
    "sign",
    "verify",
  ]);
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    keys,
    signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
    extensions: [new x509.SubjectAlternativeNameExtension(names.map((value) => ({ type: "dns", value })))],
  });
  return {
    csr: Buffer.from(request.rawData),
    key: KeyObject.from(keys.privateKey).export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

/** null: the certificate does not name the key of its issuer. */
export async function renewalId(leaf: X509Certificate): Promise<string | null> {
  const x509 = await library();
  const parsed = new x509.X509Certificate(leaf.raw);
  const issuer = parsed.getExtension(x509.AuthorityKeyIdentifierExtension)?.keyId;
  if (issuer === undefined) return null;
  const even = leaf.serialNumber.length % 2 === 0 ? leaf.serialNumber : `0${leaf.serialNumber}`;
  const serial = Buffer.from(even, "hex");
  // As its DER has it: a first byte of 0 where the number would read as negative.
  const der = (serial[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), serial]) : serial;
  return `${Buffer.from(issuer, "hex").toString("base64url")}.${der.toString("base64url")}`;
}
