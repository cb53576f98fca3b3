// `svc audit`: who did what, from where, in all accounts.
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
  addListOptions(audit.command("list").description("what was done and noticed, newest first"), true)
    .option("--action <action>", "keys.revoke, or keys.* for all that begin so")
    .option("--actor <name>", "an operator's name, or the id of a key or credential")
    .option("--target <id>", "id or name of what it was done to")
    .option("--csv", "all of it as CSV")
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
        empty: "Nothing of that kind is in the audit log.",
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
