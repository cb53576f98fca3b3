// `svc domains dkim`: other DKIM keys for a domain, made by the service or the sender's own.
import type { Command } from "commander";
import { readInputFile, readStandardInput, segment, type Cli } from "../cli.ts";
import { withExample } from "../help-example.ts";
import type { Row } from "../output.ts";
import { recordsOf, showRecords } from "../records.ts";

export interface KeyFlags {
  selector?: string;
  keyFile?: string;
}

const largestKey = 64 * 1024;

export function registerDkim(domains: Command, cli: Cli): void {
  const dkim = domains.command("dkim").description("change the DKIM keys of a domain: rotate, import");
  dkim.helpCommand(false);
  withExample(
    dkim
      .command("rotate <domain>")
      .description("create new DKIM keys, which sign once the DNS has them")
      .option("--selector <name>", "selector of the new keys"),
    "domains dkim rotate acme.example",
  ).action((name: string, flags: KeyFlags) => replaceKeys(cli, name, keyOf(flags)));
  withExample(
    dkim
      .command("import <domain> <file>")
      .description(
        "use a key of your own, which signs once the DNS has it: a private key in PEM, RSA from 2048 to 4096 bits or Ed25519; - is standard input",
      )
      .option("--selector <name>", "selector that its record stands under"),
    "domains dkim import acme.example dkim.pem --selector acme2026",
  ).action(async (name: string, file: string, flags: KeyFlags) => {
    const key = file === "-" ? await readStandardInput(cli.io, largestKey) : readInputFile(file, "file");
    await replaceKeys(cli, name, { ...keyOf(flags), private_key: key.toString("utf8") });
  });
}

async function replaceKeys(cli: Cli, name: string, body: Record<string, string>): Promise<void> {
  const path = `/v1/domains/${segment(name)}/dkim/rotate`;
  const answer = await cli.client.call("POST", path, { body });
  if (cli.out.json) return cli.out.body(answer.text);
  cli.out.note(`Publish the new keys of ${name} and keep the old records:`);
  showRecords(cli, recordsOf(answer.json).filter(isNewKey));
  cli.out.next(`The old keys sign until the DNS has the new ones: ${cli.program} domains verify ${name}`);
}

function isNewKey(record: Row): boolean {
  return record["purpose"] === "dkim" && record["required"] === false && record["status"] === "unchecked";
}

export function keyOf(flags: KeyFlags): Record<string, string> {
  return {
    ...(flags.selector === undefined ? {} : { selector: flags.selector }),
    ...(flags.keyFile === undefined
      ? {}
      : { private_key: readInputFile(flags.keyFile, "--key-file").toString() }),
  };
}
