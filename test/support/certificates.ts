// Certificates of the tests: an authority made at start, and what it signs.
import "reflect-metadata";
import { createHash, webcrypto, X509Certificate } from "node:crypto";
import * as x509 from "@peculiar/x509";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const hour = 3_600_000;

/** PEM texts; `chain` has the authority's certificate after the own one. */
export interface Identity {
  key: string;
  cert: string;
  chain: string;
}

export interface Authority {
  cert: string;
  issue(names: string[], how?: { notAfter?: Date }): Promise<Identity>;
  /** An authority whose certificate this one signs. */
  below(name: string): Promise<Authority>;
}

export async function createAuthority(name: string): Promise<Authority> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const notBefore = new Date(Date.now() - 48 * hour);
  const own = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: "01",
    name: `CN=${name}`,
    notBefore,
    notAfter: new Date(Date.now() + 48 * hour),
    signingAlgorithm: algorithm,
    keys,
    extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
  });
  return authorityOf(own, keys);
}

function authorityOf(own: x509.X509Certificate, keys: webcrypto.CryptoKeyPair): Authority {
  const notBefore = own.notBefore;
  let serial = 1;
  return {
    cert: own.toString("pem"),
    async below(name) {
      const lower = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
      const certificate = await x509.X509CertificateGenerator.create({
        serialNumber: (++serial).toString(16).padStart(2, "0"),
        subject: `CN=${name}`,
        issuer: own.subject,
        notBefore,
        notAfter: own.notAfter,
        signingAlgorithm: algorithm,
        publicKey: lower.publicKey,
        signingKey: keys.privateKey,
        extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
      });
      return authorityOf(certificate, lower);
    },
    async issue(names, { notAfter = new Date(Date.now() + 48 * hour) } = {}) {
      const leaf = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
      const certificate = await x509.X509CertificateGenerator.create({
        serialNumber: (++serial).toString(16).padStart(2, "0"),
        subject: `CN=${names[0]}`,
        issuer: own.subject,
        notBefore,
        notAfter,
        signingAlgorithm: algorithm,
        publicKey: leaf.publicKey,
        signingKey: keys.privateKey,
        extensions: [
          new x509.SubjectAlternativeNameExtension(names.map((value) => ({ type: "dns", value }))),
        ],
      });
      const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", leaf.privateKey)).toString(
        "base64",
      );
      const cert = certificate.toString("pem");
      return {
        key: `-----BEGIN PRIVATE KEY-----\n${pkcs8}\n-----END PRIVATE KEY-----\n`,
        cert,
        chain: `${cert}\n${own.toString("pem")}\n`,
      };
    },
  };
}

/** A TLSA record for a certificate, as `usage selector matching <hex>`. */
export function tlsaOf(pem: string, usage: 2 | 3, selector: 0 | 1 = 1, matching: 0 | 1 | 2 = 1): string {
  const certificate = new X509Certificate(pem);
  const bytes =
    selector === 0 ? certificate.raw : certificate.publicKey.export({ type: "spki", format: "der" });
  const data =
    matching === 0
      ? bytes.toString("hex")
      : createHash(matching === 1 ? "sha256" : "sha512")
          .update(bytes)
          .digest("hex");
  return `${usage} ${selector} ${matching} ${data}`;
}
