// The certificates that the ACME server issued, as files of <dataDir>/tls: read once each, one a name. Those of names that
// are not kept any more are removed: else their files, and backups, would grow with each name that a customer ever had.
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../log.ts";
import type { CertificatePair } from "../files.ts";
import { readStored, storePair } from "../stored-pair.ts";
import { accountKeyName } from "./account-key.ts";

export interface StoredCertificates {
  /** null: there is none that can be used. */
  of(name: string): Promise<CertificatePair | null>;
  /** Until when the one that was read is valid; null: there is none. */
  until(name: string): number | null;
  put(name: string, pair: CertificatePair): Promise<void>;
  /** Removes those of all other names. */
  keep(names: ReadonlySet<string>): Promise<void>;
}

/** Other names are left self-signed: a file's name has 255 bytes, and no slash. */
export const isFileName = (name: string): boolean => /^[a-z0-9][a-z0-9.-]{0,199}$/.test(name);

export const storedFile = (folder: string, name: string): string => join(folder, `acme-${name}.pem`);

export function createStoredCertificates(folder: string, log: Log): StoredCertificates {
  const pairs = new Map<string, CertificatePair | null>();
  return {
    async of(name) {
      const known = pairs.get(name);
      if (known !== undefined) return known;
      const file = storedFile(folder, name);
      const pair = await readStored(file).catch((error: unknown) => {
        log.warn(
          { file, err: error },
          "a certificate of the ACME server is unusable; another one is ordered",
        );
        return null;
      });
      // One that was issued meanwhile is newer.
      if (!pairs.has(name)) pairs.set(name, pair);
      return pairs.get(name) ?? null;
    },
    until: (name) => pairs.get(name)?.validUntil ?? null,
    async put(name, pair) {
      await storePair(storedFile(folder, name), pair);
      pairs.set(name, pair);
    },
    async keep(names) {
      for (const name of pairs.keys()) if (!names.has(name)) pairs.delete(name);
      for (const file of await readdir(folder)) {
        const name = /^acme-(.+)\.pem$/.exec(file)?.[1];
        if (name !== undefined && file !== accountKeyName && !names.has(name)) await rm(join(folder, file));
      }
    },
  };
}
