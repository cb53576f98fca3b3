// pebble, Let's Encrypt's own test server of ACME, from Debian's package: it checks names for real, over our HTTP-01
// listener and the test's DNS server, rejects nonces on purpose and waits before it looks.
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually, freePorts } from "./appliance.ts";
import { createAuthority } from "./certificates.ts";
import { ended } from "./peers.ts";

export interface Pebble {
  /** Its address, under a name that the test's DNS server leads to 127.0.0.1. */
  directory: string;
  /** PEM file with the authority that vouches for its API. */
  caFile: string;
  /** The root of what it issues, another one after each start. */
  root(): Promise<string>;
  log(): string;
  stop(): Promise<void>;
  /** Again on the same ports: it has forgotten all accounts. */
  start(): Promise<void>;
}

export interface PebbleOptions {
  /** Its own host name. */
  host: string;
  dnsServer: string;
  /** Where it looks for the answers to its checks. */
  httpPort: number;
  /** Percent of the nonces that it rejects. */
  nonceReject?: number;
  /** Accounts need an external one: key ids and their keys, base64url. */
  externalAccounts?: Record<string, string>;
  /** It waits up to this many seconds before it looks. */
  sleepSeconds?: number;
}

export async function startPebble(options: PebbleOptions): Promise<Pebble> {
  const dir = mkdtempSync(join(tmpdir(), "svc-pebble-"));
  const authority = await createAuthority("pebble's API");
  const identity = await authority.issue([options.host, "localhost"]);
  const [port = 0, managementPort = 0, tlsPort = 0] = await freePorts(3);
  const [cert, key, caFile, config] = ["cert.pem", "key.pem", "ca.pem", "pebble.json"].map((name) =>
    join(dir, name),
  ) as [string, string, string, string];
  writeFileSync(cert, identity.chain);
  writeFileSync(key, identity.key);
  writeFileSync(caFile, authority.cert);
  writeFileSync(
    config,
    JSON.stringify({
      pebble: {
        listenAddress: `127.0.0.1:${port}`,
        managementListenAddress: `127.0.0.1:${managementPort}`,
        certificate: cert,
        privateKey: key,
        httpPort: options.httpPort,
        tlsPort,
        ocspResponderURL: "",
        externalAccountBindingRequired: options.externalAccounts !== undefined,
        externalAccountMACKeys: options.externalAccounts ?? {},
      },
    }),
  );
  let log = "";
  let child: ChildProcess | null = null;
  const root = async (): Promise<string> => textOf(managementPort, "/roots/0", authority.cert);
  const start = async (): Promise<void> => {
    const started = spawn("pebble", ["-config", config, "-dnsserver", options.dnsServer, "-strict"], {
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...process.env,
        PEBBLE_WFE_NONCEREJECT: String(options.nonceReject ?? 30),
        PEBBLE_VA_SLEEPTIME: String(options.sleepSeconds ?? 2),
        // Each order is checked, and none on the word of an earlier one.
        PEBBLE_AUTHZREUSE: "0",
      },
    });
    for (const stream of [started.stdout, started.stderr])
      stream.on("data", (chunk: Buffer) => (log = (log + chunk.toString()).slice(-200_000)));
    child = started;
    await eventually(
      async () => {
        if (started.exitCode !== null) throw new Error(`pebble ended with ${started.exitCode}:\n${log}`);
        return root().catch(() => null);
      },
      120_000,
      "pebble answering",
    );
  };
  await start();
  return {
    directory: `https://${options.host}:${port}/dir`,
    caFile,
    root,
    log: () => log,
    async stop() {
      if (child) await ended(child);
    },
    start,
  };
}

function textOf(port: number, path: string, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port, path, ca, servername: "localhost", agent: false }, (res) => {
      let text = "";
      res.on("data", (chunk: Buffer) => (text += chunk.toString()));
      res.on("end", () => (res.statusCode === 200 ? resolve(text) : reject(new Error(`${res.statusCode}`))));
      res.on("error", reject);
    }).on("error", reject);
  });
}
