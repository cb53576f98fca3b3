// `svc pools`: the IP pools that messages may name. Their addresses: `svc ips`.
import type { Command } from "commander";
import { defaultPool } from "../../model/ip-pool.ts";
import { agree } from "../ask.ts";
import { segment, type Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { usage } from "../fault.ts";
import { addListOptions, printList, type ListFlags } from "../lists.ts";
import { field, type Row } from "../output.ts";

interface PoolFlags {
  description?: string;
  default?: boolean;
}

export function register(pools: Command, cli: Cli): void {
  pools
    .command("create <name>")
    .description("create a pool")
    .option("--description <text>", "what it is for")
    .option("--default", "messages that name no pool go by it")
    .action(async (name: string, flags: PoolFlags) => {
      show(cli, await cli.client.call("POST", "/v1/ip_pools", { body: { name, ...bodyOf(flags) } }));
    });
  addListOptions(pools.command("list").description("list the pools"), false).action((flags: ListFlags) =>
    printList(cli, flags, {
      path: "/v1/ip_pools",
      columns: [
        field("name"),
        field("is_default", "default"),
        { title: "addresses", of: (row) => addressesOf(row).map((ip) => ip["ip_address"]) },
        field("description"),
      ],
      empty: "No pools.",
    }),
  );
  pools
    .command("show <name>")
    .description("show a pool and its addresses")
    .action(async (name: string) => show(cli, await cli.client.call("GET", at(name))));
  pools
    .command("update <name>")
    .description("change a pool")
    .option("--description <text>", "what it is for")
    .option("--default", "messages that name no pool go by it")
    .option("--no-default", "messages that name no pool use the pool `default` again")
    .action(async (name: string, flags: PoolFlags) => {
      const body = bodyOf(flags);
      if (Object.keys(body).length === 0)
        throw usage("nothing to change: give --description, --default or --no-default");
      show(cli, await cli.client.call("PATCH", at(name), { body }));
    });
  pools
    .command("delete <name>")
    .description("delete a pool without addresses and mail")
    .option("--yes", "skip the prompt")
    .action(async (name: string, flags: { yes?: boolean }) => {
      await agree(cli, `Delete the pool ${name}? Messages that name it are refused from then on.`, flags.yes);
      await cli.client.call("DELETE", at(name));
      cli.out.note(`${name} is deleted`);
    });
}

const at = (name: string): string => `/v1/ip_pools/${segment(name)}`;

function bodyOf(flags: PoolFlags): Record<string, unknown> {
  return {
    ...(flags.description === undefined ? {} : { description: flags.description }),
    ...(flags.default === undefined ? {} : { is_default: flags.default }),
  };
}

function addressesOf(pool: Row): Row[] {
  const ips = pool["ips"];
  return Array.isArray(ips) ? (ips as Row[]) : [];
}

function show(cli: Cli, answer: Answer): void {
  if (cli.out.json) return cli.out.body(answer.text);
  cli.out.fields(Object.entries(answer.json).filter(([name]) => name !== "ips"));
  const ips = addressesOf(answer.json);
  if (ips.length === 0) {
    const add = `${cli.program} ips add ADDRESS --pool ${String(answer.json["name"])}`;
    return cli.out.note(
      answer.json["name"] === defaultPool
        ? "It has no address: the system chooses the source address."
        : `It has no address: its mail waits for one. Add it: ${add}`,
    );
  }
  cli.out.line("");
  cli.out.table(ipColumns, ips);
}

export const ipColumns = [
  field("ip_address", "address"),
  field("ip_pool", "pool"),
  field("hostname"),
  field("weight"),
  field("status"),
  field("ptr"),
  field("ptr_ok"),
];
