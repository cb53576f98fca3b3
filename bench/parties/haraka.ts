// Haraka as a relay from this machine to the sink, alone or with its dkim plugin (RSA-2048): a process a core,
// its queue as it is by default (fsync before the 250).
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, openSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { createGroup } from "../group.ts";
import { folder, ports } from "../tools.ts";
import { answers, makeCertificate, type Party, type Setting } from "./party.ts";

export const haraka: Party = { name: "Haraka", start: startHaraka };

const login = { username: "bench", password: "a-password-of-the-bench" };

async function startHaraka({ signed, submission }: Setting) {
  const installed = join(folder, "haraka/node_modules/haraka");
  if (!existsSync(installed)) throw new Error("Haraka is missing: run bench/peers.sh as root");
  const home = join(folder, "haraka-run");
  rmSync(home, { recursive: true, force: true });
  for (const name of ["config", "plugins", "queue"]) mkdirSync(join(home, name), { recursive: true });
  cpSync(join(installed, "config/connection.ini"), join(home, "config/connection.ini"));
  const files: Record<string, string> = {
    "config/me": "relay.test\n",
    "config/smtp.ini":
      `listen=127.0.0.1:${ports.smtp}${submission ? `,127.0.0.1:${ports.smtps}` : ""}\n` +
      `smtps_port=${ports.smtps}\nnodes=${availableParallelism()}\n`,
    "config/log.ini": "[main]\nlevel=notice\ntimestamps=true\n",
    "config/outbound.ini": "concurrency_max=100\nenable_tls=false\nlocal_mx_ok=true\n",
    "config/plugins": `${submission ? "tls\nauth/flat_file\n" : ""}${signed ? "dkim\n" : ""}everything_to_the_sink\n`,
    "plugins/everything_to_the_sink.js": `exports.hook_connect = (next, connection) => {
  connection.relaying = true;
  next();
};
exports.hook_get_mx = (next) => next(OK, { priority: 10, exchange: "127.0.0.1", port: ${ports.sink} });
`,
  };
  if (signed) {
    const keys = join(home, "config/dkim/example.test");
    mkdirSync(keys, { recursive: true });
    execFileSync("openssl", ["genrsa", "-out", join(keys, "private"), "2048"], { stdio: "ignore" });
    files["config/dkim/example.test/selector"] = "bench\n";
    files["config/dkim.ini"] =
      "[sign]\nenabled=true\nselector=bench\ndomain=example.test\nheaders=From, Subject, Date, Message-ID, To\n" +
      "[canon]\nbody=relaxed\n[verify]\nenabled=false\n";
  }
  if (submission) {
    makeCertificate(join(home, "config/tls_cert.pem"), join(home, "config/tls_key.pem"));
    // Without these it computes its own for a minute first.
    execFileSync("openssl", ["dhparam", "-dsaparam", "-out", join(home, "config/dhparams.pem"), "2048"], {
      stdio: "ignore",
    });
    files["config/auth_flat_file.ini"] =
      `[core]\nmethods=PLAIN,LOGIN\nconstrain_sender=false\n[users]\n${login.username}=${login.password}\n`;
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(home, name), text);
  const group = createGroup("haraka");
  const log = openSync(join(home, "log"), "w");
  group.spawn(process.execPath, [join(installed, "bin/haraka"), "-c", home], { stdio: ["ignore", log, log] });
  await answers(ports.smtp);
  await wait(1_000); // the other processes
  return { group, ...(submission ? { login } : {}), stop: () => group.end() };
}
