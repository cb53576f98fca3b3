// The certificate that every listener shows, and word of its change. It comes from the operator's files (files.ts), from
// what an ACME server issued (acme/issuer.ts) or the operator installed (both stored-pair.ts), or we sign one ourselves
// (self-signed.ts), as long as there is none. With tls.mode acme, what was installed is served until the first one is
// issued. At the start an unusable file is an error; later, the certificate that
// stands goes on. Whoever puts another one in its place calls the reload; listeners swap their own context.
import { join } from "node:path";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Log } from "../log.ts";
import type { CertificateSource } from "../model/tls.ts";
import { storedFile } from "./acme/stored-certificates.ts";
import type { Certificates } from "./certificates.ts";
import { readCertificateFiles, readFinished, type CertificatePair } from "./files.ts";
import { keepSelfSigned, readSelfSigned } from "./self-signed.ts";
import { readStored } from "./stored-pair.ts";

export interface CertificatesDeps {
  /** `off` has no certificate: it is not called then. */
  config: Pick<Config["tls"], "mode" | "cert" | "key">;
  /** A self-signed pair is kept in its folder `tls`: cert.pem and key.pem. */
  dataDir: string;
  hostname: string;
  /** Further host names and addresses of a self-signed certificate. */
  altNames: string[];
  clock: Clock;
  log: Log;
}

interface Loaded {
  pair: CertificatePair;
  source: CertificateSource;
}

export interface OwnCertificates extends Certificates {
  shown(): Loaded;
}

export const installedFile = (folder: string): string => join(folder, "installed.pem");

/** Throws an Error in plain words where the configured files are unusable. */
export async function openCertificates(deps: CertificatesDeps): Promise<OwnCertificates> {
  const listeners = new Set<() => void>();
  let shown = await load(deps, null);
  /** One after the other: who has put a new one in its place must not get the result of a look from before. */
  let last: Promise<Error | null> = Promise.resolve(null);
  let lastProblem: string | null = null;

  const reload = async (): Promise<Error | null> => {
    try {
      const next = await load(deps, shown);
      lastProblem = null;
      if (next.pair.cert === shown.pair.cert && next.pair.key === shown.pair.key) return null;
      shown = next;
    } catch (error) {
      const problem = error instanceof Error ? error : new Error(String(error));
      if (problem.message !== lastProblem)
        deps.log.warn({ problem: problem.message }, "the new certificate is unusable; the old one stays");
      lastProblem = problem.message;
      return problem;
    }
    warnOf(shown, deps);
    deps.log.info({ until: shown.pair.validUntil, source: shown.source }, "the certificate changed");
    for (const listener of listeners) listener();
    return null;
  };

  warnOf(shown, deps);
  return {
    current: () => ({ key: shown.pair.key, cert: shown.pair.cert }),
    shown: () => shown,
    covers: (name) => shown.pair.covers(name),
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    reload: () => (last = last.then(reload)),
  };
}

/** What a start would serve, of a service that does not run; nothing is made and nothing changed. null: there is none yet. */
export async function readCertificate(
  deps: Pick<CertificatesDeps, "config" | "dataDir" | "hostname" | "log">,
): Promise<CertificatePair | null> {
  const { cert, key, mode } = deps.config;
  if (mode === "files" && cert !== null && key !== null) return readCertificateFiles(cert, key);
  const kept = await readKept(deps, null);
  return kept?.pair ?? readSelfSigned(deps.dataDir);
}

/** `shown`: what is served; null: nothing yet. */
async function load(deps: CertificatesDeps, shown: Loaded | null): Promise<Loaded> {
  if (deps.config.mode === "files")
    return { pair: await loadFiles(deps.config, shown === null), source: "files" };
  return (await readKept(deps, shown)) ?? { pair: await keepSelfSigned(deps), source: "self-signed" };
}

/** Issued or installed. */
async function readKept(
  deps: Pick<CertificatesDeps, "config" | "dataDir" | "hostname" | "log">,
  shown: Loaded | null,
): Promise<Loaded | null> {
  const { mode } = deps.config;
  const folder = join(deps.dataDir, "tls");
  const kept: { file: string; source: CertificateSource }[] = [
    ...(mode === "acme" ? [{ file: storedFile(folder, deps.hostname), source: "acme" as const }] : []),
    { file: installedFile(folder), source: "installed" },
  ];
  for (const { file, source } of kept) {
    const pair = await readStored(file).catch((error: unknown) => {
      // A file that cannot be read for a moment must not put a self-signed one in the place of what is served.
      if (shown !== null && shown.source !== "self-signed") throw error;
      // Nor may a broken one keep the service from starting.
      deps.log.error({ file, err: error }, "a stored certificate is unusable");
      return null;
    });
    // One that has expired is shown on: a self-signed one would be no better, and hide what is wrong.
    if (pair?.covers(deps.hostname)) return { pair, source };
  }
  return null;
}

async function loadFiles(
  { cert, key }: CertificatesDeps["config"],
  atStart: boolean,
): Promise<CertificatePair> {
  if (cert === null || key === null)
    throw new Error("tls.mode is files: tls.cert and tls.key must each name a file");
  return atStart ? readFinished(cert, key) : readCertificateFiles(cert, key);
}

function warnOf({ pair, source }: Loaded, { config, hostname, clock, log }: CertificatesDeps): void {
  if (source === "self-signed") return;
  const now = clock.now();
  if (pair.validUntil <= now || pair.validFrom > now)
    log.warn({ file: config.cert, until: pair.validUntil }, "the certificate is not valid at this time");
  else if (!pair.covers(hostname))
    log.warn({ file: config.cert, hostname }, "the certificate does not name this host");
}
