// The certificates of tracking names, of which each sender domain may have one: a client asks for one by name (SNI, RFC 6066
// §3). From the operator's folder, `<name>.crt` and `<name>.key`, else what the ACME server issued, else self-signed and
// kept in ours. Only names that a verified domain has get one, whatever clients ask for; one that cannot be read is
// logged, and the host's own is shown.
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { createSecureContext, type SecureContext } from "node:tls";
import { dayMs, minuteMs, type Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import type { CertificateSource } from "../model/tls.ts";
import { storedFile } from "./acme/stored-certificates.ts";
import { readCertificateFiles, type CertificatePair } from "./files.ts";
import { keepPair } from "./self-signed.ts";
import { readStored } from "./stored-pair.ts";

export interface NameCertificate {
  name: string;
  pair: CertificatePair;
  source: CertificateSource;
}

export interface NameCertificates {
  /** Null: the name is not a tracking name, or its certificate cannot be used. Never rejects. `name`: in lower case. */
  contextOf(name: string): Promise<SecureContext | null>;
  /** Those that clients asked for lately. */
  known(): NameCertificate[];
  /** Reads it again when it is next asked for; all of them, where none is named. */
  forget(name?: string): void;
  /** Reads those again whose files in the operator's folder have changed; an unusable one changes nothing. */
  look(): Promise<void>;
}

export interface NameCertificatesDeps {
  /** The operator's folder; null: there is none. */
  files: string | null;
  /** <dataDir>/tls: self-signed ones are kept in `names`, a folder a name. */
  folder: string;
  /** An ACME server issues them. */
  acme: boolean;
  isName(name: string): Promise<boolean>;
  clock: Clock;
  log: Log;
}

/** Contexts in memory; the one that was made first goes. */
const mostKept = 1_000;
const form = /^(?!-)[a-z0-9-]+(?:\.[a-z0-9-]+)+$/;

interface Kept {
  context: Promise<SecureContext | null>;
  until: number;
  loaded: Omit<NameCertificate, "name"> | null;
  /** Of the operator's files as they were read. */
  stamp: string | null;
}

export function createNameCertificates(deps: NameCertificatesDeps): NameCertificates {
  const { files, folder, isName, clock, log } = deps;
  const kept = new Map<string, Kept>();

  const filesOf = (name: string): [cert: string, key: string] | null =>
    files === null ? null : [join(files, `${name}.crt`), join(files, `${name}.key`)];
  const stampOf = async (name: string): Promise<string | null> => {
    const own = filesOf(name);
    if (own === null) return null;
    const facts = await Promise.all(own.map((file) => stat(file).catch(() => null)));
    if (facts[0] === null) return null;
    return facts.map((one) => `${one?.ino} ${one?.size} ${one?.mtimeMs}`).join(" ");
  };

  const load = async (name: string, isOwn: boolean): Promise<Omit<NameCertificate, "name">> => {
    const own = filesOf(name);
    if (own !== null && isOwn) return { pair: await readCertificateFiles(...own), source: "files" };
    const issued = deps.acme ? await readStored(storedFile(folder, name)) : null;
    if (issued?.covers(name)) return { pair: issued, source: "acme" };
    return {
      pair: await keepPair(join(folder, "names", name), [name], { clock, log }),
      source: "self-signed",
    };
  };
  const make = async (name: string, entry: Kept): Promise<SecureContext | null> => {
    try {
      entry.stamp = await stampOf(name);
      const loaded = await load(name, entry.stamp !== null);
      const { pair } = loaded;
      if (!pair.covers(name) || pair.validUntil <= clock.now())
        log.warn(
          { name, until: pair.validUntil },
          "the certificate of a tracking name is not valid for it now",
        );
      entry.loaded = loaded;
      return createSecureContext({ minVersion: "TLSv1.2", cert: pair.cert, key: pair.key });
    } catch (error) {
      log.error({ name, err: error }, "the certificate of a tracking name is unusable");
      entry.until = clock.now() + minuteMs;
      return null;
    }
  };

  return {
    async contextOf(name) {
      if (name.length > 253 || !form.test(name) || !(await isName(name).catch(() => false))) return null;
      const now = clock.now();
      const found = kept.get(name);
      if (found && found.until > now) return found.context;
      const entry: Kept = { context: Promise.resolve(null), until: now + dayMs, loaded: null, stamp: null };
      entry.context = make(name, entry);
      kept.delete(name);
      kept.set(name, entry);
      const [oldest] = kept.keys();
      if (kept.size > mostKept && oldest !== undefined) kept.delete(oldest);
      return entry.context;
    },
    known: () =>
      Array.from(kept).flatMap(([name, { loaded }]) => (loaded === null ? [] : [{ name, ...loaded }])),
    forget(name) {
      if (name === undefined) kept.clear();
      else kept.delete(name);
    },
    async look() {
      if (files === null) return;
      for (const [name, entry] of kept) {
        await entry.context;
        const stamp = await stampOf(name);
        if (stamp === entry.stamp) continue;
        const next: Kept = { ...entry, until: clock.now() + dayMs };
        next.context = make(name, next);
        entry.stamp = stamp;
        if ((await next.context) !== null && kept.get(name) === entry) kept.set(name, next);
      }
    },
  };
}
