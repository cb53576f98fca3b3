// `svc doctor`: what is wrong around the server, why it matters, and what mends it.
import type { Command } from "commander";
import { checks, type Wanted } from "../../doctor/doctor.ts";
import { asCalled } from "../as-called.ts";
import type { Cli } from "../cli.ts";
import { CliFault, usage } from "../fault.ts";
import { addOfflineFlags, isOffline, orOffline, withStopped, type OfflineFlags } from "../offline.ts";
import { field, type Row } from "../output.ts";
import { cell } from "../text.ts";

interface Flags extends OfflineFlags {
  only?: string;
  skip?: string;
  domain?: string;
  strict?: boolean;
  list?: boolean;
  explain?: string;
}

const words: Record<string, string> = { ok: "ok", warn: "WARN", fail: "FAIL", unknown: "not checkable" };

export function register(doctor: Command, cli: Cli): void {
  doctor
    .option("--only <ids>", "these checks alone, with commas between them")
    .option("--skip <ids>", "not these")
    .option("--domain <domain>", "of the checks of domains: this one alone")
    .option("--strict", "exit 7 for a WARN too")
    .option("--list", "list the checks and run none")
    .option("--explain <id>", "say what a check looks at, and run it");
  addOfflineFlags(doctor).action(async (flags: Flags) => {
    if (flags.list === true)
      return cli.out.table(
        [field("id"), field("about", "what is right")],
        checks.map(({ id, about }) => ({ id, about })),
      );
    const only = idsOf(flags.explain ?? flags.only, flags.explain === undefined ? "--only" : "--explain");
    const skip = idsOf(flags.skip, "--skip");
    const wanted = { only, skip: skip ?? [], domain: flags.domain ?? null };
    const answer = isOffline(flags) ? await offline(cli, flags, wanted) : await online(cli, wanted);
    const found = (JSON.parse(answer) as { checks?: Row[] }).checks ?? [];
    if (cli.out.json) cli.out.body(answer);
    else show(cli, found, flags.explain);
    const failed = found.filter(
      ({ status }) => status === "fail" || (flags.strict === true && status === "warn"),
    );
    if (failed.length > 0)
      throw new CliFault(
        7,
        `${failed.length} of ${found.length} checks failed: ${failed.map(({ id }) => cell(id)).join(", ")}`,
        [
          `After a mend: ${cli.program} doctor ${sameService(flags)}--only ${failed.map(({ id }) => cell(id)).join(",")}`,
        ],
      );
  });
}

/** The flags that a second look needs, or it would be at another service. */
function sameService({ offline: ofStopped, config, dataDir }: Flags): string {
  if (ofStopped !== true) return "";
  const named = [
    ["--config", config],
    ["--data-dir", dataDir],
  ].flatMap(([flag, value]) => (value === undefined ? [] : [`${flag} '${value.replaceAll("'", "'\\''")}'`]));
  return `${["--offline", ...named].join(" ")} `;
}

/** The body that the route answers. */
async function online(cli: Cli, { only, skip, domain }: Wanted): Promise<string> {
  const body = {
    ...(only === null ? {} : { only }),
    ...(skip.length === 0 ? {} : { skip }),
    ...(domain === null ? {} : { domain }),
  };
  return (await orOffline(cli, "doctor", cli.client.call("POST", "/v1/doctor", { body }))).text;
}

/** The same body. */
async function offline(cli: Cli, flags: Flags, wanted: Wanted): Promise<string> {
  const how = {
    level: "error", // what is worth a warning is a finding
    whereRunning: `Without --offline the running service is asked: ${cli.program} doctor`,
  } as const;
  return withStopped(cli, flags, how, async (daemon, stopped) =>
    JSON.stringify({ checks: await daemon.doctorOffline({ ...stopped, wanted }) }),
  );
}

function show(cli: Cli, found: Row[], explained: string | undefined): void {
  const width = Math.max(...found.map(({ id }) => cell(id).length));
  for (const { id, status, saw, why, mend } of found) {
    cli.out.line(
      `${(words[cell(status)] ?? cell(status)).padEnd(13)}  ${cell(id).padEnd(width)}  ${cell(saw)}`,
    );
    if (explained !== undefined)
      cli.out.line(`    what is right: ${checks.find((one) => one.id === id)?.about ?? ""}`);
    if (typeof why === "string") cli.out.line(`    why it matters: ${why}`);
    if (typeof mend === "string") cli.out.line(`    what to do: ${asCalled(mend, cli.program)}`);
  }
}

function idsOf(given: string | undefined, flag: string): string[] | null {
  if (given === undefined) return null;
  const known = checks.map(({ id }) => id);
  const ids = given.split(",").map((id) => id.trim());
  const wrong = ids.find((id) => !known.includes(id));
  if (wrong !== undefined) throw usage(`${flag}: found "${wrong}", expected ${known.join(", ")}`);
  return ids;
}
