// The certificates that the ACME server issued, as files of <dataDir>/tls: read once each, one a name. A name for which none
// is ordered any more keeps what it has, since links lead to it, and it may come back; but not without end: else these
// files, and backups, would grow with each name that a customer ever had.
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../log.ts";
import type { CertificatePair } from "../files.ts";
import { proveRoom, readStored, storePair } from "../stored-pair.ts";
import { accountKeyName } from "./account-key.ts";

export interface StoredCertificates {
  /** null: there is none that can be used. */
  of(name: string): Promise<CertificatePair | null>;
  /** Until when the one that was read is valid; null: there is none. */
  until(name: string): number | null;
  /** Rejects where `put` would fail: what cannot be kept spends the limits of the ACME server all the same. */
  prove(name: string): Promise<void>;
  put(name: string, pair: CertificatePair): Promise<void>;
  /** Of all other names, removes the oldest. */
  keep(names: ReadonlySet<string>): Promise<void>;
}

/** Other names are left self-signed: a file's name has 255 bytes, and no slash. */
export const isFileName = (name: string): boolean => /^[a-z0-9][a-z0-9.-]{0,199}$/.test(name);

export const storedFile = (folder: string, name: string): string => join(folder, `acme-${name}.pem`);

/** Certificates of names for which none is ordered. */
const mostOthers = 1_000;

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
    prove: (name) => proveRoom(storedFile(folder, name)),
    async put(name, pair) {
      await storePair(storedFile(folder, name), pair);
      pairs.set(name, pair);
    },
    async keep(names) {
      for (const name of pairs.keys()) if (!names.has(name)) pairs.delete(name);
      const others = (await readdir(folder)).filter((file) => {
        const name = /^acme-(.+)\.pem$/.exec(file)?.[1];
        return name !== undefined && file !== accountKeyName && !names.has(name);
      });
      if (others.length <= mostOthers) return;
      const ages = await Promise.all(
        others.map(async (file) => ({ file, at: (await stat(join(folder, file))).mtimeMs })),
      );
      const oldest = ages.toSorted((a, b) => a.at - b.at).slice(0, others.length - mostOthers);
      for (const { file } of oldest) await rm(join(folder, file), { force: true });
    },
  };
}
