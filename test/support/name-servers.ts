// Real name servers as primaries of a zone that takes dynamic updates, each with a configuration and data of its own in a
// temporary folder: BIND and Knot from Debian's packages (.ci/peers.sh). Each makes its keys with its own tool.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { Resolver } from "node:dns/promises";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually, freePort } from "./appliance.ts";
import { ended } from "./peers.ts";
import { removeFolder } from "./folders.ts";

export interface NameServer {
  /** `127.0.0.1:PORT` */
  server: string;
  port: number;
  /** Key that may change the zone; one that the server knows and that may not; one with its name and another secret; one that it does not know. */
  keys: Record<"publish" | "reading" | "forged" | "unknown", string>;
  /** Each record as text, sorted; empty where there is none. */
  records(name: string, type: "TXT" | "MX" | "CNAME" | "A"): Promise<string[]>;
  log(): string;
  stop(): Promise<void>;
}

export interface Primary {
  name: string;
  start(zone: string, records: string): Promise<NameServer>;
}

interface Made {
  /** Text of a new key of this name. */
  makeKey(name: string): string;
  /** Where the configuration is written, and what runs with it. */
  configure(zone: string, port: number, publish: string, reading: string): string;
  command: [string, ...string[]];
}

export const primaries: Primary[] = [
  {
    name: "BIND",
    start: (zone, records) =>
      start(zone, records, (dir) => ({
        makeKey: (name) => execFileSync("tsig-keygen", ["-a", "hmac-sha256", name]).toString(),
        configure: (zone, port, publish, reading) => `${publish}${reading}
options {
  directory "${dir}"; pid-file "${dir}/named.pid"; session-keyfile "${dir}/session.key";
  listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; };
  recursion no; dnssec-validation no; notify no; allow-query { any; };
};
controls { };
zone "${zone}" { type primary; file "${dir}/zone"; update-policy { grant publish zonesub TXT MX CNAME; }; };
`,
        command: ["named", "-g", "-n", "1", "-c", join(dir, "config")],
      })),
  },
  {
    name: "Knot",
    start: (zone, records) =>
      start(zone, records, (dir) => ({
        makeKey: (name) => execFileSync("keymgr", ["-t", name, "hmac-sha512"]).toString(),
        configure: (zone, port, publish, reading) => `server:
    rundir: "${dir}"
    listen: 127.0.0.1@${port}
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
database:
    storage: "${dir}/db"
log:
  - target: stderr
    any: info
${publish}${reading.replace(/^key:\n/m, "")}
acl:
  - id: publish
    key: publish
    action: update
zone:
  - domain: ${zone}
    storage: "${dir}"
    file: zone
    acl: publish
`,
        command: ["knotd", "-c", join(dir, "config")],
      })),
  },
];

async function start(zone: string, records: string, make: (dir: string) => Made): Promise<NameServer> {
  const dir = mkdtempSync(join(tmpdir(), "svc-primary-"));
  mkdirSync(join(dir, "db"));
  const made = make(dir);
  const port = await freePort();
  const texts = {
    publish: made.makeKey("publish"),
    reading: made.makeKey("reading"),
    forged: made.makeKey("publish"),
    unknown: made.makeKey("unknown"),
  };
  const keys = { publish: "", reading: "", forged: "", unknown: "" };
  for (const name of ["publish", "reading", "forged", "unknown"] as const) {
    keys[name] = join(dir, `${name}.key`);
    writeFileSync(keys[name], texts[name], { mode: 0o600 });
  }
  const soa = `@ 3600 IN SOA ns1 hostmaster 1 3600 600 86400 60\n@ 3600 IN NS ns1\nns1 3600 IN A 127.0.0.1\n`;
  writeFileSync(join(dir, "zone"), `$ORIGIN ${zone}.\n$TTL 300\n${soa}${records}`);
  writeFileSync(join(dir, "config"), made.configure(zone, port, texts.publish, texts.reading));
  const [command, ...args] = made.command;
  const child: ChildProcess = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => (log += chunk.toString()));
  const dns = new Resolver({ timeout: 2_000, tries: 2 });
  dns.setServers([`127.0.0.1:${port}`]);
  await eventually(
    async () => {
      if (child.exitCode !== null) throw new Error(`${command} did not start:\n${log}`);
      return (await dns.resolveSoa(zone).catch(() => null)) !== null;
    },
    60_000,
    `${command} answering`,
  );
  return {
    server: `127.0.0.1:${port}`,
    port,
    keys,
    records: (name, type) => recordsOf(dns, name, type),
    log: () => log,
    async stop() {
      await ended(child);
      removeFolder(dir);
    },
  };
}

async function recordsOf(dns: Resolver, name: string, type: "TXT" | "MX" | "CNAME" | "A"): Promise<string[]> {
  try {
    if (type === "TXT") return (await dns.resolveTxt(name)).map((strings) => strings.join("")).toSorted();
    if (type === "MX")
      return (await dns.resolveMx(name)).map((mx) => `${mx.priority} ${mx.exchange}`).toSorted();
    if (type === "CNAME") return await dns.resolveCname(name);
    return await dns.resolve4(name);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOTFOUND" || code === "ENODATA") return [];
    throw error;
  }
}
