// `svc domains`: sender domains and the DNS records that verify them.
import type { Command } from "commander";
import type { DnsRecord } from "../../model/dns-record.ts";
import { agreeByName } from "../ask.ts";
import { segment, type Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { CliFault, usage } from "../fault.ts";
import type { PublishFlags } from "../domains-publish.ts";
import { addListOptions, printList, type ListFlags } from "../lists.ts";
import { field, type Row } from "../output.ts";
import { pause, spanMs } from "../times.ts";
import { cell } from "../text.ts";
import { recordFormats, recordsIn, recordsOf, showRecords } from "../records.ts";
import { keyOf, registerDkim, type KeyFlags } from "./domains-dkim.ts";
import { orNone, registerTracking, switchOf } from "./domains-tracking.ts";

interface UpdateFlags {
  returnPath?: string;
  subdomains?: string;
}

const formats = ["table", ...recordFormats, "json"];
const pollMs = 10_000;

export function register(domains: Command, cli: Cli): void {
  const one = async (name: string): Promise<Answer> => cli.client.call("GET", `/v1/domains/${segment(name)}`);
  domains
    .command("add <domain>")
    .description("add a domain: create its DKIM keys and print the records to publish")
    .option("--selector <name>", "selector of the DKIM keys (svc1)")
    .option("--key-file <file>", "a DKIM key of your own: PEM, RSA from 2048 bits on or Ed25519")
    .action(async (name: string, flags: KeyFlags) => {
      const dkim = keyOf(flags);
      const body = { name, ...(Object.keys(dkim).length === 0 ? {} : { dkim }) };
      const answer = await cli.client.call("POST", "/v1/domains", { body });
      if (cli.out.json) return cli.out.body(answer.text);
      cli.out.note(`Publish these records for ${name}:`);
      showRecords(cli, recordsOf(answer.json));
      cli.out.next(`Then: ${cli.program} domains verify ${name}`);
    });
  domains
    .command("records <domain>")
    .description("show the records to publish and whether the DNS has them")
    .option("--format <format>", formats.join(", "), "table")
    .action(async (name: string, flags: { format: string }) => {
      if (!formats.includes(flags.format))
        throw usage(`--format: found "${flags.format}", expected ${formats.join(", ")}`);
      const { json } = await one(name);
      if (cli.out.json || flags.format === "json")
        return cli.out.body(JSON.stringify({ records: recordsOf(json) }));
      if (recordFormats.includes(flags.format)) return cli.out.text(recordsIn(flags.format, recordsOf(json)));
      showRecords(cli, recordsOf(json));
    });
  domains
    .command("publish <domain>")
    .description("put the records into the domain's zone by dynamic update (RFC 2136)")
    .requiredOption("--server <host>", "primary name server of the zone; with a port where it is not 53")
    .requiredOption("--key-file <file>", "TSIG key, as tsig-keygen (BIND) or keymgr (Knot) writes it")
    .option("--dry-run", "show what would be changed, and change nothing")
    .option("--wait [span]", "then verify until the DNS shows the records, at most this long (10m)")
    .option("--yes", "skip the prompt")
    .action(async (name: string, flags: PublishFlags) => {
      const { publishDomain } = await import("../domains-publish.ts");
      const records = recordsOf((await one(name)).json) as unknown as DnsRecord[];
      await publishDomain(cli, name, records, flags, (wait) => verify(cli, name, wait));
    });
  domains
    .command("verify <domain>")
    .description("check the DNS records; exit 7 if one is missing or wrong")
    .option("--wait [span]", "repeat the check until the domain is verified, at most this long (10m)")
    .action(async (name: string, flags: { wait?: string | true }) => verify(cli, name, flags.wait));
  addListOptions(domains.command("list").description("list the domains"), false).action((flags: ListFlags) =>
    printList(cli, flags, {
      path: "/v1/domains",
      columns: [
        field("name"),
        field("status"),
        field("return_path_domain", "return path"),
        field("verified_at"),
      ],
      empty: `No domains. Add one: ${cli.program} domains add DOMAIN`,
    }),
  );
  domains
    .command("show <domain>")
    .description("show a domain")
    .action(async (name: string) => {
      const answer = await one(name);
      if (cli.out.json) return cli.out.body(answer.text);
      const { records: _records, dkim, tracking, ...plain } = answer.json;
      cli.out.fields([
        ...Object.entries(plain),
        ["dkim", keysOf(dkim)],
        ...Object.entries((tracking ?? {}) as Row).map(([key, value]): [string, unknown] => [
          `tracking ${key}`,
          value,
        ]),
      ]);
      cli.out.line("");
      showRecords(cli, recordsOf(answer.json));
    });
  domains
    .command("update <domain>")
    .description("change a domain's settings")
    .option("--return-path <domain>", "return-path domain for bounces, below the domain; none: bounce.DOMAIN")
    .option("--subdomains <on|off>", "whether its subdomains may send under it")
    .action(async (name: string, flags: UpdateFlags) => {
      const body = updateOf(flags);
      if (Object.keys(body).length === 0)
        throw usage("nothing to change: give --return-path or --subdomains");
      const answer = await cli.client.call("PATCH", `/v1/domains/${segment(name)}`, { body });
      if (cli.out.json) return cli.out.body(answer.text);
      showRecords(cli, recordsOf(answer.json));
      cli.out.next(`Publish the new records, then: ${cli.program} domains verify ${name}`);
    });
  for (const verb of ["suspend", "resume"])
    domains
      .command(`${verb} <domain>`)
      .description(
        verb === "suspend"
          ? "refuse mail from it until it is resumed"
          : "resume a suspended domain; it must be verified again",
      )
      .action(async (name: string) => {
        const answer = await cli.client.call("POST", `/v1/domains/${segment(name)}/${verb}`);
        if (cli.out.json) return cli.out.body(answer.text);
        cli.out.note(`${name} is ${cell(answer.json["status"])}`);
        if (verb === "resume")
          cli.out.next(`It sends once it is verified: ${cli.program} domains verify ${name}`);
      });
  registerDkim(domains, cli);
  registerTracking(domains, cli);
  domains
    .command("delete <domain>")
    .description("delete a domain and its keys; mail from it is then refused")
    .option("--confirm <domain>", "act without a prompt")
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
    const mayWait = cli.io.clock.monotonic() + pollMs <= until;
    const answer = await cli.client
      .call("POST", `/v1/domains/${segment(name)}/verify`)
      .catch((error: unknown) => {
        if (mayWait && error instanceof CliFault && error.exit === 1) return null; // the resolver failed
        throw error;
      });
    const verified = answer?.json["status"] === "verified";
    if (answer === null || (!verified && cli.io.clock.monotonic() + pollMs <= until)) {
      await pause(cli.io.clock, pollMs);
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
      `${name} is ${cell(answer.json["status"])}: ${missing.length} of its records are missing or wrong`,
      [
        `Publish the records (${cli.program} domains records ${name}), then verify again; DNS changes may take a while.`,
      ],
    );
  }
}

/** `svc1 (rsa-sha256, active)` */
function keysOf(dkim: unknown): string[] {
  return (Array.isArray(dkim) ? (dkim as Row[]) : []).map(
    ({ selector, algorithm, status }) => `${cell(selector)} (${cell(algorithm)}, ${cell(status)})`,
  );
}

function updateOf(flags: UpdateFlags): Row {
  const subdomains = switchOf(flags.subdomains, "--subdomains");
  return {
    ...(flags.returnPath === undefined ? {} : { return_path_domain: orNone(flags.returnPath) }),
    ...(subdomains === null ? {} : { allow_subdomains: subdomains }),
  };
}
