// The certificates of the running program, whatever their source: opened at the start, looked after each minute by the job
// `renew-certificates`, which notices changed files and orders from the ACME server what is due, and read again by
// SIGHUP. Every new certificate reaches the listeners on the same way: it is put in its place, then reloaded. Without TLS
// (tls.mode: off) there is none.
import { join } from "node:path";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Https } from "../https.ts";
import type { Log } from "../log.ts";
import type { HasJobs, Service } from "../service.ts";
import { openAcme, type AcmeDeps } from "./acme/acme.ts";
import type { ClosedAddress } from "./acme/challenges.ts";
import type { NotRenewed } from "./acme/issuer.ts";
import { createInstall } from "./install.ts";
import { createNameCertificates, type NameCertificates } from "./name-certificates.ts";
import { openCertificates, type OwnCertificates } from "./open.ts";
import {
  authorityUntil,
  listStates,
  listTroubles,
  nextMinute,
  type CertificateState,
  type CertificateTrouble,
} from "./states.ts";

export interface Tls extends HasJobs, Service {
  /** null where tls.mode is off. */
  readonly certificates: OwnCertificates | null;
  /** Those of tracking names, which the HTTP listeners show to who asks for one; null where tls.mode is off. */
  readonly tracking: NameCertificates | null;
  /** Never rejects: an unusable certificate is logged and returned, and the old one stays. */
  reload(): Promise<Error | null>;
  list(): Promise<CertificateState[]>;
  /** What is wrong with the certificates now. */
  troubles(): CertificateTrouble[];
  onTrouble(listener: (trouble: CertificateTrouble) => void): void;
  /** Orders a certificate at once, the host's if none is named. null: it is begun. */
  renew(name: string | null): Promise<NotRenewed | null>;
  /** Puts a certificate for the host in its place and serves it. Rejects with an Error in plain words. */
  install(cert: string, key: string): Promise<void>;
  addresses(): { name: string; address: string }[];
  /** Where the ACME server's checks are to be answered and cannot be. */
  closed(): readonly ClosedAddress[];
}

export interface TlsDeps extends Pick<AcmeDeps, "trackingNames" | "isTrackingName"> {
  config: AcmeDeps["config"] & Pick<Config, "dataDir">;
  https: Https;
  clock: Clock;
  log: Log;
}

/**
 * A first failure is tried again soon. Of tracking names, which are customers', the operator hears by the doctor alone:
 * their failures must not be mail without end.
 */
const quietFailures = 1;

/** Throws an Error in plain words where the configured files are unusable. */
export async function openTls(deps: TlsDeps): Promise<Tls> {
  const { config, clock, log } = deps;
  const { tls } = config;
  const hostname = config.hostname.toLowerCase();
  const folder = join(config.dataDir, "tls");
  const listeners = new Set<(trouble: CertificateTrouble) => void>();
  const tell = (trouble: CertificateTrouble): void => {
    for (const listener of listeners) listener(trouble);
  };
  const { certificates, tracking, acme } = await openSources(deps, folder, tell);
  const closedProblem = (): string | null => acme?.closedProblem() ?? null;
  const tellOfHost = (error: string, nextAt: number | null): void =>
    tell({ name: hostname, isHost: true, error, nextAt, until: authorityUntil(certificates) });
  const files = createWatch(
    async () => (await certificates?.reload())?.message ?? null,
    (error) => tellOfHost(error, null),
  );
  const port = createWatch(
    async () => {
      await acme?.look();
      return closedProblem();
    },
    (error) => tellOfHost(error, nextMinute(clock.now())),
  );

  const install = createInstall({ config: tls, hostname, folder, certificates, clock });
  const stateDeps = {
    hostname,
    certificates,
    tracking,
    issuer: acme?.issuer ?? null,
    fileProblem: files.problem,
    closedProblem,
    clock,
  };

  return {
    name: "tls",
    certificates,
    tracking,
    async start() {
      await acme?.start();
    },
    async stop() {
      await acme?.stop();
    },
    async reload() {
      tracking?.forget();
      const error = (await certificates?.reload()) ?? null;
      if (error) log.error({ err: error }, "the new certificate is unusable; the old one stays");
      else log.info({}, "reloaded the certificates");
      return error;
    },
    jobs: [
      {
        name: "renew-certificates",
        cron: "* * * * *",
        async run() {
          await files.look();
          await tracking?.look();
          await port.look();
        },
      },
    ],
    list: () => listStates(stateDeps),
    troubles: () => listTroubles(stateDeps),
    onTrouble: (listener) => void listeners.add(listener),
    renew: (name) =>
      acme?.renew(name ?? hostname) ??
      Promise.resolve({
        reason: "refused",
        text: `the option tls.mode is ${tls.mode}: only with acme are certificates ordered`,
      }),
    install,
    addresses: () => acme?.addresses() ?? [],
    closed: () => acme?.closed() ?? [],
  };
}

/** Where certificates come from with this tls.mode; null is what it does not have. */
async function openSources(deps: TlsDeps, folder: string, tell: (trouble: CertificateTrouble) => void) {
  const { config, clock, log } = deps;
  const { tls, dataDir } = config;
  const hostname = config.hostname.toLowerCase();
  const certificates =
    tls.mode === "off"
      ? null
      : await openCertificates({ config: tls, dataDir, hostname, altNames: [], clock, log });
  const tracking =
    certificates === null
      ? null
      : createNameCertificates({
          files: tls.trackingCertificates,
          folder,
          acme: tls.mode === "acme",
          isName: deps.isTrackingName,
          clock,
          log,
        });
  const acme =
    tls.mode !== "acme"
      ? null
      : await openAcme({
          ...deps,
          folder,
          async onIssued({ name, account }) {
            if (account === null) await certificates?.reload();
            else tracking?.forget(name);
          },
          onFailed({ failures, ...failure }) {
            if (failure.isHost && failures > quietFailures) tell(failure);
          },
        });
  return { certificates, tracking, acme };
}

/** A renewal that replaces two files is half done for a moment: of a problem that a second look finds too, the operator hears, once. */
function createWatch(
  find: () => Promise<string | null>,
  tell: (problem: string) => void,
): { look(): Promise<void>; problem(): string | null } {
  let seen: string | null = null;
  let told: string | null = null;
  return {
    async look() {
      const found = await find();
      if (found === null) told = null;
      else if (found === seen && found !== told) {
        told = found;
        tell(found);
      }
      seen = found;
    },
    problem: () => seen,
  };
}
