// tls.mode: acme, put together: the account's key, the client, the listener that answers the server's checks, and the
// issuer. The start opens the listener and waits for nothing else: the self-signed certificate is served meanwhile. Nothing
// is ordered while no address of the listener is open: each order would fail, and count against the server's limits.
import { readdir, readFile } from "node:fs/promises";
import { isIP } from "node:net";
import type { Clock } from "../../clock.ts";
import type { Config } from "../../config.ts";
import type { Https } from "../../https.ts";
import type { Log } from "../../log.ts";
import type { Service } from "../../service.ts";
import { openAccountKey } from "./account-key.ts";
import { closedText, createChallenges, type ClosedAddress } from "./challenges.ts";
import { createAcmeClient } from "./client.ts";
import { library } from "./csr.ts";
import type { ExternalAccount } from "./requests.ts";
import { createIssuer, type Issuer, type IssuerDeps, type NotRenewed, type Wanted } from "./issuer.ts";

/** Certificates of tracking names: accounts take turns, and the newest of each come first. */
const mostNames = 1_000;

export interface AcmeDeps extends Pick<IssuerDeps, "folder" | "onIssued" | "onFailed"> {
  config: Pick<Config, "tls" | "hostname" | "publicUrl" | "operations"> & {
    http: Pick<Config["http"], "trustedProxies">;
  };
  trackingNames(ofAccount: number, ofAll: number): Promise<{ name: string; accountKey: number }[]>;
  isTrackingName(name: string): Promise<boolean>;
  https: Https;
  clock: Clock;
  log: Log;
}

export interface Acme extends Service {
  issuer: Pick<Issuer, "list" | "failing">;
  /** Opens what of the listener is closed, and orders what is due; does not wait for the orders. */
  look(): Promise<void>;
  renew(name: string): Promise<NotRenewed | null>;
  addresses(): { name: string; address: string }[];
  closed(): readonly ClosedAddress[];
  /** null: every address of the listener is open. */
  closedProblem(): string | null;
}

export async function openAcme(deps: AcmeDeps): Promise<Acme> {
  const { config, folder, https, clock, log } = deps;
  await library();
  const { email, directory, httpListen } = config.tls.acme;
  const host = config.hostname.toLowerCase();
  const { hostname: publicHost, origin, port } = new URL(config.publicUrl);
  const stopping = new AbortController();
  const challenges = createChallenges({
    listen: httpListen,
    async secureOrigin(name) {
      if (name === host || name === publicHost) return origin;
      return (await deps.isTrackingName(name)) ? `https://${name}${port === "" ? "" : `:${port}`}` : null;
    },
    clock,
    log,
  });
  const client = createAcmeClient({
    https,
    directoryUrl: directory,
    key: await openAccountKey(folder),
    email: email ?? config.operations.email,
    externalAccount: await externalAccountOf(config.tls.acme),
    answers: challenges,
    clock,
    signal: stopping.signal,
  });
  // A proxy in front has a certificate of its own for public_url.
  const isOurs =
    config.http.trustedProxies.length === 0 && isIP(publicHost) === 0 && publicHost.includes(".");
  const names = [...new Set([host, ...(isOurs ? [publicHost] : [])])];
  const issuer = createIssuer({
    ...deps,
    directory,
    client,
    async wanted() {
      const tracking = await deps.trackingNames(mostNames, mostNames);
      const given = await namesIn(config.tls.trackingCertificates);
      const wanted = new Map<string, Wanted>([[host, { name: host, names, account: null }]]);
      for (const { name, accountKey } of tracking)
        if (!names.includes(name) && !given.has(name) && !wanted.has(name))
          wanted.set(name, { name, names: [name], account: accountKey });
      return [...wanted.values()];
    },
    signal: stopping.signal,
  });
  const canAnswer = (): boolean => httpListen.length === 0 || challenges.addresses().length > 0;
  const closedProblem = (): string | null => {
    const closed = challenges.closed();
    return closed.length === 0 ? null : `tls.acme.http_listen: ${closed.map(closedText).join("; ")}`;
  };
  let first: Promise<void> = Promise.resolve();
  return {
    name: "acme",
    issuer,
    addresses: challenges.addresses,
    closed: challenges.closed,
    closedProblem,
    async look() {
      await challenges.open();
      if (canAnswer()) void issuer.run(); // for hours, where many are ordered; a second call joins the first
    },
    async renew(name) {
      await challenges.open();
      if (canAnswer()) return issuer.renew(name);
      return {
        reason: "refused",
        text: `the ACME server's checks cannot be answered: ${closedProblem() ?? ""}`,
      };
    },
    async start() {
      await challenges.start();
      if (canAnswer()) first = issuer.run();
    },
    async stop() {
      stopping.abort(new Error("the program stops"));
      await challenges.stop();
      await first;
      await issuer.run();
    },
  };
}

async function externalAccountOf({
  eabKeyId: keyId,
  eabMacKeyFile: file,
}: Pick<Config["tls"]["acme"], "eabKeyId" | "eabMacKeyFile">): Promise<ExternalAccount | null> {
  if (keyId === null || file === null) return null;
  return { keyId, macKey: Buffer.from((await readFile(file, "utf8")).trim(), "base64url") };
}

/** Names that have files of the operator's. */
async function namesIn(folder: string | null): Promise<Set<string>> {
  const files = folder === null ? [] : await readdir(folder).catch(() => []);
  return new Set(files.filter((file) => file.endsWith(".crt")).map((file) => file.slice(0, -4)));
}
