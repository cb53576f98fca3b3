// `svc domains`: the domains that mail is sent from, and the DNS records that prove them.
import type { Command } from "commander";
import { agreeByName } from "../ask.ts";
import { segment, type Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { CliFault, usage } from "../fault.ts";
import { addListOptions, printList, type ListFlags } from "../lists.ts";
import { field, type Row } from "../output.ts";
import { spanMs } from "../times.ts";
import { cell } from "../text.ts";
import { showRecords, zoneLines } from "../records.ts";

const formats = ["table", "bind", "json"];
const pollMs = 10_000;

export function register(domains: Command, cli: Cli): void {
  const one = async (name: string): Promise<Answer> => cli.client.call("GET", `/v1/domains/${segment(name)}`);
  domains
    .command("add <domain>")
    .description("make its DKIM keys and the records to publish")
    .action(async (name: string) => {
      const answer = await cli.client.call("POST", "/v1/domains", { body: { name } });
      if (cli.out.json) return cli.out.body(answer.text);
      cli.out.note(`Publish these records for ${name}:`);
      showRecords(cli, recordsOf(answer.json));
      cli.out.next(`Then: ${cli.program} domains verify ${name}`);
    });
  domains
    .command("records <domain>")
    .description("the records to publish, and what the DNS says")
    .option("--format <format>", formats.join(", "), "table")
    .action(async (name: string, flags: { format: string }) => {
      if (!formats.includes(flags.format))
        throw usage(`--format: found "${flags.format}", expected ${formats.join(", ")}`);
      const { json } = await one(name);
      if (cli.out.json || flags.format === "json")
        return cli.out.body(JSON.stringify({ records: recordsOf(json) }));
      if (flags.format === "bind") return cli.out.text(zoneLines(recordsOf(json)));
      showRecords(cli, recordsOf(json));
    });
  domains
    .command("verify <domain>")
    .description("ask the DNS; exit 7 while something is missing")
    .option("--wait [span]", "ask again until it is verified, for so long (10m)")
    .action(async (name: string, flags: { wait?: string | true }) => verify(cli, name, flags.wait));
  addListOptions(domains.command("list").description("all domains"), false).action((flags: ListFlags) =>
    printList(cli, flags, {
      path: "/v1/domains",
      columns: [
        field("name"),
        field("status"),
        field("return_path_domain", "return path"),
        field("verified_at"),
      ],
      empty: `There is no domain. Add one: ${cli.program} domains add DOMAIN`,
    }),
  );
  domains
    .command("show <domain>")
    .description("one domain")
    .action(async (name: string) => {
      const answer = await one(name);
      if (cli.out.json) return cli.out.body(answer.text);
      cli.out.fields(Object.entries(answer.json).filter(([key]) => key !== "records"));
      cli.out.line("");
      showRecords(cli, recordsOf(answer.json));
    });
  domains
    .command("delete <domain>")
    .description("remove it and its keys; mail from it is refused from then on")
    .option("--confirm <domain>", "do not ask")
    .action(async (name: string, flags: { confirm?: string }) => {
      await agreeByName(
        cli,
        `Delete ${name} with its DKIM keys? Mail from it is refused from then on.`,
        name,
        flags.confirm,
      );
      await cli.client.call("DELETE", `/v1/domains/${segment(name)}`);
      cli.out.note(`${name} is deleted`);
    });
}

async function verify(cli: Cli, name: string, wait: string | true | undefined): Promise<void> {
  const until =
    wait === undefined ? 0 : cli.io.clock.monotonic() + spanMs(wait === true ? "10m" : wait, "--wait");
  for (;;) {
    const answer = await cli.client.call("POST", `/v1/domains/${segment(name)}/verify`);
    const verified = answer.json["status"] === "verified";
    if (!verified && cli.io.clock.monotonic() + pollMs <= until) {
      await new Promise<void>((resolve) => void cli.io.clock.after(pollMs, resolve));
      continue;
    }
    if (cli.out.json) cli.out.body(answer.text);
    else showRecords(cli, recordsOf(answer.json));
    if (verified) return cli.out.next(`${name} is verified: ${cli.program} send --from hello@${name} --to …`);
    const missing = recordsOf(answer.json).filter(
      (record) => record["required"] === true && record["status"] !== "ok",
    );
    throw new CliFault(
      7,
      `${name} is ${cell(answer.json["status"])}: ${missing.length} of its records do not hold`,
      [
        `Publish what is missing (${cli.program} domains records ${name}), then verify again; DNS may take a while.`,
      ],
    );
  }
}

function recordsOf(domain: Row): Row[] {
  const records = domain["records"];
  return Array.isArray(records) ? (records as Row[]) : [];
}
