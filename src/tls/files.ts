// A certificate and its key as PEM texts, shown to belong together before anything listens with them: a renewal that
// replaced only one of the two files must not take the listeners down.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { createSecureContext } from "node:tls";

export interface CertificatePair {
  /** The chain, the host's own certificate first (PEM). */
  cert: string;
  key: string;
  /** The host's own. */
  leaf: X509Certificate;
  /** Milliseconds since 1970. */
  validFrom: number;
  validUntil: number;
  /** Whether it names this host or address. */
  covers(name: string): boolean;
}

/** Throws an Error that names the file and what is wrong with it. */
export async function readCertificateFiles(certFile: string, keyFile: string): Promise<CertificatePair> {
  const [cert, key] = await Promise.all([read(certFile), read(keyFile)]);
  return certificatePair(cert, key, { cert: certFile, key: keyFile });
}

/** `from`: where each text is from, for the Error that says what is wrong with it. */
export function certificatePair(
  cert: string,
  key: string,
  from: { cert: string; key: string },
): CertificatePair {
  const leaf = parsed(from.cert, "is not a certificate in PEM form", () => new X509Certificate(cert));
  const privateKey = parsed(from.key, "is not a private key in PEM form without a passphrase", () =>
    createPrivateKey(key),
  );
  if (!leaf.checkPrivateKey(privateKey))
    throw new Error(`${from.key} is not the key of the first certificate in ${from.cert}`);
  // What a listener will do with them; finds a broken certificate further down the chain.
  parsed(from.cert, "cannot be used by TLS", () => createSecureContext({ cert, key }));
  return {
    cert,
    key,
    leaf,
    validFrom: leaf.validFromDate.getTime(),
    validUntil: leaf.validToDate.getTime(),
    covers: (name) => (isIP(name) === 0 ? leaf.checkHost(name) : leaf.checkIP(name)) !== undefined,
  };
}

/**
 * Both are on disk before either has its place. The folders are the operator's, and stay as they are. Throws an Error that
 * says what to do.
 */
export async function writeCertificateFiles(
  certFile: string,
  keyFile: string,
  { cert, key }: Pick<CertificatePair, "cert" | "key">,
): Promise<void> {
  const texts =
    certFile === keyFile
      ? [{ file: certFile, text: `${cert.trim()}\n${key}` }]
      : [
          { file: keyFile, text: key },
          { file: certFile, text: cert },
        ];
  try {
    for (const { file, text } of texts) {
      await rm(`${file}.new`, { force: true });
      await writeFile(`${file}.new`, text, { mode: 0o600, flag: "wx", flush: true });
    }
    for (const { file } of texts) await rename(`${file}.new`, file);
  } catch (error) {
    throw new Error(
      `the service may not write the files of tls.cert and tls.key (${error instanceof Error ? error.message : String(error)}): put them there as root; they are noticed within a minute`,
      { cause: error },
    );
  }
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

function parsed<T>(origin: string, complaint: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new Error(`${origin} ${complaint}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}
