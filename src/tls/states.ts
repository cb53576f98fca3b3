// What the operator is shown of the certificates: those that are served, when each is renewed, and what is wrong with them.
import { minuteMs, type Clock } from "../clock.ts";
import type { CertificateSource } from "../model/tls.ts";
import { givenUpAfter, type IssuedState, type Issuer } from "./acme/issuer.ts";
import type { CertificatePair } from "./files.ts";
import type { NameCertificates } from "./name-certificates.ts";
import type { OwnCertificates } from "./open.ts";

/** A certificate that is served, or would be. */
export interface CertificateState {
  /** The host name, or a tracking name. */
  name: string;
  /** The host's own, on every listener; else that of a tracking name. */
  isHost: boolean;
  source: CertificateSource;
  /** null: there is none yet; a self-signed one is served. */
  pair: CertificatePair | null;
  /** When the ACME server is asked for the next one; null: it is not. */
  renewAt: number | null;
  nextAttemptAt: number | null;
  renewing: boolean;
  failures: number;
  /** A tracking name that failed so often that the operator is not notified of it. */
  isGivenUp: boolean;
  error: string | null;
}

/** For the operator. */
export interface CertificateTrouble {
  name: string;
  isHost: boolean;
  error: string;
  /** When it is tried again; null: when the files change. */
  nextAt: number | null;
  /** When the one that is served expires; null: none of an authority is. */
  until: number | null;
}

export interface StatesDeps {
  hostname: string;
  certificates: Pick<OwnCertificates, "shown"> | null;
  tracking: Pick<NameCertificates, "known"> | null;
  issuer: Pick<Issuer, "list" | "failing"> | null;
  /** What is wrong with the operator's files. */
  fileProblem(): string | null;
  /** Why the ACME server's checks cannot be answered at every address of the configuration. */
  closedProblem(): string | null;
  clock: Pick<Clock, "now">;
}

/** The host's own, then those of tracking names; none where tls.mode is off. */
export async function listStates(deps: StatesDeps): Promise<CertificateState[]> {
  const { hostname, certificates, tracking, issuer } = deps;
  const host = certificates?.shown();
  if (host === undefined) return [];
  const ordered = new Map((await issuer?.list())?.map((one) => [one.name, one]));
  const known = new Map(tracking?.known().map((one) => [one.name, one]));
  const others = new Set([...known.keys(), ...ordered.keys()]);
  others.delete(hostname);
  const own = stateOf(hostname, true, host, ordered.get(hostname));
  // Where another address is open, orders go on, and have faults of their own.
  const errors = [deps.closedProblem(), own.error ?? deps.fileProblem()].filter((error) => error !== null);
  return [
    { ...own, error: errors.length === 0 ? null : errors.join("; ") },
    ...[...others].toSorted().map((name) => stateOf(name, false, known.get(name), ordered.get(name))),
  ];
}

/** What is wrong with the certificates now. */
export function listTroubles(deps: Omit<StatesDeps, "tracking">): CertificateTrouble[] {
  const { hostname, certificates, issuer, clock } = deps;
  const until = authorityUntil(certificates);
  const own = (error: string | null, nextAt: number | null): CertificateTrouble[] =>
    error === null ? [] : [{ name: hostname, isHost: true, error, nextAt, until }];
  return [
    ...own(deps.closedProblem(), nextMinute(clock.now())),
    ...own(deps.fileProblem(), null),
    ...(issuer?.failing() ?? []).map((one) => ({ ...one, until: null })),
  ];
}

/** When the certificate that is served expires; null: none of an authority is. */
export function authorityUntil(certificates: StatesDeps["certificates"]): number | null {
  const { source, pair } = certificates?.shown() ?? { source: "self-signed", pair: null };
  return source === "self-signed" || pair === null ? null : pair.validUntil;
}

/** When the job of tls.ts looks again. */
export const nextMinute = (now: number): number => (Math.floor(now / minuteMs) + 1) * minuteMs;

/** `served`: undefined where no listener has shown it yet. `order`: undefined where it is not ordered from an ACME server. */
function stateOf(
  name: string,
  isHost: boolean,
  served: Pick<CertificateState, "pair" | "source"> | undefined,
  order: IssuedState | undefined,
): CertificateState {
  const pair = served?.pair ?? order?.pair ?? null;
  return {
    name,
    isHost,
    pair,
    source: served?.source ?? (pair === null ? "self-signed" : "acme"),
    renewAt: order?.renewAt ?? null,
    nextAttemptAt: order?.nextAttemptAt ?? null,
    renewing: order?.renewing ?? false,
    failures: order?.failures ?? 0,
    isGivenUp: !isHost && (order?.failures ?? 0) >= givenUpAfter,
    error: order?.error ?? null,
  };
}
