// `svc prune`: has the daemon delete now what retention.* calls expired, and return free space to the file system; says how
// much was freed.
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { CliFault } from "../fault.ts";
import type { Row } from "../output.ts";
import { sizeText } from "../text.ts";

const pollMs = 300;
const kinds = ["content", "messages", "events", "audit"] as const;

export function register(prune: Command, cli: Cli): void {
  prune
    .option("--dry-run", "count what is old enough, and delete nothing")
    .action(({ dryRun = false }: { dryRun?: boolean }) => (dryRun ? count(cli) : run(cli)));
}

async function count(cli: Cli): Promise<void> {
  const { json, text } = await cli.client.call("GET", "/v1/retention/expired");
  if (cli.out.json) return cli.out.body(text);
  cli.out.fields(
    kinds.map((kind) => {
      const { rows, more } = json[kind] as { rows: number; more: boolean };
      return [kind, `${more ? "at least " : ""}${rows}`];
    }),
  );
  cli.out.note("Mail that is still to be sent, and events that are still to be posted, stay, however old.");
  cli.out.next(`To delete them: ${cli.program} prune`);
}

async function run(cli: Cli): Promise<void> {
  let state = (await cli.client.call("POST", "/v1/retention")).json;
  const mine = startOf(state);
  while (startOf(state) === mine && state["running"] !== null) {
    await new Promise<void>((done) => void cli.io.clock.after(pollMs, done));
    state = (await cli.client.call("GET", "/v1/retention")).json;
  }
  const last = state["last"] as Row | null;
  if (last === null) throw new CliFault(1, "the daemon was restarted before all was deleted");
  const error = last["error"] as string | null;
  if (error !== null) throw new CliFault(1, `not all was deleted: ${error}`, [`See: ${cli.program} status`]);
  if (cli.out.json) return cli.out.body(JSON.stringify(last));
  const deleted = last["deleted"] as Record<string, number>;
  const freed = (deleted["file_bytes"] ?? 0) + (deleted["returned_bytes"] ?? 0);
  cli.out.line(`freed ${sizeText(freed)}`);
  cli.out.fields(Object.entries(deleted).filter(([, number]) => number > 0));
}

const startOf = (state: Row): unknown => (state["running"] as Row | null)?.["started_at"] ?? null;
