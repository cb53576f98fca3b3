// Haraka as a receiver, of the version that .ci/haraka.sh installs: it takes mail for one domain and keeps each as it
// came, with the trace fields that it adds, in a folder of its own. In clear: with TLS it would first compute DH parameters.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { answers, ended, filesIn, peersFolder, type MailServer, type MailServerOptions } from "./peers.ts";
import { removeFolder } from "./folders.ts";

const installed = join(peersFolder, "haraka/node_modules/haraka");

export async function startHaraka(options: MailServerOptions): Promise<MailServer> {
  const dir = mkdtempSync(join(tmpdir(), "svc-haraka-"));
  const box = join(dir, "box");
  for (const name of ["config", "plugins", "queue", "box"]) mkdirSync(join(dir, name));
  const files: Record<string, string> = {
    "config/me": `${options.hostname}\n`,
    "config/smtp.ini": `listen=${options.address}:${options.port}\nnodes=0\n`,
    // As it comes, Haraka breaks lines of more than 992 octets (998, a dot that is stuffed and CRLF are 1,001), and takes
    // Authentication-Results out.
    "config/connection.ini": readFileSync(join(installed, "config/connection.ini"), "utf8")
      .replace(/^data_line_length=.*$/m, "data_line_length=1001")
      .replace("[headers]", "[headers]\nclean_auth_results=false"),
    "config/log.ini": "[main]\nlevel=notice\n",
    "config/host_list": `${options.domain}\n`,
    "config/plugins": "rcpt_to.in_host_list\nkeep\n",
    "plugins/keep.js": `const fs = require("node:fs");
exports.hook_queue = (next, { transaction }) => {
  const at = ${JSON.stringify(box)} + "/" + transaction.uuid;
  const file = fs.createWriteStream(at.replace(/([^/]+)$/, ".$1"));
  file.on("finish", () => fs.rename(file.path, at, (error) => next(error ? DENYSOFT : OK)));
  transaction.message_stream.pipe(file);
};
`,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  const child = spawn(process.execPath, [join(installed, "bin/haraka"), "-c", dir], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (log += chunk.toString()));
  await answers(options).catch(async (error: unknown) => {
    await ended(child);
    throw new Error(`Haraka did not start:\n${log}`, { cause: error });
  });
  return {
    ...options,
    mails: () => filesIn(box),
    log: () => log,
    async stop() {
      await ended(child);
      removeFolder(dir);
    },
  };
}
