// A certificate and its key from PEM files, shown to belong together before anything listens with
// them: a renewal that replaced only one of the two files must not take the listeners down.
import { createPrivateKey, X509Certificate } from "node:crypto";
import type { KeyObject } from "node:crypto";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { createSecureContext } from "node:tls";

export interface CertificatePair {
  /** The chain, the host's own certificate first (PEM). */
  cert: string;
  key: string;
  /** Milliseconds since 1970. */
  validFrom: number;
  validUntil: number;
  /** Whether it names this host or address. */
  covers(name: string): boolean;
}

/** Throws an Error that names the file and what is wrong with it. */
export async function readCertificateFiles(certFile: string, keyFile: string): Promise<CertificatePair> {
  const [cert, key] = await Promise.all([read(certFile), read(keyFile)]);
  const leaf = parsed(certFile, "is not a certificate in PEM form", () => new X509Certificate(cert));
  const privateKey = parsed(keyFile, "is not a private key in PEM form without a passphrase", () =>
    createPrivateKey(key),
  );
  return checkedPair({ cert, key, leaf, privateKey, certFile, keyFile });
}

function checkedPair(given: {
  cert: string;
  key: string;
  leaf: X509Certificate;
  privateKey: KeyObject;
  certFile: string;
  keyFile: string;
}): CertificatePair {
  const { cert, key, leaf } = given;
  if (!leaf.checkPrivateKey(given.privateKey)) {
    throw new Error(`${given.keyFile} is not the key of the first certificate in ${given.certFile}`);
  }
  // What a listener will do with them; finds a broken certificate further down the chain.
  parsed(given.certFile, "cannot be used by TLS", () => createSecureContext({ cert, key }));
  return {
    cert,
    key,
    validFrom: leaf.validFromDate.getTime(),
    validUntil: leaf.validToDate.getTime(),
    covers: (name) => (isIP(name) === 0 ? leaf.checkHost(name) : leaf.checkIP(name)) !== undefined,
  };
}

async function read(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new Error(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

function parsed<T>(file: string, complaint: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new Error(`${file} ${complaint}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}
