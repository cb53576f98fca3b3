// Postfix as a relay from this machine to the sink, alone or with OpenDKIM as its milter (RSA-2048). Its limits
// are lifted and its log is on; what is safe stays as it is by default (fsync before the 250).
// Logins are Cyrus SASL's own database, which its process asks without another.
import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, openSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { createGroup, type Group } from "../group.ts";
import { folder, ports } from "../tools.ts";
import { answers, makeCertificate, type Party, type Setting } from "./party.ts";

export const postfix: Party = { name: "Postfix", start: startPostfix };

const login = { username: "bench@relay.test", password: "a-password-of-the-bench" };

async function startPostfix({ signed, submission }: Setting) {
  const home = join(folder, "postfix");
  rmSync(home, { recursive: true, force: true });
  for (const name of ["etc", "data", "spool"]) mkdirSync(join(home, name), { recursive: true, mode: 0o755 });
  execFileSync("chown", ["postfix", join(home, "data")]);
  const group = createGroup("postfix");
  const milter = signed ? await startOpenDkim(group, home) : null;
  if (submission) makeLogin(home);
  writeFileSync(join(home, "etc/main.cf"), mainCf(home, milter));
  writeFileSync(join(home, "etc/master.cf"), (submission ? submissions : "") + masterCf);
  const etc = join(home, "etc");
  const start = group.spawn("postfix", ["-c", etc, "start"], {
    env: { MAIL_CONFIG: etc },
    stdio: ["ignore", "ignore", openSync(join(home, "start.log"), "w")],
  });
  await once(start, "exit");
  await answers(ports.smtp);
  return {
    group,
    ...(submission ? { login } : {}),
    async stop() {
      spawnSync("postfix", ["-c", etc, "abort"], { stdio: "ignore" });
      await group.end();
    },
  };
}

async function startOpenDkim(group: Group, home: string): Promise<string> {
  const own = join(home, "opendkim");
  mkdirSync(own);
  const [key, socket, config] = [join(own, "key.pem"), join(own, "milter.sock"), join(own, "opendkim.conf")];
  execFileSync("openssl", ["genrsa", "-out", key, "2048"], { stdio: "ignore" });
  writeFileSync(
    config,
    `Mode s
Domain example.test
Selector bench
KeyFile ${key}
RequireSafeKeys no
Socket local:${socket}
Canonicalization relaxed/relaxed
SignatureAlgorithm rsa-sha256
OversignHeaders From
InternalHosts 127.0.0.0/8
UserID opendkim
UMask 000
Background no
Syslog no
`,
  );
  execFileSync("chown", ["-R", "opendkim:opendkim", own]);
  chmodSync(home, 0o755);
  group.spawn("opendkim", ["-f", "-x", config], {
    stdio: ["ignore", "ignore", openSync(join(home, "opendkim.log"), "w")],
  });
  for (let i = 0; !existsSync(socket); i++) {
    if (i > 200) throw new Error(`OpenDKIM did not start: see ${home}/opendkim.log`);
    await wait(50);
  }
  return `unix:${socket}`;
}

function makeLogin(home: string): void {
  const [certificate, key] = [join(home, "certificate.pem"), join(home, "key.pem")];
  makeCertificate(certificate, key);
  const sasl = join(home, "etc/sasl");
  mkdirSync(sasl);
  const database = join(sasl, "sasldb2");
  const [user = "", realm = ""] = login.username.split("@");
  execFileSync("saslpasswd2", ["-p", "-c", "-f", database, "-u", realm, user], { input: login.password });
  execFileSync("chown", ["postfix", database]);
  const config = ["pwcheck_method: auxprop", "auxprop_plugin: sasldb", "mech_list: PLAIN LOGIN"];
  writeFileSync(join(sasl, "smtpd.conf"), [...config, `sasldb_path: ${database}`, ""].join("\n"));
}

const mainCf = (home: string, milter: string | null): string => `compatibility_level = 3.6
myhostname = relay.test
queue_directory = ${home}/spool
data_directory = ${home}/data
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
mail_owner = postfix
setgid_group = postdrop
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
mydestination =
local_transport = error:no local mail
local_recipient_maps =
alias_maps =
alias_database =
smtpd_relay_restrictions = permit_mynetworks, reject
smtpd_peername_lookup = no
smtpd_client_connection_count_limit = 0
relayhost = [127.0.0.1]:${ports.sink}
disable_dns_lookups = yes
smtp_host_lookup = native
smtp_tls_security_level = none
smtp_connection_cache_destinations = [127.0.0.1]:${ports.sink}
default_destination_concurrency_limit = 20
initial_destination_concurrency = 20
default_process_limit = 200
qmgr_message_active_limit = 40000
qmgr_message_recipient_limit = 40000
in_flow_delay = 0
cyrus_sasl_config_path = ${home}/etc/sasl
smtpd_tls_cert_file = ${home}/certificate.pem
smtpd_tls_key_file = ${home}/key.pem
maillog_file = ${home}/mail.log
maillog_file_prefixes = ${home}
${milter === null ? "" : `smtpd_milters = ${milter}\nmilter_default_action = tempfail\n`}`;

const submissions = `127.0.0.1:${ports.smtps} inet n - n - 200 smtpd
  -o smtpd_tls_wrappermode=yes -o smtpd_sasl_auth_enable=yes
`;

const masterCf = `127.0.0.1:${ports.smtp} inet n - n - 200 smtpd
cleanup    unix  n - n -     0 cleanup
qmgr       unix  n - n 300   1 qmgr
tlsmgr     unix  - - n 1000? 1 tlsmgr
rewrite    unix  - - n -     - trivial-rewrite
bounce     unix  - - n -     0 bounce
defer      unix  - - n -     0 bounce
trace      unix  - - n -     0 bounce
verify     unix  - - n -     1 verify
proxymap   unix  - - n -     - proxymap
proxywrite unix  - - n -     1 proxymap
smtp       unix  - - n -   200 smtp
error      unix  - - n -     - error
retry      unix  - - n -     - error
anvil      unix  - - n -     1 anvil
scache     unix  - - n -     1 scache
postlog    unix-dgram n - n - 1 postlogd
`;
