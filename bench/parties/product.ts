// svc as it is built: a data directory of its own, example.test verified with its DKIM keys, this machine
// trusted by the SMTP listener as the peers trust it. Receivers are found by the MX of a test's DNS, or all
// mail goes to one smart host. Nothing that makes it safe is switched off.
import type { ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { startDnsServer, type DnsServer } from "../../test/support/dns-server.ts";
import { databaseName, openWriting } from "../../src/store/sqlite/engine/open.ts";
import { publish } from "../../test/support/publish.ts";
import { createGroup, type Group } from "../group.ts";
import { folder, ports, type Login, type Tools } from "../tools.ts";
import { answers, type Party, type Running, type Setting } from "./party.ts";

interface Answer {
  status: number;
  text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- bodies of many shapes
  json: any;
}

export interface RunningProduct extends Running {
  /** A request to the admin socket. */
  admin(method: string, path: string, body?: unknown): Promise<Answer>;
  /** The daemon. */
  child: ChildProcess;
  pid: number;
  dataDir: string;
  /** What it asks. */
  dns: DnsServer;
}

export interface ProductOptions {
  /** More of svc.yaml, by section. */
  config?: Record<string, unknown>;
  /** Connections to one destination; the built-in table's own where it is left out. */
  connections?: number;
}

const svc = resolve(import.meta.dirname, "../../bin/svc");
const dnsTtlSeconds = 3600;

/** The loopback address of the receiver of dN.test; sink.c listens there. */
export const receiverAddress = (n: number): string => `127.0.${1 + Math.floor(n / 250)}.${1 + (n % 250)}`;

export const product = (options: ProductOptions = {}): Party => ({
  name: "svc",
  start: (setting, tools) => startProduct(setting, tools, options),
});

export async function startProduct(
  setting: Setting,
  tools: Tools,
  options: ProductOptions = {},
): Promise<RunningProduct> {
  const home = join(folder, "svc");
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true, mode: 0o755 });
  const dns = await startDnsServer();
  for (let n = 0; n < setting.destinations; n++) {
    dns.set(`d${n}.test`, "MX", [`10 mx.d${n}.test`], dnsTtlSeconds);
    dns.set(`mx.d${n}.test`, "A", [receiverAddress(n)], dnsTtlSeconds);
  }
  dns.set("hooks.test", "A", ["127.0.0.1"], dnsTtlSeconds);
  dns.negativeTtl(dnsTtlSeconds);
  writeFileSync(join(home, "shaping.yaml"), JSON.stringify(shaping(options.connections ?? 20)));
  writeFileSync(
    join(home, "svc.yaml"),
    JSON.stringify({ ...configuration(home, dns, setting), ...options.config }),
  );
  let daemon = await launch(home, setting, tools);
  await publish({ admin: daemon.admin as never }, dns, "example.test");
  const login = setting.submission ? await createLogin(daemon.admin) : undefined;
  const dataDir = join(home, "data");
  if (setting.rsaOnly) {
    await daemon.group.end();
    dropEd25519Keys(dataDir);
    daemon = await launch(home, setting, tools);
  }
  const { group, admin, child } = daemon;
  return {
    group,
    ...(login === undefined ? {} : { login }),
    admin,
    child,
    pid: child.pid ?? 0,
    dataDir,
    dns,
    async stop() {
      await group.end();
      await dns.stop();
    },
  };
}

async function launch(
  home: string,
  setting: Setting,
  tools: Tools,
): Promise<{ group: Group } & Pick<RunningProduct, "admin" | "child">> {
  const group = createGroup("svc");
  const log = openSync(join(home, "log"), "a");
  const [command, ...args] = setting.command ?? [svc];
  const slow =
    setting.slowDiskMs === undefined
      ? {}
      : { LD_PRELOAD: tools.slowDisk, SLOWDISK_MS: String(setting.slowDiskMs) };
  const socket = join(home, "admin.sock");
  rmSync(socket, { force: true });
  const child = group.spawn(
    command,
    [...args, "serve", "--config", join(home, "svc.yaml"), "--socket", socket],
    {
      stdio: ["ignore", log, log],
      env: slow,
    },
  );
  const admin = (method: string, path: string, body?: unknown): Promise<Answer> =>
    exchange(socket, method, path, body);
  for (let i = 0; !existsSync(socket); i++) {
    if (child.exitCode !== null || i > 1_200)
      throw new Error(`svc did not start: ${readFileSync(join(home, "log"), "utf8")}`);
    await wait(100);
  }
  await answers(ports.smtp);
  return { group, admin, child };
}

async function createLogin(admin: RunningProduct["admin"]): Promise<Login> {
  const made = await admin("POST", "/v1/smtp_credentials", { name: "bench" });
  if (made.status !== 201) throw new Error(`no login was made: ${made.text}`);
  return made.json as Login;
}

/** The product always signs with both, so this is done to its database while it is stopped. */
function dropEd25519Keys(dataDir: string): void {
  const db = openWriting(join(dataDir, databaseName));
  const rsa = `SELECT json_group_array(json(value)) FROM json_each(dkim_keys) WHERE value ->> 'algorithm' = 'rsa-sha256'`;
  db.exec(`UPDATE domains SET dkim_keys = (${rsa})`);
  db.close();
}

function configuration(home: string, dns: DnsServer, { signed, route }: Setting): Record<string, unknown> {
  return {
    hostname: "mail.svc.test",
    data_dir: join(home, "data"),
    http: { listen: [`127.0.0.1:${ports.https}`] },
    relay: {
      starttls: [`127.0.0.1:${ports.smtp}`],
      implicit_tls: [`127.0.0.1:${ports.smtps}`],
      trusted: [{ network: "127.0.0.0/8", account: "default" }],
    },
    inbound: { listen: [`127.0.0.1:${ports.inbound}`] },
    dns: { servers: [dns.server] },
    outbound: {
      port: ports.sink,
      allow_networks: ["127.0.0.0/8"],
      shaping_file: join(home, "shaping.yaml"),
      ...(route === "relay"
        ? { sign: signed, smart_host: { host: "127.0.0.1", port: ports.sink, tls: "none" } }
        : {}),
    },
  };
}

/** The receivers of the bench take all that comes. */
function shaping(connections: number): object {
  return { groups: { default: { connections, per_second: 100_000 } } };
}

function exchange(socketPath: string, method: string, path: string, body?: unknown): Promise<Answer> {
  return new Promise((done, fail) => {
    const headers = body === undefined ? {} : { "content-type": "application/json" };
    const req = request({ socketPath, method, path, headers, agent: false }, (res) => {
      const chunks: Buffer[] = [];
      res.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", fail);
      res.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        done({ status: res.statusCode ?? 0, text, json: text === "" ? null : JSON.parse(text) });
      });
    });
    req.on("error", fail);
    req.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
