// A certificate of our own for a host that has none yet: ECDSA P-256, kept in <dataDir>/tls, made
// again when it is about to expire, does not name this host, or cannot be read. No client trusts it unasked; it is not
// a CA, so that it is worth nothing but this host. @peculiar/x509 is loaded only when one is made: it costs
// tens of milliseconds that `svc --version` must not pay.
import { KeyObject } from "node:crypto";
import { isIP } from "node:net";
import { join } from "node:path";
import { dayMs, hourMs, type Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import { readCertificateFiles } from "./files.ts";
import type { CertificatePair } from "./files.ts";
import { replaceFile } from "./stored-pair.ts";

export interface SelfSignedDeps {
  dataDir: string;
  hostname: string;
  altNames: string[];
  clock: Clock;
  log: Log;
}

/** The longest life that common clients accept. */
const lifeDays = 825;
const renewDaysBefore = 30;

/** The pair in <dataDir>/tls, or a new one in its place. Throws where the folder cannot be written. */
export async function keepSelfSigned(deps: SelfSignedDeps): Promise<CertificatePair> {
  const folder = join(deps.dataDir, "tls");
  const names = [...new Set([deps.hostname, "localhost", "127.0.0.1", "::1", ...deps.altNames])];
  return keepPair(folder, names, deps);
}

/** null: there is none, or it cannot be used. */
export async function readSelfSigned(dataDir: string): Promise<CertificatePair | null> {
  const { certFile, keyFile } = filesIn(join(dataDir, "tls"));
  return readCertificateFiles(certFile, keyFile).catch(() => null);
}

const filesIn = (folder: string) => ({
  certFile: join(folder, "cert.pem"),
  keyFile: join(folder, "key.pem"),
});

/** The pair of this folder, or a new one for these names in its place. */
export async function keepPair(
  folder: string,
  names: string[],
  deps: Pick<SelfSignedDeps, "clock" | "log">,
): Promise<CertificatePair> {
  const { certFile, keyFile } = filesIn(folder);
  const kept = await readCertificateFiles(certFile, keyFile).catch(() => null);
  if (kept && isFresh(kept, deps.clock.now()) && names.every((name) => kept.covers(name))) return kept;

  const made = await makeSelfSigned(names, deps.clock.now());
  // A crash between the two leaves a pair that does not match, which is replaced at the next start.
  await replaceFile(keyFile, made.key);
  await replaceFile(certFile, made.cert);
  deps.log.info({ file: certFile, names }, "a self-signed certificate was made");
  return readCertificateFiles(certFile, keyFile);
}

function isFresh(pair: CertificatePair, now: number): boolean {
  return pair.validFrom <= now && pair.validUntil - now > renewDaysBefore * dayMs;
}

async function makeSelfSigned(names: string[], now: number): Promise<{ cert: string; key: string }> {
  await import("reflect-metadata"); // x509's decorators need it in place first
  const x509 = await import("@peculiar/x509");
  const keys = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, [
    "sign",
    "verify",
  ]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [(names[0] ?? "localhost").slice(0, 64)] }],
    keys,
    notBefore: new Date(now - hourMs), // a client's clock may be a little behind
    notAfter: new Date(now + lifeDays * dayMs - hourMs),
    signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) === 0 ? "dns" : "ip", value })),
      ),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return {
    cert: `${certificate.toString("pem")}\n`,
    key: KeyObject.from(keys.privateKey).export({ type: "pkcs8", format: "pem" }).toString(),
  };
}
