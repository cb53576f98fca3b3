// A certificate that the operator brings (`svc cert install`): refused where it could not serve this host now, else put
// where the listeners' certificate is read from, and served.
import { isoTime, type Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import { certificatePair, writeCertificateFiles } from "./files.ts";
import { installedFile, type OwnCertificates } from "./open.ts";
import { storePair } from "./stored-pair.ts";

export type Install = (cert: string, key: string) => Promise<void>;

export interface InstallDeps {
  config: Pick<Config["tls"], "mode" | "cert" | "key">;
  hostname: string;
  /** <dataDir>/tls */
  folder: string;
  certificates: Pick<OwnCertificates, "reload"> | null;
  clock: Clock;
}

/** The function rejects with an Error in plain words. */
export function createInstall({ config, hostname, folder, certificates, clock }: InstallDeps): Install {
  const install: Install = async (cert, key) => {
    if (config.mode === "off" || config.mode === "acme")
      throw new Error(`the option tls.mode is ${config.mode}, and not files or self-signed`);
    const pair = certificatePair(cert, key, { cert: "the certificate", key: "the key" });
    const now = clock.now();
    if (pair.validUntil <= now) throw new Error(`the certificate expired at ${isoTime(pair.validUntil)}`);
    if (pair.validFrom > now)
      throw new Error(`the certificate is not valid before ${isoTime(pair.validFrom)}`);
    if (!pair.covers(hostname))
      throw new Error(
        `the certificate does not name ${hostname}: it is for ${pair.leaf.subjectAltName ?? "no name"}`,
      );
    if (config.cert !== null && config.key !== null)
      await writeCertificateFiles(config.cert, config.key, pair);
    else await storePair(installedFile(folder), pair);
    const error = await certificates?.reload();
    if (error) throw error;
  };
  /** One after the other: they write the same files. */
  let last: Promise<void> = Promise.resolve();
  return (cert, key) => (last = last.catch(() => undefined).then(() => install(cert, key)));
}
