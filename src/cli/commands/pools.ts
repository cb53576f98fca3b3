// `svc pools`: the IP pools that messages may name. Their addresses: `svc ips`.
import type { Command } from "commander";
import { defaultPool } from "../../model/ip-pool.ts";
import type { Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { field, type Row } from "../output.ts";
import { routeFlags } from "../route-flags.ts";
import { addVerbs, showDeleted, type Verb } from "../verbs.ts";

export const verbs: readonly Verb[] = [
  {
    name: "create",
    about: "create a pool",
    route: "POST /v1/ip_pools",
    takes: ["name"],
    flags: routeFlags["POST /v1/ip_pools"],
    show,
  },
  {
    name: "list",
    about: "list the pools",
    lists: "/v1/ip_pools",
    columns: [
      field("name"),
      field("is_default", "default"),
      { title: "addresses", of: (row) => addressesOf(row).map((ip) => ip["ip_address"]) },
      field("description"),
    ],
    empty: () => "No pools.",
  },
  { name: "show", about: "show a pool and its addresses", route: "GET /v1/ip_pools/{name}", show },
  {
    name: "update",
    about: "change a pool",
    route: "PATCH /v1/ip_pools/{name}",
    flags: [
      ...routeFlags["PATCH /v1/ip_pools/{name}"],
      {
        flag: "--no-default",
        about: "messages that name no pool use the pool `default` again",
        member: "is_default",
      },
    ],
    show,
  },
  {
    name: "delete",
    about: "delete a pool without addresses and mail",
    route: "DELETE /v1/ip_pools/{name}",
    question: (name) => `Delete the pool ${name}? Messages that name it are refused from then on.`,
    show: showDeleted,
  },
];

export function register(pools: Command, cli: Cli): void {
  addVerbs(pools, cli, verbs);
}

function addressesOf(pool: Row): Row[] {
  const ips = pool["ips"];
  return Array.isArray(ips) ? (ips as Row[]) : [];
}

function show(cli: Cli, answer: Answer): void {
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
  field("blacklists", "listed by"),
];
