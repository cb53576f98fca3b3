// `svc init`: writes svc.yaml, makes the database, the first admin key and SMTP login, and the records of
// the first domain. Refuses to do it twice (exit 5) without --force.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { hostname as machineName } from "node:os";
import { dirname, join, resolve } from "node:path";
import { Option, type Command } from "commander";
import { placesOf } from "../../config/places.ts";
import type { Cli } from "../cli.ts";
import type { Initialised } from "../daemon-contract.ts";
import { CliFault, usage } from "../fault.ts";
import { showRecords } from "../records.ts";

interface InitFlags {
  hostname?: string;
  domain?: string;
  adminEmail?: string;
  tls?: string;
  config?: string;
  dataDir?: string;
  force?: boolean;
  skipNetwork?: boolean;
}

/** What needs no file and no proxy; for those, tls is written by hand. */
const initModes = ["acme", "self-signed"];

export function register(init: Command, cli: Cli): void {
  init
    .option("--hostname <name>", "fully qualified host name of this server (the machine's own)")
    .option("--domain <domain>", "first domain to send from")
    .option("--admin-email <email>", "receives the notices to the operator")
    .addOption(
      new Option(
        "--tls <mode>",
        "where the certificate comes from: acme orders it from Let's Encrypt, whose terms you accept by that",
      ).choices(initModes),
    )
    .option("--config <file>", "svc.yaml to write (SVC_CONFIG)")
    .option("--data-dir <dir>", "database, spool, keys (SVC_DATA_DIR)")
    .option("--skip-network", "do not look up whether the DNS knows the host name, both ways")
    .option("--force", "overwrite an existing setup; the old svc.yaml is kept as svc.yaml.old")
    .action((flags: InitFlags) => initialise(cli, flags));
}

async function initialise(cli: Cli, flags: InitFlags): Promise<void> {
  const { io } = cli;
  const places = placesOf(io);
  const file = resolve(
    io.cwd,
    flags.config ?? io.env["SVC_CONFIG"] ?? places.userConfig ?? places.systemConfig,
  );
  const hostname = flags.hostname ?? machineName();
  if (!hostname.includes("."))
    throw usage(
      `this machine calls itself "${hostname}", which is not a fully qualified host name`,
      "Add --hostname mail.acme.example",
    );
  const dataDir = flags.dataDir === undefined ? null : resolve(io.cwd, flags.dataDir);
  const { faultText, loadConfig } = await import("../../config.ts");
  const { setsNothing } = await import("../../config/edit.ts");
  const { readTextFile } = await import("../../config/files.ts");
  const before = existsSync(file) ? readTextFile(file) : null;
  const blank = before !== null && setsNothing(before); // that of the package: its comments stay
  const text = yamlOf(
    { hostname, data_dir: dataDir, email: flags.adminEmail ?? null, tls: flags.tls ?? null },
    blank ? before : null,
  );
  const result = loadConfig({
    ...io,
    flags: { config: file },
    readFile: (path) => (path === file ? text : readTextFile(path)),
  });
  if ("faults" in result)
    throw new CliFault(78, "the configuration has faults:", result.faults.map(faultText));
  const { config } = result;
  if (!flags.force)
    for (const there of [...(blank ? [] : [file]), join(config.dataDir, "svc.db")])
      if (existsSync(there))
        throw new CliFault(5, `${there} already exists`, [
          "Add --force to set up again; keys and mail in the database are kept.",
        ]);

  const undo = writeConfig(file, text);
  const { createLog } = await import("../../log.ts");
  const log = createLog({ level: "warn" });
  try {
    const daemon = await cli.loadDaemon();
    const domain = flags.domain ?? null;
    const made = await daemon.initialise({ config, log, domain, checkNetwork: !flags.skipNetwork });
    if (blank) rmSync(`${file}.old`, { force: true });
    show(cli, file, made, flags.tls);
  } catch (error) {
    undo();
    if (error instanceof CliFault || !(error instanceof Error)) throw error;
    throw new CliFault(1, `nothing was set up: ${error.message}`);
  } finally {
    log.flush();
  }
}

const written = "# Written by svc init. Every other option has a default: see docs/configuration.md.\n";

/** JSON strings are YAML strings. */
function yamlOf(
  answers: { hostname: string; data_dir: string | null; email: string | null; tls: string | null },
  comments: string | null,
): string {
  const lines = [`hostname: ${JSON.stringify(answers.hostname)}`];
  if (answers.data_dir !== null) lines.push(`data_dir: ${JSON.stringify(answers.data_dir)}`);
  if (answers.email !== null) lines.push(`operations:`, `  email: ${JSON.stringify(answers.email)}`);
  if (answers.tls !== null) lines.push("tls:", `  mode: ${answers.tls}`);
  return `${comments ?? written}${lines.join("\n")}\n`;
}

function writeConfig(file: string, text: string): () => void {
  const old = `${file}.old`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o755 });
    const kept = existsSync(file);
    if (kept) renameSync(file, old);
    writeFileSync(file, text, { mode: 0o644, flag: "wx" });
    return () => (kept ? renameSync(old, file) : rmSync(file, { force: true }));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CliFault(4, `${file} cannot be written: ${why}`, [
      "Run it with sudo, or choose another place with --config.",
    ]);
  }
}

function show(cli: Cli, file: string, made: Initialised, tls: string | undefined): void {
  const { adminKey, smtp, domain, remarks } = made;
  if (cli.out.json)
    return cli.out.body(
      JSON.stringify({
        config: file,
        admin_key: adminKey,
        smtp,
        remarks,
        domain: domain === null ? null : { name: domain.name, records: domain.records },
      }),
    );
  cli.out.note(`${file} is written. The key and the password are shown only once:`);
  cli.out.fields([
    ["admin key", adminKey],
    ["SMTP login", smtp.username],
    ["SMTP password", smtp.password],
  ]);
  for (const remark of remarks) cli.out.note(remark);
  if (tls === "acme")
    cli.out.note(
      `The certificate is ordered when the service runs: the host name must lead to it, and port 80 be open. To see it: ${cli.program} cert show`,
    );
  if (domain) {
    cli.out.line("");
    cli.out.note(`Publish these records for ${domain.name}:`);
    showRecords(
      cli,
      domain.records.map((record) => ({ ...record })),
    );
  }
  cli.out.next(
    domain
      ? `Then: ${cli.program} serve, and once the records are published: ${cli.program} domains verify ${domain.name}`
      : `Next: ${cli.program} serve, and ${cli.program} domains add DOMAIN`,
  );
}
