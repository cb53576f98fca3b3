// Exim as a receiver: a daemon with a configuration, a spool and a maildir of its own in a temporary folder, of the
// binary that .ci/peers.sh unpacks. It runs as its own user throughout, from a copy without the set-uid bit: the loader
// gives a set-uid program no LD_LIBRARY_PATH, where Exim's libraries are.
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  answers,
  ended,
  filesIn,
  makeCertificate,
  peersFolder,
  readIfThere,
  type MailServer,
  type MailServerOptions,
} from "./peers.ts";
import { removeFolder } from "./folders.ts";

export async function startExim(options: MailServerOptions): Promise<MailServer> {
  const dir = mkdtempSync(join(tmpdir(), "svc-exim-"));
  chmodSync(dir, 0o755);
  const [etc, spool, box, program] = ["etc", "spool", "box", "exim4"].map((name) => join(dir, name)) as [
    string,
    string,
    string,
    string,
  ];
  for (const folder of [etc, spool, box]) mkdirSync(folder, { mode: 0o755 });
  copyFileSync(join(peersFolder, "exim/usr/sbin/exim4"), program);
  chmodSync(program, 0o755);
  const [cert, key] = makeCertificate(etc, options.hostname);
  writeFileSync(join(etc, "exim4.conf"), configuration({ ...options, spool, box, program, cert, key }));
  execFileSync("chown", ["Debian-exim", spool, box, key]);
  const library = join(peersFolder, "exim/usr/lib/x86_64-linux-gnu");
  // Debian's Exim trusts a configuration at its own place only.
  const script = `mount --bind ${etc} /etc/exim4 && exec ${program} -bdf`;
  const child = spawn("unshare", ["-m", "sh", "-c", script], {
    env: { ...process.env, LD_LIBRARY_PATH: library },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const log = () => said + readIfThere(join(spool, "mainlog")) + readIfThere(join(spool, "paniclog"));
  await answers(options).catch(async (error: unknown) => {
    await ended(child);
    throw new Error(`Exim did not start:\n${log()}`, { cause: error });
  });
  return {
    ...options,
    mails: () => filesIn(join(box, "new")),
    log,
    async stop() {
      await ended(child);
      removeFolder(dir);
    },
  };
}

interface Places {
  spool: string;
  box: string;
  program: string;
  cert: string;
  key: string;
}

function configuration(o: MailServerOptions & Places): string {
  return `primary_hostname = ${o.hostname}
spool_directory = ${o.spool}
exim_path = ${o.program}
log_file_path = ${o.spool}/%slog
local_interfaces = <; [${o.address}]:${o.port}
keep_environment = LD_LIBRARY_PATH
deliver_drop_privilege = true
never_users =
host_lookup =
rfc1413_hosts =
smtp_accept_max = 100
smtp_accept_queue_per_connection = 0
tls_advertise_hosts = *
tls_certificate = ${o.cert}
tls_privatekey = ${o.key}
acl_smtp_rcpt = received
acl_smtp_data = received_data
begin acl
received:
  accept domains = ${o.domain}
received_data:
  accept
begin routers
here:
  driver = accept
  domains = ${o.domain}
  transport = box
begin transports
box:
  driver = appendfile
  directory = ${o.box}
  maildir_format
  user = Debian-exim
  message_prefix =
  message_suffix =
`;
}
