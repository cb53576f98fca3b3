// `svc ips`: the addresses that mail is sent from. An address is in one pool, so the commands find the pool by it.
import type { Command } from "commander";
import { defaultPool } from "../../model/ip-pool.ts";
import { agree } from "../ask.ts";
import { segment, type Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { CliFault, usage } from "../fault.ts";
import { addListOptions, printList, rowsOf, type ListFlags } from "../lists.ts";
import { field, type Row } from "../output.ts";
import { cell } from "../text.ts";
import { ipColumns } from "./pools.ts";

interface AddFlags {
  pool: string;
  hostname?: string;
  weight?: string;
  warmup?: boolean;
}

export function register(ips: Command, cli: Cli): void {
  addListOptions(ips.command("list").description("list the addresses of all pools"), false).action(
    (flags: ListFlags) =>
      printList(cli, flags, {
        path: "/v1/ips",
        columns: ipColumns,
        note: reverseNameNote,
        empty: `No addresses: the system chooses the source address. Add one: ${cli.program} ips add ADDRESS`,
      }),
  );
  ips
    .command("add <address>")
    .description("add an address to a pool")
    .option("--pool <name>", "the pool", defaultPool)
    .option("--hostname <name>", "name for EHLO (the server's hostname)")
    .option("--weight <n>", "share of the pool's mail, 1 to 1000")
    .option("--warmup", "warm it up: caps per provider and day, which grow for 30 days")
    .action(async (address: string, flags: AddFlags) => {
      const body = {
        ip_address: address,
        ...(flags.hostname === undefined ? {} : { hostname: flags.hostname }),
        ...(flags.weight === undefined ? {} : { weight: weightOf(flags.weight) }),
        ...(flags.warmup === undefined ? {} : { warmup: flags.warmup }),
      };
      const answer = await cli.client.call("POST", `/v1/ip_pools/${segment(flags.pool)}/ips`, { body });
      show(cli, answer);
      if (answer.json["status"] === "unbindable")
        cli.out.note(
          `${address} is not an address of this machine yet; nothing is sent from it until it is.`,
        );
      cli.out.next(`Check its PTR record: ${cli.program} ips list`);
    });
  ips
    .command("move <address>")
    .description("move an address to another pool, with its settings")
    .requiredOption("--pool <name>", "the pool to move it to")
    .action(async (address: string, flags: { pool: string }) =>
      show(cli, await change(cli, address, { ip_pool: flags.pool })),
    );
  ips
    .command("pause <address>")
    .description("stop sending from an address until it is resumed")
    .action(async (address: string) => show(cli, await change(cli, address, { status: "paused" })));
  ips
    .command("resume <address>")
    .description("send from a paused address again")
    .action(async (address: string) => show(cli, await change(cli, address, { status: "active" })));
  ips
    .command("remove <address>")
    .description("remove an address from its pool")
    .option("--yes", "skip the prompt")
    .action(async (address: string, flags: { yes?: boolean }) => {
      const path = await pathOf(cli, address);
      await agree(
        cli,
        `Remove ${address} from its pool? If it is the last address, the pool's mail waits (for the pool default, the system chooses the source address).`,
        flags.yes,
      );
      await cli.client.call("DELETE", path);
      cli.out.note(`${address} is removed`);
    });
  registerWarmup(ips, cli);
  registerAssignments(ips, cli);
}

function registerWarmup(ips: Command, cli: Cli): void {
  const warmup = ips.command("warmup").description("the warm-up of addresses");
  addListOptions(
    warmup
      .command("status")
      .description("show which addresses warm up, and what each may send and has sent today"),
    false,
  ).action((flags: ListFlags) =>
    printList(cli, flags, {
      path: "/v1/ips",
      columns: warmupColumns,
      keep: (row) => warmupOf(row) !== null,
      empty: `No address warms up. To warm one up: ${cli.program} ips warmup start ADDRESS`,
    }),
  );
  warmup
    .command("start <address>")
    .description(
      "warm an address up, unless it does already: caps per provider and day, which grow for 30 days",
    )
    .action(async (address: string) => show(cli, await change(cli, address, { warmup: true })));
  warmup
    .command("stop <address>")
    .description("end the warm-up of an address: it sends without caps")
    .action(async (address: string) => show(cli, await change(cli, address, { warmup: false })));
}

/** Whose an address is: where several accounts send, their keys use only those that are assigned to them. */
function registerAssignments(ips: Command, cli: Cli): void {
  ips
    .command("assign <address>")
    .description("assign an address to an account (--account), whose keys may then add it to a pool")
    .action(async (address: string) => {
      const answer = await cli.client.call("POST", "/v1/ip_assignments", { body: { ip_address: address } });
      if (cli.out.json) return cli.out.body(answer.text);
      cli.out.line(`${address} belongs to ${String(answer.json["account"])}`);
      cli.out.next(
        `Add it to a pool: ${cli.program} --account ${String(answer.json["account"])} ips add ${address}`,
      );
    });
  ips
    .command("unassign <address>")
    .description("unassign an address from its account and remove it from its pool")
    .option("--yes", "skip the prompt")
    .action(async (address: string, flags: { yes?: boolean }) => {
      await agree(
        cli,
        `Unassign ${address} from its account and remove it from its pool? If it is the last address, the pool's mail waits (for the pool default, the system chooses the source address).`,
        flags.yes,
      );
      const answer = await cli.client.call("DELETE", `/v1/ip_assignments/${segment(address)}`);
      if (cli.out.json) return cli.out.body(answer.text);
      const { account, ip_pool: pool } = answer.json;
      cli.out.line(
        `${address} no longer belongs to ${String(account)}${typeof pool === "string" ? `, and was removed from its pool ${pool}` : ""}`,
      );
    });
  addListOptions(
    ips.command("assignments").description("list which account each address belongs to"),
    false,
  ).action((flags: ListFlags) =>
    printList(cli, flags, {
      path: "/v1/ip_assignments",
      columns: ["ip_address", "account", "ip_pool", "assigned_at"].map((name) => field(name)),
      empty: `No addresses are assigned. With a single account, all addresses are its own; assign one: ${cli.program} ips assign ADDRESS --account NAME`,
    }),
  );
}

/** An IPv6 address without a valid reverse name is the last that a pool uses (pools/sources.ts). */
function reverseNameNote({ ip_address: address, hostname, ptr, ptr_ok: holds }: Row): string | null {
  if (typeof address !== "string" || !address.includes(":") || holds !== false) return null;
  const [ip, name] = [cell(address), cell(hostname)];
  const found = typeof ptr !== "string" ? "it has no PTR record" : `its PTR record is ${cell(ptr)}`;
  const why = ptr === hostname ? `${name} does not resolve to it` : found;
  return `${ip} is used only where its pool has no other: ${why}. To use it, publish a PTR record of ${ip} with ${name} and an AAAA record of ${name} with ${ip}.`;
}

async function change(cli: Cli, address: string, body: Record<string, unknown>): Promise<Answer> {
  return cli.client.call("PATCH", await pathOf(cli, address), { body });
}

/** The pool of an address. The API validates how the address is written; only its case is normalized here. */
async function pathOf(cli: Cli, address: string): Promise<string> {
  const wanted = address.toLowerCase();
  for (let cursor: string | undefined; ;) {
    const { json } = await cli.client.call("GET", "/v1/ips", { query: { limit: 200, cursor } });
    const found = rowsOf(json).find((row) => row["ip_address"] === wanted);
    if (found) return `/v1/ip_pools/${segment(String(found["ip_pool"]))}/ips/${segment(wanted)}`;
    const next = json["next_cursor"];
    if (typeof next !== "string" || next === cursor)
      throw new CliFault(3, `${address} is in no pool`, [`List the addresses: ${cli.program} ips list`]);
    cursor = next;
  }
}

function warmupOf({ warmup }: Row): Row | null {
  return warmup !== null && typeof warmup === "object" ? (warmup as Row) : null;
}

/** `google 12/50`: sent today, and the cap. */
function sentOfCaps(row: Row): string[] {
  const warmup = warmupOf(row);
  const [caps, sent] = [warmup?.["caps"], warmup?.["sent_today"]] as [Row | undefined, Row | undefined];
  return Object.entries(caps ?? {}).map(([name, cap]) => `${name} ${cell(sent?.[name] ?? 0)}/${cell(cap)}`);
}

const warmupColumns = [
  field("ip_address", "address"),
  field("ip_pool", "pool"),
  { title: "day", of: (row: Row) => warmupOf(row)?.["day"] },
  { title: "started", of: (row: Row) => warmupOf(row)?.["started_at"] },
  { title: "sent today", of: sentOfCaps },
];

function weightOf(text: string): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw usage(`--weight: found "${text}", expected 1 to 1000`);
  return Number(text);
}

function show(cli: Cli, answer: Answer): void {
  if (cli.out.json) return cli.out.body(answer.text);
  const warmup = warmupOf(answer.json);
  const shown = warmup && [`day ${cell(warmup["day"])}`, ...sentOfCaps(answer.json)];
  cli.out.fields(Object.entries({ ...answer.json, warmup: shown }));
}
