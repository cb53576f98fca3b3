// The certificate that every listener shows, and word of its change. Two sources: the operator's
// files (files.ts) or one that we sign ourselves (self-signed.ts). At the start an unusable file is an error; later,
// the certificate that stands goes on. Listeners swap their own context; jobs and SIGHUP ask for the reload.
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Log } from "../log.ts";
import type { Certificates } from "./certificates.ts";
import { readCertificateFiles } from "./files.ts";
import type { CertificatePair } from "./files.ts";
import { keepSelfSigned } from "./self-signed.ts";

export interface CertificatesDeps {
  /** `off` has no certificate: it is not called then. */
  config: Omit<Config["tls"], "trackingCertificates">;
  /** A self-signed pair is kept in its folder `tls`: cert.pem and key.pem. */
  dataDir: string;
  hostname: string;
  /** Further host names and addresses of a self-signed certificate. */
  altNames: string[];
  clock: Clock;
  log: Log;
}

/** Throws an Error in plain words where the configured files are unusable. */
export async function openCertificates(deps: CertificatesDeps): Promise<Certificates> {
  const load = (): Promise<CertificatePair> =>
    deps.config.mode === "files" ? loadFiles(deps) : keepSelfSigned(deps);
  const listeners = new Set<() => void>();
  let pair = await load();
  let reloading: Promise<Error | null> | null = null;

  const reload = async (): Promise<Error | null> => {
    try {
      const next = await load();
      if (next.cert === pair.cert && next.key === pair.key) return null;
      pair = next;
    } catch (error) {
      const problem = error instanceof Error ? error : new Error(String(error));
      deps.log.warn({ problem: problem.message }, "the new certificate is unusable; the old one stays");
      return problem;
    }
    deps.log.info({ until: pair.validUntil }, "the certificate changed");
    for (const listener of listeners) listener();
    return null;
  };

  return {
    current: () => ({ key: pair.key, cert: pair.cert }),
    covers: (name) => pair.covers(name),
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    reload: () => (reloading ??= reload().finally(() => (reloading = null))),
  };
}

async function loadFiles({ config, hostname, clock, log }: CertificatesDeps): Promise<CertificatePair> {
  if (config.cert === null || config.key === null)
    throw new Error("tls.mode is files: tls.cert and tls.key must each name a file");
  const pair = await readCertificateFiles(config.cert, config.key);
  const now = clock.now();
  if (pair.validUntil <= now || pair.validFrom > now)
    log.warn({ file: config.cert, until: pair.validUntil }, "the certificate is not valid at this time");
  else if (!pair.covers(hostname))
    log.warn({ file: config.cert, hostname }, "the certificate does not name this host");
  return pair;
}
