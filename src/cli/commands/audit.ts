// `svc audit`: the audit log of all accounts: who did what, and from where.
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { addListOptions, printList, type ListFlags } from "../lists.ts";
import { field, type Row } from "../output.ts";
import { moment } from "../times.ts";

interface Flags extends ListFlags {
  action?: string;
  actor?: string;
  target?: string;
  csv?: boolean;
}

export function register(audit: Command, cli: Cli): void {
  addListOptions(audit.command("list").description("list the audit log, newest first"), true)
    .option("--action <action>", "an action such as keys.revoke, or keys.* for a prefix")
    .option("--actor <name>", "an operator's name, or the id of a key or credential")
    .option("--target <id>", "id or name of the resource acted on")
    .option("--csv", "write all entries as CSV")
    .action(async (flags: Flags) => {
      const { action, actor, target } = flags;
      const query = { action, actor, target, account: cli.globals.account };
      if (flags.csv) return csv(cli, { ...query, ...timesOf(cli, flags) });
      await printList(cli, flags, {
        path: "/v1/audit",
        query,
        times: { since: "since", until: "until" },
        columns: [
          field("at"),
          { title: "who", of: whoOf },
          field("action"),
          field("target"),
          field("account"),
          field("source_ip"),
          field("times"),
          field("detail"),
        ],
        empty: "No audit entries.",
      });
    });
}

function whoOf({ actor }: Row): unknown {
  if (typeof actor !== "object" || actor === null) return null;
  const { kind, name } = actor as Row;
  return name ?? (kind === "none" ? null : kind);
}

function timesOf(cli: Cli, { since, until }: Flags): Record<string, string> {
  const now = cli.io.clock.now();
  return {
    ...(since === undefined ? {} : { since: moment(since, "--since", "past", now) }),
    ...(until === undefined ? {} : { until: moment(until, "--until", "past", now) }),
  };
}

async function csv(cli: Cli, query: Record<string, string | undefined>): Promise<void> {
  for await (const chunk of cli.client.chunks("/v1/audit", { query, accept: "text/csv" })) {
    cli.io.stdout.write(chunk);
    await cli.out.drained();
  }
}
