// Real mail servers as receivers, each with a configuration and a spool of its own in a temporary folder:
// Postfix (as a receiver, and as a smart host with a login) and postgrey from Debian's packages, OpenSMTPD unpacked beside them by .ci/peers.sh. Exim and Haraka: exim.ts,
// haraka.ts. They need root.
import { execFileSync, spawn, spawnSync, type ChildProcess } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { createSocket } from "node:dgram";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { eventually, freeAddress, freePort } from "./appliance.ts";
import { removeFolder } from "./folders.ts";

/** Where .ci/peers.sh puts what is not installed as a package. */
export const peersFolder = process.env["SVC_PEERS_DIR"] ?? "/var/tmp/svc-peers";
const smtpd = join(peersFolder, "opensmtpd/usr/sbin/smtpd");
const inPeersFolder: Record<string, string> = {
  OpenSMTPD: smtpd,
  Exim: join(peersFolder, "exim/usr/sbin/exim4"),
  Haraka: join(peersFolder, "haraka/node_modules/haraka/bin/haraka"),
  "library of Cloudflare": join(peersFolder, "cloudflare/node_modules/cloudflare/package.json"),
};

/** What is missing for the tests with real peers; null where all is there. A missing peer in CI is a failure. */
export function missingPeers(): string | null {
  const needed = [
    ["postfix", "postgrey", "swaks", "opendkim-testmsg", "openssl", "rbldnsd", "pebble", "saslpasswd2"],
    ["named", "tsig-keygen", "named-checkzone", "kzonecheck", "knotd", "keymgr"],
  ].flat();
  const missing = needed.filter((name) => spawnSync("sh", ["-c", `command -v ${name}`]).status !== 0);
  for (const [name, file] of Object.entries(inPeersFolder)) if (!existsSync(file)) missing.push(name);
  if (spawnSync("perl", ["-MMail::DKIM::Verifier", "-e", "1"]).status !== 0) missing.push("Mail::DKIM");
  if (spawnSync("/usr/bin/python3", ["-c", "import dkim, nacl"]).status !== 0) missing.push("dkimpy");
  if (spawnSync("/usr/bin/python3", ["-c", "import botocore"]).status !== 0) missing.push("botocore");
  if (process.getuid?.() !== 0) missing.push("root");
  if (missing.length === 0) return null;
  const text = `no ${missing.join(", no ")}: run .ci/peers.sh as root`;
  if (process.env["CI"]) throw new Error(`tests with real peers cannot run: ${text}`);
  return text;
}

export interface MailServer {
  address: string;
  port: number;
  /** Mails that were delivered into its mailbox so far, as they lie there. */
  mails(): Buffer[];
  log(): string;
  stop(): Promise<void>;
}

export interface MailServerOptions {
  address: string;
  port: number;
  domain: string;
  hostname: string;
  /** Postfix: keywords that its EHLO does not offer. */
  without?: string[];
  /** Postfix: smtpd_tls_security_level; "may" if not given. */
  tls?: "may" | "encrypt";
  /** Postfix: takes mail from this login alone, by Cyrus SASL and only under TLS, as a smart host does. */
  login?: { user: string; password: string };
  /** Postfix: a policy server that is asked about each recipient, after the rules. */
  policy?: { port: number };
}

/** A self-signed certificate made by openssl: [certificate file, key file]. RSA: OpenSMTPD 6.8 cannot use EC keys with OpenSSL 3. */
export function makeCertificate(dir: string, name: string): [string, string] {
  const [cert, key] = [join(dir, "cert.pem"), join(dir, "key.pem")];
  const pair = ["-newkey", "rsa:2048", "-nodes", "-days", "30"];
  execFileSync(
    "openssl",
    [
      "req",
      "-x509",
      ...pair,
      "-subj",
      `/CN=${name}`,
      "-addext",
      `subjectAltName=DNS:${name}`,
      "-keyout",
      key,
      "-out",
      cert,
    ],
    { stdio: "ignore" },
  );
  chmodSync(key, 0o600);
  return [cert, key];
}

export interface Postfix extends MailServer {
  /** Its certificate, signed by itself. */
  certFile: string;
  /** From now on RCPT of `address` is answered with `reply`; null takes the rule away. */
  rule(address: string, reply: string | null): void;
}

export async function startPostfix(options: MailServerOptions): Promise<Postfix> {
  const dir = mkdtempSync(join(tmpdir(), "svc-postfix-"));
  chmodSync(dir, 0o755);
  const [etc, data, spool, box] = ["etc", "data", "spool", "box"].map((name) => join(dir, name)) as [
    string,
    string,
    string,
    string,
  ];
  for (const folder of [etc, data, spool, box]) mkdirSync(folder, { mode: 0o755 });
  execFileSync("chown", ["postfix", data]);
  execFileSync("chown", ["nobody:nogroup", box]);
  const [cert, key] = makeCertificate(etc, options.hostname);
  const rules = new Map<string, string>();
  const policy = await servePolicy((recipient) => rules.get(recipient) ?? "DUNNO");
  const [uid, gid] = [
    execFileSync("id", ["-u", "nobody"]).toString().trim(),
    execFileSync("getent", ["group", "nogroup"]).toString().split(":")[2],
  ];
  writeFileSync(
    join(etc, "main.cf"),
    mainCf({ ...options, dir, cert, key, policyPort: policy.port, uid, gid: gid ?? "" }),
  );
  writeFileSync(join(etc, "master.cf"), masterCf(options));
  if (options.login) keepLogin(etc, options.hostname, options.login);
  const postfix = (command: string) =>
    spawnSync("postfix", ["-c", etc, command], { env: { ...process.env, MAIL_CONFIG: etc } });
  const started = postfix("start");
  if (started.status !== 0) throw new Error(`postfix did not start: ${started.stderr.toString()}`);
  await answers(options).catch((error: unknown) => {
    postfix("abort");
    throw new Error(`Postfix did not start:\n${readIfThere(join(dir, "mail.log"))}`, { cause: error });
  });
  return {
    ...options,
    certFile: cert,
    mails: () => filesIn(join(box, "all", "new")),
    log: () => readIfThere(join(dir, "mail.log")),
    rule(address, reply) {
      if (reply === null) rules.delete(address);
      else rules.set(address, reply);
    },
    async stop() {
      postfix("abort");
      await policy.stop();
      removeFolder(dir);
    },
  };
}

/** postgrey, which greylists a client, sender and recipient that it sees for the first time, and says for how long. */
export async function startPostgrey(options: {
  delaySeconds: number;
}): Promise<{ port: number; stop(): Promise<void> }> {
  const dir = mkdtempSync(join(tmpdir(), "svc-postgrey-"));
  execFileSync("chown", ["postgrey:postgrey", dir]);
  const port = await freePort();
  const child = spawn(
    "postgrey",
    [
      `--inet=127.0.0.1:${port}`,
      `--dbdir=${dir}`,
      `--delay=${options.delaySeconds}`,
      "--greylist-text=Greylisted, try again in %s seconds",
    ],
    { stdio: "ignore" },
  );
  await eventually(() => accepts(port), 120_000, "postgrey listening");
  return {
    port,
    async stop() {
      await ended(child);
      removeFolder(dir);
    },
  };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect({ host: "127.0.0.1", port });
    socket.once("connect", () => (socket.destroy(), done(true)));
    socket.once("error", () => done(false));
  });
}

/** Sends SIGTERM and waits for the end. */
export async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  await gone;
}

/** Postfix's policy delegation: attributes a line each, an empty line, then the action to take. */
async function servePolicy(
  actionFor: (recipient: string) => string,
): Promise<{ port: number; stop(): Promise<void> }> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket)).on("error", () => socket.destroy());
    let held = "";
    socket.on("data", (chunk: Buffer) => {
      held += chunk.toString();
      for (let end = held.indexOf("\n\n"); end >= 0; end = held.indexOf("\n\n")) {
        const recipient = /^recipient=(.*)$/m.exec(held.slice(0, end))?.[1] ?? "";
        held = held.slice(end + 2);
        socket.write(`action=${actionFor(recipient)}\n\n`);
      }
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    port: typeof address === "object" && address ? address.port : 0,
    async stop() {
      for (const socket of open) socket.destroy();
      await new Promise<void>((done) => server.close(() => done()));
    },
  };
}

function mainCf(
  o: MailServerOptions & {
    dir: string;
    cert: string;
    key: string;
    policyPort: number;
    uid: string;
    gid: string;
  },
): string {
  const policies = [o.policyPort, ...(o.policy ? [o.policy.port] : [])];
  return `compatibility_level = 3.6
queue_directory = ${o.dir}/spool
data_directory = ${o.dir}/data
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
mail_owner = postfix
setgid_group = postdrop
myhostname = ${o.hostname}
mydestination =
alias_maps =
alias_database =
local_transport = error:no local mail here
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.255.255.255/32
virtual_mailbox_domains = ${o.domain}
virtual_mailbox_base = ${o.dir}/box
virtual_mailbox_maps = static:all/
virtual_uid_maps = static:${o.uid}
virtual_gid_maps = static:${o.gid}
virtual_minimum_uid = 1
smtpd_relay_restrictions = ${o.login ? "permit_sasl_authenticated, reject" : "reject_unauth_destination"}
smtpd_sasl_auth_enable = ${o.login ? "yes" : "no"}
smtpd_sasl_local_domain = ${o.hostname}
smtpd_tls_auth_only = yes
smtpd_recipient_restrictions = ${policies.map((at) => `check_policy_service inet:127.0.0.1:${at}`).join(", ")}
smtpd_peername_lookup = no
smtpd_discard_ehlo_keywords = ${(o.without ?? []).join(", ")}
smtpd_tls_security_level = ${o.tls ?? "may"}
smtpd_tls_cert_file = ${o.cert}
smtpd_tls_key_file = ${o.key}
maillog_file = ${o.dir}/mail.log
maillog_file_prefixes = ${o.dir}
`;
}

/** The password in a database of Cyrus SASL, which smtpd looks it up in. */
function keepLogin(etc: string, realm: string, { user, password }: { user: string; password: string }): void {
  const folder = join(etc, "sasl"); // where Debian's Postfix looks
  mkdirSync(folder);
  const database = join(folder, "sasldb2");
  execFileSync("saslpasswd2", ["-p", "-c", "-f", database, "-u", realm, user], { input: password });
  execFileSync("chown", ["postfix", database]);
  writeFileSync(
    join(folder, "smtpd.conf"),
    `pwcheck_method: auxprop\nauxprop_plugin: sasldb\nsasldb_path: ${database}\nmech_list: PLAIN LOGIN\n`,
  );
}

function masterCf({ address, port }: MailServerOptions): string {
  return `${address}:${port} inet n - n - - smtpd
cleanup   unix  n       -       n       -       0       cleanup
qmgr      unix  n       -       n       300     1       qmgr
tlsmgr    unix  -       -       n       1000?   1       tlsmgr
rewrite   unix  -       -       n       -       -       trivial-rewrite
bounce    unix  -       -       n       -       0       bounce
defer     unix  -       -       n       -       0       bounce
trace     unix  -       -       n       -       0       bounce
verify    unix  -       -       n       -       1       verify
flush     unix  n       -       n       1000?   0       flush
proxymap  unix  -       -       n       -       -       proxymap
virtual   unix  -       n       n       -       -       virtual
error     unix  -       -       n       -       -       error
retry     unix  -       -       n       -       -       error
anvil     unix  -       -       n       -       1       anvil
postlog   unix-dgram n  -       n       -       1       postlogd
`;
}

export async function startOpenSmtpd(options: MailServerOptions): Promise<MailServer> {
  const dir = mkdtempSync(join(tmpdir(), "svc-opensmtpd-"));
  chmodSync(dir, 0o755);
  const box = join(dir, "box");
  mkdirSync(box);
  chmodSync(box, 0o777);
  const [cert, key] = makeCertificate(dir, options.hostname);
  const config = join(dir, "smtpd.conf");
  writeFileSync(
    config,
    `pki ${options.hostname} cert "${cert}"
pki ${options.hostname} key "${key}"
table catchall { "@" = "nobody" }
listen on ${options.address} port ${options.port} hostname ${options.hostname} tls pki ${options.hostname}
action "keep" maildir "${box}" virtual <catchall> user nobody
match from any for domain "${options.domain}" action "keep"
`,
  );
  let log = "";
  // Where its spool and its socket lie is compiled in: each one sees its own.
  const own =
    "mkdir -p /var/spool/smtpd && mount -t tmpfs -o mode=0711 tmpfs /var/spool/smtpd && mount -t tmpfs tmpfs /run";
  const child: ChildProcess = spawn(
    "unshare",
    ["-m", "sh", "-c", `${own} && exec ${smtpd} -d -f ${config}`],
    {
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => (log += chunk.toString()));
  await answers(options).catch(async (error: unknown) => {
    await ended(child);
    throw new Error(`OpenSMTPD did not start:\n${log}`, { cause: error });
  });
  return {
    ...options,
    mails: () => filesIn(join(box, "new")),
    log: () => log,
    async stop() {
      await ended(child);
      removeFolder(dir);
    },
  };
}

export interface Rbldnsd {
  port: number;
  /** Replaces the data of a file of the zones; answers come of it within a second or two. */
  write(file: string, data: string): void;
  stop(): Promise<void>;
}

/** A blocklist served by rbldnsd. `zones`: `bl.test:ip4set:bl4`, each with a file of `files`. */
export async function startRbldnsd(
  port: number,
  zones: readonly string[],
  files: Readonly<Record<string, string>>,
): Promise<Rbldnsd> {
  const dir = mkdtempSync(join(tmpdir(), "svc-rbldnsd-"));
  chmodSync(dir, 0o755);
  const write = (file: string, data: string): void => writeFileSync(join(dir, file), data);
  for (const [file, data] of Object.entries(files)) write(file, data);
  const flags = ["-n", "-u", "nobody", "-w", dir, "-b", `127.0.0.1/${port}`, "-c", "1s", "-t", "1"];
  const child = spawn("rbldnsd", [...flags, ...zones], { stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (log += chunk.toString()));
  await eventually(
    async () => {
      if (child.exitCode !== null) throw new Error(`rbldnsd did not start:\n${log}`);
      return log.includes("started");
    },
    15_000,
    "rbldnsd's start",
  );
  return {
    port,
    write,
    async stop() {
      if (child.exitCode === null) {
        const gone = once(child, "exit");
        child.kill("SIGTERM");
        await gone;
      }
      removeFolder(dir);
    },
  };
}

export function filesIn(folder: string): Buffer[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => !name.startsWith("."))
    .map((name) => readFileSync(join(folder, name)));
}

export function readIfThere(file: string): string {
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}

/** Resolves once a banner comes from the port. */
export async function answers({ address, port }: { address: string; port: number }): Promise<void> {
  const banner = () =>
    new Promise<boolean>((done) => {
      const socket = connect({ host: address, port });
      socket.once("data", () => (socket.destroy(), done(true)));
      socket.once("error", () => done(false));
      socket.once("close", () => done(false));
      socket.setTimeout(2_000, () => socket.destroy());
    });
  await eventually(banner, 120_000, `a banner from ${address}:${port}`);
}

/** A resolver on loopback that asks the server at `port` about names below the zones, and `others` about all others; over UDP. */
export async function startSplitResolver(
  zones: readonly string[],
  port: number,
  others: number,
): Promise<{ server: string; stop(): Promise<void> }> {
  const udp = createSocket("udp4");
  const wire = zones.map((zone) =>
    zone.split(".").map((label) => `${String.fromCharCode(label.length)}${label}`),
  );
  udp.on("message", (question, from) => {
    const text = question.toString("latin1").toLowerCase();
    const upstream = createSocket("udp4");
    upstream.once("message", (reply) => udp.send(reply, from.port, from.address, () => upstream.close()));
    upstream.send(question, wire.some((zone) => text.includes(zone.join(""))) ? port : others, "127.0.0.1");
  });
  udp.bind(0, "127.0.0.1");
  await once(udp, "listening");
  return {
    server: `127.0.0.1:${udp.address().port}`,
    stop: () => new Promise<void>((done) => udp.close(() => done())),
  };
}

/** The test's DNS at port 53 of a loopback address of its own, for programs that ask no other port. */
export async function serveOnPort53(dnsPort: number): Promise<{ address: string; stop(): Promise<void> }> {
  const address = freeAddress();
  const udp = createSocket("udp4");
  udp.on("message", (question, from) => {
    const upstream = createSocket("udp4");
    upstream.once("message", (reply) => udp.send(reply, from.port, from.address, () => upstream.close()));
    upstream.send(question, dnsPort, "127.0.0.1");
  });
  const tcp = createServer((client) => {
    const upstream = connect({ host: "127.0.0.1", port: dnsPort });
    for (const socket of [client, upstream]) socket.on("error", () => socket.destroy());
    client.pipe(upstream).pipe(client);
  });
  udp.bind(53, address);
  tcp.listen(53, address);
  await Promise.all([once(udp, "listening"), once(tcp, "listening")]);
  return {
    address,
    async stop() {
      await Promise.all([
        new Promise<void>((done) => udp.close(() => done())),
        new Promise<void>((done) => tcp.close(() => done())),
      ]);
    },
  };
}
