// The listeners' certificate in the running program: opened at the start, reloaded by SIGHUP and each day by the job
// `renew-certificates`. Without TLS (tls.mode: off) there is none, and a reload does nothing.
import { join } from "node:path";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Log } from "../log.ts";
import type { HasJobs } from "../service.ts";
import type { Certificates } from "./certificates.ts";
import { createNameCertificates, type NameCertificates } from "./name-certificates.ts";
import { openCertificates } from "./open.ts";

export interface Tls extends HasJobs {
  /** null where tls.mode is off. */
  readonly certificates: Certificates | null;
  /** Those of tracking names, which the HTTP listeners show to who asks for one; null where tls.mode is off. */
  readonly tracking: NameCertificates | null;
  /** Never rejects: an unusable certificate is logged and returned, and the old one stays. */
  reload(): Promise<Error | null>;
}

/** Throws an Error in plain words where the configured files are unusable. */
export async function openTls({
  config: { tls: config, dataDir, hostname },
  isTrackingName,
  clock,
  log,
}: {
  config: Pick<Config, "tls" | "dataDir" | "hostname">;
  isTrackingName(name: string): Promise<boolean>;
  clock: Clock;
  log: Log;
}): Promise<Tls> {
  const certificates =
    config.mode === "off"
      ? null
      : await openCertificates({ config, dataDir, hostname, altNames: [], clock, log });
  const tracking =
    certificates === null
      ? null
      : createNameCertificates({
          files: config.trackingCertificates,
          folder: join(dataDir, "tls", "names"),
          isName: isTrackingName,
          clock,
          log,
        });
  const reload = async (): Promise<Error | null> => {
    tracking?.forget();
    const error = (await certificates?.reload()) ?? null;
    if (error) log.error({ err: error }, "the new certificate is unusable; the old one stays");
    else log.info({}, "reloaded the certificates");
    return error;
  };
  return {
    certificates,
    tracking,
    reload,
    jobs: [{ name: "renew-certificates", cron: "17 4 * * *", run: async () => void (await reload()) }],
  };
}
