// The certificates of tracking names, of which each sender domain may have one: a client asks for one by name (SNI, RFC 6066
// §3). From the operator's folder, `<name>.crt` and `<name>.key`, else self-signed and kept in ours. Only names that a
// verified domain has get one, whatever clients ask for; one that cannot be read is logged, and the host's own is shown.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createSecureContext, type SecureContext } from "node:tls";
import { dayMs, minuteMs, type Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import { readCertificateFiles, type CertificatePair } from "./files.ts";
import { keepPair } from "./self-signed.ts";

export interface NameCertificates {
  /** Null: the name is not a tracking name, or its certificate cannot be used. Never rejects. `name`: in lower case. */
  contextOf(name: string): Promise<SecureContext | null>;
  /** Reads each again when it is next asked for. */
  forget(): void;
}

export interface NameCertificatesDeps {
  /** The operator's folder; null: there is none. */
  files: string | null;
  /** Where self-signed ones are kept, a folder a name. */
  folder: string;
  isName(name: string): Promise<boolean>;
  clock: Clock;
  log: Log;
}

/** Contexts in memory; the one that was made first goes. */
const mostKept = 1_000;
const form = /^(?!-)[a-z0-9-]+(?:\.[a-z0-9-]+)+$/;

export function createNameCertificates(deps: NameCertificatesDeps): NameCertificates {
  const { files, folder, isName, clock, log } = deps;
  const kept = new Map<string, { context: Promise<SecureContext | null>; until: number }>();

  const load = async (name: string): Promise<CertificatePair> => {
    if (files !== null) {
      const [cert, key] = [join(files, `${name}.crt`), join(files, `${name}.key`)];
      if (existsSync(cert)) return readCertificateFiles(cert, key);
    }
    return keepPair(join(folder, name), [name], { clock, log });
  };
  const make = async (name: string): Promise<SecureContext | null> => {
    try {
      const pair = await load(name);
      if (!pair.covers(name) || pair.validUntil <= clock.now())
        log.warn(
          { name, until: pair.validUntil },
          "the certificate of a tracking name is not valid for it now",
        );
      return createSecureContext({ minVersion: "TLSv1.2", cert: pair.cert, key: pair.key });
    } catch (error) {
      log.error({ name, err: error }, "the certificate of a tracking name is unusable");
      return null;
    }
  };

  return {
    async contextOf(name) {
      if (name.length > 253 || !form.test(name) || !(await isName(name).catch(() => false))) return null;
      const now = clock.now();
      const found = kept.get(name);
      if (found && found.until > now) return found.context;
      const context = make(name);
      const entry = { context, until: now + dayMs };
      void context.then((made) => {
        if (made === null) entry.until = clock.now() + minuteMs;
      });
      kept.delete(name);
      kept.set(name, entry);
      const [oldest] = kept.keys();
      if (kept.size > mostKept && oldest !== undefined) kept.delete(oldest);
      return context;
    },
    forget: () => kept.clear(),
  };
}
