// `svc blacklists`: whether DNS blocklists list the addresses that mail is sent from, and which are asked.
import type { Command } from "commander";
import { segment, type Cli } from "../cli.ts";
import { CliFault } from "../fault.ts";
import { addListOptions, printList, rowsOf, type ListFlags } from "../lists.ts";
import { field, type Row } from "../output.ts";
import { cell } from "../text.ts";
import { addVerbs, showDeleted, showFields, type Verb } from "../verbs.ts";

/** Of `svc blacklists zones`. */
export const verbs: readonly Verb[] = [
  {
    name: "list",
    about: "list the blocklists that are asked, and whether they can be used",
    lists: "/v1/blacklists/zones",
    columns: [
      field("zone"),
      field("name"),
      field("source"),
      field("health"),
      field("detail"),
      field("tested_at"),
    ],
    empty: (program) => `No blocklists. Add one: ${program} blacklists zones add ZONE`,
  },
  {
    name: "add",
    about: "ask a blocklist too, or one that was removed again",
    route: "POST /v1/blacklists/zones",
    takes: ["zone"],
    flags: [
      { flag: "--name <text>", about: "its name in events and mails", member: "name" },
      {
        flag: "--codes <codes>",
        about: "codes that count, and ranges: 127.0.0.2,127.0.0.4-127.0.0.7 (127.0.0.2-127.0.0.254)",
        member: "codes",
        read: (text) => text.split(",").map((code) => code.trim()),
      },
      { flag: "--removal-url <url>", about: "page where a removal is asked for", member: "removal_url" },
    ],
    show(cli, { json }) {
      cli.out.line(`${cell(json["zone"])} is asked from now on`);
      cli.out.next(`Test it: ${cli.program} blacklists zones test ${cell(json["zone"])}`);
    },
  },
  {
    name: "remove",
    about: "stop asking a blocklist, and forget what it said",
    route: "DELETE /v1/blacklists/zones/{zone}",
    question: (zone) => `Stop asking ${zone}? What it lists is forgotten, without an event.`,
    show: showDeleted,
  },
];

export function register(blacklists: Command, cli: Cli): void {
  blacklists
    .command("check [address]")
    .description("look the sending addresses up now, or one of them; exit 7 if one is listed")
    .action(async (address?: string) => {
      const body = address === undefined ? {} : { ip_address: address };
      const answer = await cli.client.call("POST", "/v1/blacklists/check", { body });
      const found = rowsOf(answer.json);
      if (cli.out.json) cli.out.body(answer.text);
      else if (found.length === 0) cli.out.note(nothingWatched);
      else cli.out.table(columns, found.flatMap(entriesOf));
      const listed = found.filter((row) => row["listed"] === true).map((row) => cell(row["ip_address"]));
      if (listed.length > 0)
        throw new CliFault(7, `on a blocklist: ${listed.join(", ")}`, [
          "End the cause, then ask for the removal at the page shown.",
        ]);
    });
  addListOptions(
    blacklists.command("list").description("list the sending addresses and the blocklists that list them"),
    false,
  ).action((flags: ListFlags) =>
    printList(cli, flags, {
      path: "/v1/blacklists",
      columns: [
        field("ip_address", "address"),
        field("affected_pools", "pools"),
        field("listed"),
        { title: "on", of: (row) => entriesWith(row, "listed").map((one) => one["blacklist_zone"]) },
        { title: "unknown at", of: (row) => entriesWith(row, "unknown").map((one) => one["blacklist_zone"]) },
      ],
      empty: nothingWatched,
    }),
  );
  const zones = blacklists
    .command("zones")
    .description("the blocklists that are asked: list, add, remove, test");
  zones.helpCommand(false);
  addVerbs(zones, cli, verbs);
  zones
    .command("test <zone>")
    .description("test a blocklist by its test addresses; exit 7 if it cannot be used")
    .action(async (zone: string) => {
      const answer = await cli.client.call("POST", `/v1/blacklists/zones/${segment(zone)}/test`);
      if (cli.out.json) cli.out.body(answer.text);
      else showFields(cli, answer);
      if (answer.json["health"] !== "ok")
        throw new CliFault(7, `${zone} is ${cell(answer.json["health"])}: ${cell(answer.json["detail"])}`);
    });
}

const nothingWatched =
  "No public address is known that mail leaves from. Addresses are looked up within a minute after they are added; behind NAT, the public address is the one that the EHLO name has in the DNS.";

const columns = [
  field("ip_address", "address"),
  field("blacklist_zone", "blocklist"),
  field("status"),
  { title: "code", of: (row: Row) => codesOf(row) },
  field("listed_at", "since"),
  field("listing_reason", "reason"),
  field("removal_url", "removal"),
  field("detail"),
];

/** A row an address and blocklist. */
function entriesOf(row: Row): Row[] {
  const entries = row["blacklists"];
  if (!Array.isArray(entries)) return [];
  return (entries as Row[]).map((entry) => ({ ip_address: row["ip_address"], ...entry }));
}

function entriesWith(row: Row, status: string): Row[] {
  return entriesOf(row).filter((entry) => entry["status"] === status);
}

function codesOf(row: Row): unknown[] {
  const codes = row["return_codes"];
  return Array.isArray(codes) ? (codes as Row[]).map(({ code }) => code) : [];
}
