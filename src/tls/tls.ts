// The listeners' certificate in the running program: opened at the start, reloaded by SIGHUP and each day by the job
// `renew-certificates`. Without TLS (tls.mode: off) there is none, and a reload does nothing.
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Log } from "../log.ts";
import type { HasJobs } from "../service.ts";
import type { Certificates } from "./certificates.ts";
import { openCertificates } from "./open.ts";

export interface Tls extends HasJobs {
  /** null where tls.mode is off. */
  readonly certificates: Certificates | null;
  /** Never rejects: an unusable certificate is logged, and the old one stays. */
  reload(): Promise<void>;
}

/** Throws an Error in plain words where the configured files are unusable. */
export async function openTls({
  config: { tls: config, dataDir, hostname },
  clock,
  log,
}: {
  config: Pick<Config, "tls" | "dataDir" | "hostname">;
  clock: Clock;
  log: Log;
}): Promise<Tls> {
  const certificates =
    config.mode === "off"
      ? null
      : await openCertificates({ config, dataDir, hostname, altNames: [], clock, log });
  const reload = async (): Promise<void> => {
    const error = await certificates?.reload();
    if (error) log.error({ err: error }, "the new certificate is unusable; the old one stays");
    else log.info({}, "reloaded the certificates");
  };
  return { certificates, reload, jobs: [{ name: "renew-certificates", cron: "17 4 * * *", run: reload }] };
}
