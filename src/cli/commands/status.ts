// `svc status`: the state of the service on one screen.
import type { Command } from "commander";
import { queueCountNames } from "../../model/queue.ts";
import { asCalled } from "../as-called.ts";
import type { Cli } from "../cli.ts";
import { field, type Row } from "../output.ts";
import { cell, sizeText } from "../text.ts";

export function register(status: Command, cli: Cli): void {
  status.action(async () => {
    const { json, text } = await cli.client.call("GET", "/v1/status");
    if (cli.out.json) return cli.out.body(text);
    showFacts(cli, json);
    for (const problem of problemsOf(json, cli.program)) cli.out.note(problem);
    cli.out.line("");
    cli.out.table([field("name", "listener"), field("address")], rowsOf(json["listeners"]));
    const jobs = rowsOf(json["jobs"]);
    if (jobs.length === 0) return;
    cli.out.line("");
    cli.out.table(
      [
        field("name", "job"),
        field("cron"),
        field("last_run_at", "last run"),
        field("next_run_at", "next run"),
      ],
      jobs,
    );
  });
}

function showFacts(cli: Cli, status: Row): void {
  const { version, hostname, dev, ready, uptime_seconds: uptime, memory_bytes: memory } = status;
  const queue = rowOf(status["queue"]);
  const store = rowOf(status["store"]);
  cli.out.fields([
    ["version", `${String(version)}${dev === true ? ", --dev: no mail leaves this machine" : ""}`],
    ["host name", hostname],
    ["ready", ready],
    ["up", duration(uptime)],
    ["memory", sizeOf(memory)],
    ["queue", queueCountNames.map((name) => `${cell(queue[name] ?? 0)} ${name}`)],
    ["oldest due", queue["oldest_due_at"]],
    [
      "store",
      `schema ${String(store["schema_version"])}, ${String(store["journal_mode"])}, synchronous ${String(store["synchronous"])}`,
    ],
    ["free", sizeOf(store["free_bytes"])],
    ["write-ahead log", sizeOf(store["wal_bytes"])],
    ["blocklists", blocklistsText(rowOf(status["blacklists"]))],
  ]);
}

/** What the operator is warned of, a line each. */
function* problemsOf(status: Row, program: string): Generator<string> {
  const maintenance = rowOf(status["maintenance"]);
  if (typeof maintenance["since"] === "string")
    yield `In maintenance since ${maintenance["since"]}: clients are refused.`;
  for (const { name, pause_reason: reason } of rowsOf(status["paused_accounts"]))
    yield `Sending of ${cell(name)} is paused: ${cell(reason)}. To end it: ${program} accounts resume ${cell(name)}`;
  for (const { problem, effect, advice } of rowsOf(status["pool_problems"])) {
    yield `${capital(cell(problem))}. ${cell(effect)}`;
    for (const line of Array.isArray(advice) ? advice : []) yield `  ${asCalled(String(line), program)}`;
  }
  const certificates = rowsOf(status["certificate_problems"]).slice(0, mostProblems);
  for (const { name, error, next_attempt_at: next } of certificates)
    yield `No new certificate for ${cell(name)}: ${cell(error)}${next === null ? "" : `; tried again at ${cell(next)}`}. Details: ${program} cert show`;
  const blacklists = rowOf(status["blacklists"]);
  for (const listed of rowsOf(blacklists["listed"]).slice(0, mostListings))
    yield `${cell(listed["ip_address"])} is on the blocklist ${cell(listed["blacklist_name"])} since ${cell(listed["listed_at"])}. Details: ${program} blacklists list`;
  for (const { zone, health, detail } of rowsOf(blacklists["unusable_zones"]))
    yield `The blocklist ${cell(zone)} is not used (${cell(health)}): ${cell(detail)}`;
  const store = rowOf(status["store"]);
  if (store["writable"] === false || store["full"] === true)
    yield "New mail is refused: the store cannot be written, or the disk is too full.";
}

/** Of listings named; `blacklists list` shows all. */
const mostListings = 5;
/** Of certificates named; `cert show` shows all. */
const mostProblems = 5;

function blocklistsText({ ip_addresses: addresses, zones, listed }: Row): string {
  if (addresses === 0) return "no public address to look up yet";
  const at = rowsOf(listed).length;
  return `${cell(addresses)} addresses looked up at ${cell(zones)} blocklists, ${at === 0 ? "no listing" : `${at} listings`}`;
}

function rowOf(value: unknown): Row {
  return value !== null && typeof value === "object" ? (value as Row) : {};
}

function rowsOf(value: unknown): Row[] {
  return Array.isArray(value) ? (value as Row[]) : [];
}

function duration(seconds: unknown): string {
  const total = typeof seconds === "number" ? seconds : 0;
  const parts = [
    [Math.floor(total / 86_400), "d"],
    [Math.floor(total / 3600) % 24, "h"],
    [Math.floor(total / 60) % 60, "m"],
    [Math.floor(total) % 60, "s"],
  ] as const;
  const from = parts.findIndex(([amount]) => amount > 0);
  return parts
    .slice(from < 0 ? 3 : from)
    .slice(0, 2)
    .map(([amount, unit]) => `${amount}${unit}`)
    .join(" ");
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function sizeOf(bytes: unknown): string {
  return typeof bytes === "number" ? sizeText(bytes) : "";
}
