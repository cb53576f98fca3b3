// Real mail programs as clients of the relay: each sends one mail as it is given, over STARTTLS or TLS from
// the first byte, logged in, and tells whether the server took it. They need .ci/peers.sh.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTransport } from "nodemailer";
import { eventually } from "./appliance.ts";
import { removeFolder } from "./folders.ts";

export interface Listener {
  name: string;
  port: number;
  implicitTls: boolean;
}
export interface Login {
  username: string;
  password: string;
}
export interface Sending {
  listener: Listener;
  from: string;
  to: string;
  /** CRLF line ends. */
  mail: Buffer;
}
export interface MailClient {
  name: string;
  /** It adds no field and changes none. */
  exact: boolean;
  /** It may end a mail with an empty line of its own. */
  loose?: true;
  send(sending: Sending): Promise<{ taken: boolean; said: string }>;
  stop(): Promise<void>;
}

const peers = process.env["SVC_PEERS_DIR"] ?? "/var/tmp/svc-peers";
const exim = join(peers, "exim/usr/sbin/exim4");

/** The programs that are not there. */
export function missingClients(): string[] {
  const needed = ["swaks", "msmtp", "curl", "python3", "git", "postfix"];
  const missing = needed.filter((name) => spawnSync("sh", ["-c", `command -v ${name}`]).status !== 0);
  if (!existsSync("/usr/lib/git-core/git-send-email")) missing.push("git send-email");
  if (!existsSync(exim)) missing.push("Exim");
  return missing;
}

async function run(
  command: string,
  args: string[],
  input: Buffer | null = null,
  env: Record<string, string> = {},
): Promise<{ code: number; said: string }> {
  const child = spawn(command, args, { env: { ...process.env, ...env } });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (said += chunk.toString()));
  child.stdin.on("error", () => undefined);
  child.stdin.end(input ?? undefined);
  const [code] = (await once(child, "close")) as [number | null];
  return { code: code ?? -1, said };
}

const lf = (mail: Buffer): Buffer => Buffer.from(mail.toString("latin1").replaceAll("\r\n", "\n"), "latin1");

/** All programs, each with a folder of its own; the servers among them started. */
export async function startMailClients(login: Login, listeners: Listener[]): Promise<MailClient[]> {
  const dir = mkdtempSync(join(tmpdir(), "svc-clients-"));
  chmodSync(dir, 0o755);
  const servers = await Promise.all([
    startNullPostfix(join(dir, "postfix"), login, listeners),
    eximClient(join(dir, "exim"), login, listeners),
  ]);
  const last: MailClient = {
    ...git(dir, login),
    stop: async () => removeFolder(dir),
  };
  return [
    swaks(dir, login),
    msmtp(dir, login),
    curl(login),
    smtplib(login),
    nodemailer(login, listeners),
    ...servers,
    last,
  ];
}

const nothing = async (): Promise<void> => undefined;

function swaks(dir: string, login: Login): MailClient {
  return {
    name: "swaks",
    exact: true,
    loose: true,
    async send({ listener, from, to, mail }) {
      const file = join(dir, "swaks.eml");
      // It takes % for tokens of its own, stuffs the dots and ends the last line itself.
      writeFileSync(file, lf(mail).toString("latin1").replace(/%/g, "%%").replace(/\n$/, ""), "latin1");
      const tls = listener.implicitTls ? "--tls-on-connect" : "--tls";
      const args = ["--server", "127.0.0.1", "--port", String(listener.port), tls, "--auth", "LOGIN"];
      const credentials = ["--auth-user", login.username, "--auth-password", login.password];
      const { code, said } = await run("swaks", [
        ...args,
        ...credentials,
        "--from",
        from,
        "--to",
        to,
        "--data",
        `@${file}`,
      ]);
      return { taken: code === 0, said };
    },
    stop: nothing,
  };
}

function msmtp(dir: string, login: Login): MailClient {
  return {
    name: "msmtp",
    exact: true,
    async send({ listener, from, to, mail }) {
      const file = join(dir, "msmtprc");
      const options = {
        host: "127.0.0.1",
        port: listener.port,
        tls: "on",
        tls_starttls: listener.implicitTls ? "off" : "on",
        tls_certcheck: "off",
        auth: "plain",
        user: login.username,
        password: login.password,
        from,
        remove_bcc_headers: "off",
        set_from_header: "off",
        set_date_header: "off",
      };
      const text = Object.entries(options).map(([key, value]) => `${key} ${value}\n`);
      writeFileSync(file, `account default\n${text.join("")}`, { mode: 0o600 });
      const { code, said } = await run("msmtp", ["-C", file, "--", to], lf(mail));
      return { taken: code === 0, said };
    },
    stop: nothing,
  };
}

function curl(login: Login): MailClient {
  return {
    name: "curl",
    exact: true,
    async send({ listener, from, to, mail }) {
      const url = `${listener.implicitTls ? "smtps" : "smtp"}://127.0.0.1:${listener.port}/client.test`;
      const { code, said } = await run(
        "curl",
        [
          "-sSvk",
          "--ssl-reqd",
          "--url",
          url,
          "--user",
          `${login.username}:${login.password}`,
          "--mail-from",
          from,
          "--mail-rcpt",
          to,
          "-T",
          "-",
        ],
        mail,
      );
      return { taken: code === 0, said };
    },
    stop: nothing,
  };
}

const python = `
import smtplib, ssl, sys
host, port, implicit, user, password, sender, to = sys.argv[1:]
context = ssl._create_unverified_context()
if implicit == "true":
    client = smtplib.SMTP_SSL(host, int(port), context=context)
else:
    client = smtplib.SMTP(host, int(port))
    client.starttls(context=context)
client.login(user, password)
client.sendmail(sender, [to], sys.stdin.buffer.read(), mail_options=["BODY=8BITMIME"])
client.quit()
`;

function smtplib(login: Login): MailClient {
  return {
    name: "Python smtplib",
    exact: true,
    async send({ listener, from, to, mail }) {
      const args = [
        "127.0.0.1",
        String(listener.port),
        String(listener.implicitTls),
        login.username,
        login.password,
        from,
        to,
      ];
      const { code, said } = await run("python3", ["-c", python, ...args], mail);
      return { taken: code === 0, said };
    },
    stop: nothing,
  };
}

function nodemailer(login: Login, listeners: Listener[]): MailClient {
  const pools = new Map(
    listeners.map((listener) => [
      listener.name,
      createTransport({
        host: "127.0.0.1",
        port: listener.port,
        secure: listener.implicitTls,
        requireTLS: !listener.implicitTls,
        pool: true,
        maxConnections: 3,
        auth: { user: login.username, pass: login.password },
        tls: { rejectUnauthorized: false },
      }),
    ]),
  );
  return {
    name: "nodemailer (pooled)",
    exact: true,
    async send({ listener, from, to, mail }) {
      try {
        const info: { response: string } | undefined = await pools
          .get(listener.name)
          ?.sendMail({ envelope: { from, to: [to] }, raw: mail });
        return { taken: true, said: info?.response ?? "" };
      } catch (error) {
        return { taken: false, said: String(error) };
      }
    },
    async stop() {
      for (const pool of pools.values()) pool.close();
    },
  };
}

/** It rewrites the header; what it is given reads like a patch. */
function git(dir: string, login: Login): Omit<MailClient, "stop"> {
  const home = join(dir, "git");
  mkdirSync(home);
  spawnSync("git", ["init", "-q", home]);
  const settings = ["user.name=Shop", "user.email=shop@ok.test", "sendemail.smtpsslcertpath="];
  const identity = settings.flatMap((setting) => ["-c", setting]);
  return {
    name: "git send-email",
    exact: false,
    loose: true,
    async send({ listener, from, to, mail }) {
      const file = join(home, "0001.patch");
      writeFileSync(
        file,
        Buffer.concat([
          Buffer.from("From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\n"),
          lf(mail),
        ]),
      );
      const args = [
        `--smtp-encryption=${listener.implicitTls ? "ssl" : "tls"}`,
        "--smtp-server=127.0.0.1",
        `--smtp-server-port=${listener.port}`,
        `--smtp-user=${login.username}`,
        `--smtp-pass=${login.password}`,
        "--smtp-domain=client.test",
        // It rewrites the author.
        `--from=${/^From: ?(.*)$/im.exec(mail.toString())?.[1]?.trim() ?? ""}`,
        `--envelope-sender=${from}`,
        `--to=${to}`,
        "--suppress-cc=all",
        "--confirm=never",
        "--no-thread",
        "--no-validate",
        "--transfer-encoding=8bit",
        "--8bit-encoding=UTF-8",
        "--smtp-debug=1",
      ];
      const { code, said } = await run("git", ["-C", home, ...identity, "send-email", ...args, file], null, {
        HOME: home,
      });
      return { taken: code === 0, said };
    },
  };
}

/** The listener of a mail is told by its envelope sender: `listener-0@ok.test`. */
const senderFor = (listeners: Listener[], listener: Listener): string =>
  `listener-${listeners.findIndex(({ name }) => name === listener.name)}@ok.test`;

async function startNullPostfix(dir: string, login: Login, listeners: Listener[]): Promise<MailClient> {
  const [etc, data, spool] = ["etc", "data", "spool"].map((name) => join(dir, name)) as [
    string,
    string,
    string,
  ];
  for (const folder of [etc, data, spool]) mkdirSync(folder, { recursive: true, mode: 0o755 });
  spawnSync("chown", ["postfix", data]);
  const transports = listeners
    .map((listener, i) => `${senderFor(listeners, listener)} listener${i}:[127.0.0.1]:${listener.port}`)
    .join("\n");
  writeFileSync(join(etc, "transports"), `${transports}\n`);
  writeFileSync(
    join(etc, "passwords"),
    listeners.map(({ port }) => `[127.0.0.1]:${port} ${login.username}:${login.password}\n`).join(""),
    { mode: 0o600 },
  );
  const log = join(dir, "mail.log");
  writeFileSync(
    join(etc, "main.cf"),
    `compatibility_level = 3.6
queue_directory = ${spool}
data_directory = ${data}
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
mail_owner = postfix
setgid_group = postdrop
myhostname = client.test
mydestination =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
alias_maps =
alias_database =
local_transport = error:no local mail here
sender_dependent_default_transport_maps = texthash:${etc}/transports
smtp_tls_security_level = encrypt
smtp_sasl_auth_enable = yes
smtp_sasl_password_maps = texthash:${etc}/passwords
smtp_sasl_security_options = noanonymous
smtp_line_length_limit = 0
maillog_file = ${log}
maillog_file_prefixes = ${dir}
`,
  );
  const listenerLines = listeners
    .map(
      ({ implicitTls }, i) =>
        `listener${i} unix - - n - - smtp${implicitTls ? "\n  -o smtp_tls_wrappermode=yes" : ""}\n`,
    )
    .join("");
  writeFileSync(
    join(etc, "master.cf"),
    `pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 discard
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
${listenerLines}`.replace("bounce unix - - n - 0 discard", "bounce unix - - n - 0 bounce"),
  );
  const env = { MAIL_CONFIG: etc };
  const started = spawnSync("postfix", ["-c", etc, "start"], { env: { ...process.env, ...env } });
  if (started.status !== 0) throw new Error(`postfix did not start: ${started.stderr.toString()}`);
  const logged = (): string => (existsSync(log) ? readFileSync(log, "utf8") : "");
  return {
    name: "Postfix as a null client",
    exact: false,
    async send({ listener, to, mail }) {
      const args = ["-C", etc, "-i", "-f", senderFor(listeners, listener), to];
      const { code, said } = await run("sendmail", args, lf(mail), env);
      if (code !== 0) return { taken: false, said };
      const line = await eventually(
        async () =>
          logged()
            .split("\n")
            .find((one) => one.includes(`to=<${to}>`) && /status=(?:sent|bounced|deferred)/.test(one)),
        20_000,
        `Postfix on ${to}:\n${logged()}`,
      );
      return { taken: line.includes("status=sent"), said: line };
    },
    async stop() {
      spawnSync("postfix", ["-c", etc, "abort"], { env: { ...process.env, ...env } });
    },
  };
}

async function eximClient(dir: string, login: Login, listeners: Listener[]): Promise<MailClient> {
  const spool = join(dir, "spool");
  mkdirSync(spool, { recursive: true, mode: 0o755 });
  spawnSync("chown", ["-R", "Debian-exim", spool]);
  const config = join(dir, "exim4.conf");
  const router = ({ port }: Listener, i: number): string => `listener${i}:
  driver = manualroute
  senders = ${senderFor(listeners, listeners[i] as Listener)}
  domains = *
  route_list = * 127.0.0.1::${port} byname
  self = send
  transport = listener${i}
  host_find_failed = fail
`;
  const transport = ({ implicitTls }: Listener, i: number): string => `listener${i}:
  driver = smtp
  allow_localhost
  helo_data = client.test
  message_linelength_limit = 1000000
  hosts_require_tls = *
  hosts_require_auth = *
  tls_verify_hosts = :
  tls_try_verify_hosts = :
  hosts_try_prdr = :
${implicitTls ? "  protocol = smtps\n" : ""}`;
  writeFileSync(
    config,
    `primary_hostname = client.test
spool_directory = ${spool}
exim_path = ${exim}
log_file_path = ${spool}/%slog
trusted_users = root
never_users =
message_size_limit = 50M
keep_environment =
begin routers
${listeners.map(router).join("\n")}
begin transports
${listeners.map(transport).join("\n")}
begin retry
* * F,1h,1h
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  client_send = ^${login.username}^${login.password}
`,
  );
  const mainlog = join(spool, "mainlog");
  const logged = (): string => (existsSync(mainlog) ? readFileSync(mainlog, "utf8") : "");
  return {
    name: "Exim as a smart-host client",
    exact: false,
    async send({ listener, to, mail }) {
      const library = { LD_LIBRARY_PATH: join(peers, "exim/usr/lib/x86_64-linux-gnu") };
      // Debian's Exim keeps its rights only under the configuration at its own place.
      const script = `mount --bind ${dir} /etc/exim4 && exec ${exim} "$@"`;
      const args = ["-m", "sh", "-c", script, "exim", "-i", "-odf", "-f", senderFor(listeners, listener), to];
      const { said } = await run("unshare", args, lf(mail), library);
      const lines = logged()
        .split("\n")
        .filter((one) => one.includes(to));
      return { taken: lines.some((line) => line.includes(`=> ${to}`)), said: said + lines.join("\n") };
    },
    stop: nothing,
  };
}
