// A product under attack and what stands around it: its process on a fresh data directory, the world, the client that
// behaves, and the accounts. Account `default` is the client's, account `b` is the attacker's own.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { freePorts } from "../../test/support/appliance.ts";
import { publish } from "../../test/support/publish.ts";
import { folder } from "../tools.ts";
import { startChild, type Child } from "./child.ts";

export interface Answer {
  status: number;
  text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- bodies of many shapes
  json: any;
}

/** Where an attack goes. */
export interface Target {
  https: number;
  starttls: number;
  tls: number;
  inbound: number;
  /** How long it is measured. */
  seconds: number;
}

/** More of svc.yaml, by section. */
export type Sections = Record<string, Record<string, unknown>>;

export interface Stand {
  target: Target;
  hostname: string;
  world: Child;
  client: Child;
  /** Of the product. */
  pid: number;
  dataDir: string;
  hooksPort: number;
  /** A request to the operator's socket, for an account. */
  admin(method: string, path: string, body?: unknown, account?: string): Promise<Answer>;
  /** A key of the attacker's account. */
  keyOf(account: string, scope: string): Promise<string>;
  /** `AUTH PLAIN` of an account. */
  loginOf(account: string): Promise<string>;
  /** How the product ended; null: it runs. */
  gone(): string | null;
  log(): string;
  stop(): Promise<void>;
}

const hostname = "mail.svc.test";

export async function startStand(program: string, more: Sections, seconds: number): Promise<Stand> {
  const world = await startChild("world.ts");
  try {
    return await around(world, program, more, seconds);
  } catch (error) {
    await world.stop();
    throw error;
  }
}

async function around(world: Child, program: string, more: Sections, seconds: number): Promise<Stand> {
  const home = join(folder, `attacks-${process.pid}`);
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true, mode: 0o755 });
  const [https = 0, starttls = 0, tls = 0, inbound = 0, dnsPort = 0, smtpPort = 0, hooksPort = 0] =
    await freePorts(7);
  const [certificate, key] = makeCertificate(home, "hooks.test");
  await world.ask("start", { dnsPort, smtpPort, hooksPort, certificate, key });
  const set = (name: string, type: string, values: string[]): Promise<unknown> =>
    world.ask("set", { name, type, values });
  for (const [name, address] of [
    ["known", "127.0.0.2"],
    ["others", "127.0.0.4"],
  ] as const) {
    await set(`${name}.test`, "MX", [`10 mx.${name}.test`]);
    await set(`mx.${name}.test`, "A", [address]);
  }
  await set("hooks.test", "A", ["127.0.0.1"]);
  await set("closed.test", "A", ["127.0.0.77"]); // nothing listens there
  const target = { https, starttls, tls, inbound, seconds };
  const config = configuration(home, { ...target, dnsPort, smtpPort, certificate });
  for (const [section, values] of Object.entries(more)) config[section] = { ...config[section], ...values };
  writeFileSync(
    join(home, "svc.yaml"),
    JSON.stringify({ hostname, data_dir: join(home, "data"), ...config }),
  );
  const log = join(home, "log");
  const socket = join(home, "admin.sock");
  const child = await startProduct(program, home, socket, log);
  const admin: Stand["admin"] = (method, path, body, account = "default") =>
    exchange(socket, method, path, body, account);
  await made(admin("POST", "/v1/accounts", { name: "b" }));
  await addDomain(admin, set, "ok.test", "default");
  await addDomain(admin, set, "b.test", "b");
  const stand: Stand = {
    target,
    hostname,
    world,
    client: await startChild("client.ts"),
    pid: child.pid ?? 0,
    dataDir: join(home, "data"),
    hooksPort,
    admin,
    keyOf: async (account, scope) =>
      (await made(admin("POST", "/v1/keys", { name: "bench", scope }, account))).json.key as string,
    async loginOf(account) {
      const { json } = await made(admin("POST", "/v1/smtp_credentials", { name: "bench" }, account));
      return Buffer.from(`\0${json.username}\0${json.password}`).toString("base64");
    },
    gone: () =>
      child.exitCode === null && child.signalCode === null
        ? null
        : `ended with ${child.exitCode ?? child.signalCode}`,
    log: () => readFileSync(log, "utf8"),
    async stop() {
      await Promise.all([stand.client.stop(), world.stop(), end(child)]);
      rmSync(home, { recursive: true, force: true });
    },
  };
  await stand.client.ask("start", {
    https,
    starttls,
    key: await stand.keyOf("default", "admin"),
    login: await stand.loginOf("default"),
  });
  return stand;
}

/** A verified sender domain. */
export async function addDomain(
  admin: Stand["admin"],
  set: (name: string, type: string, values: string[]) => Promise<unknown>,
  domain: string,
  account: string,
): Promise<void> {
  const writes: Promise<unknown>[] = [];
  const asAccount = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    await Promise.all(writes);
    return admin(method, path, body, account);
  };
  const zone = {
    set: (name: string, type: string, values: string[]) => void writes.push(set(name, type, values)),
  };
  await publish({ admin: asAccount as never }, zone, domain);
}

interface Ports extends Target {
  dnsPort: number;
  smtpPort: number;
  certificate: string;
}

function configuration(home: string, ports: Ports): Sections {
  writeFileSync(
    join(home, "shaping.yaml"),
    JSON.stringify({ groups: { default: { connections: 10, per_second: 1000 } } }),
  );
  return {
    http: { listen: [`127.0.0.1:${ports.https}`] },
    relay: { starttls: [`127.0.0.1:${ports.starttls}`], implicit_tls: [`127.0.0.1:${ports.tls}`] },
    inbound: { listen: [`127.0.0.1:${ports.inbound}`] },
    dns: { servers: [`127.0.0.1:${ports.dnsPort}`] },
    outbound: {
      port: ports.smtpPort,
      allow_networks: ["127.0.0.0/8"],
      shaping_file: join(home, "shaping.yaml"),
    },
    webhooks: { allow_networks: ["127.0.0.0/8"], ca_file: ports.certificate },
    limits: { min_free_space: "0%" },
  };
}

async function startProduct(
  program: string,
  home: string,
  socket: string,
  log: string,
): Promise<ChildProcess> {
  const out = openSync(log, "w");
  const args = ["serve", "--config", join(home, "svc.yaml"), "--socket", socket];
  const child = spawn(join(program, "bin/svc"), args, { stdio: ["ignore", out, out] });
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  child.once("exit", () => process.off("exit", kill));
  const alive = (): Promise<boolean> =>
    exchange(socket, "GET", "/v1/status", undefined, "default").then(
      ({ status }) => status === 200,
      () => false,
    );
  for (let i = 0; !(existsSync(socket) && (await alive())); i++) {
    if (child.exitCode !== null || i > 300)
      throw new Error(`svc did not start: ${readFileSync(log, "utf8")}`);
    await wait(100);
  }
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(process.env["PROF"] ? "SIGTERM" : "SIGKILL");
  await once(child, "exit");
}

async function made(answer: Promise<Answer>): Promise<Answer> {
  const { status, text, json } = await answer;
  if (status !== 201) throw new Error(`not made: ${status} ${text}`);
  return { status, text, json };
}

function exchange(
  socketPath: string,
  method: string,
  path: string,
  body: unknown,
  account: string,
): Promise<Answer> {
  return new Promise((done, fail) => {
    const type = body === undefined ? {} : { "content-type": "application/json" };
    const headers = { ...type, "x-svc-account": account };
    const req = httpRequest({ socketPath, method, path, headers, agent: false }, (res) => {
      const chunks: Buffer[] = [];
      res.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", fail);
      res.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        done({ status: res.statusCode ?? 0, text, json: text.startsWith("{") ? JSON.parse(text) : null });
      });
    });
    req.on("error", fail);
    req.setTimeout(60_000, () => req.destroy(new Error("the operator's socket did not answer within 60 s")));
    req.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

function makeCertificate(home: string, name: string): [string, string] {
  const [certificate, key] = [join(home, "hooks.pem"), join(home, "hooks.key")];
  execFileSync(
    "openssl",
    [
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:prime256v1",
      "-nodes",
      "-days",
      "2",
    ].concat([
      "-subj",
      `/CN=${name}`,
      "-addext",
      `subjectAltName=DNS:${name}`,
      "-keyout",
      key,
      "-out",
      certificate,
    ]),
    { stdio: "ignore" },
  );
  return [certificate, key];
}
