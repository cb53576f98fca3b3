// `svc domains publish`: the records of a domain, put into its zone by dynamic update (RFC 2136), from this machine and with
// a key that only this command reads. Shows first what it would do, asks, and says what it left as it is.
import { statSync } from "node:fs";
import { createPrimary, parsePrimary, type Failed, type Primary } from "../dns/primary.ts";
import { parseTsigKey, type TsigKey } from "../dns/tsig-key.ts";
import { planPublication, publish, type Change, type PublishAct } from "../domains/publish.ts";
import type { DnsRecord } from "../model/dns-record.ts";
import { agree } from "./ask.ts";
import { readInputFile, type Cli } from "./cli.ts";
import { CliFault, usage } from "./fault.ts";
import { spanMs } from "./times.ts";

export interface PublishFlags {
  server: string;
  keyFile: string;
  dryRun?: boolean;
  yes?: boolean;
  wait?: string | true;
}

const signs: Record<PublishAct, string> = { add: "+", replace: "~", keep: "=", conflict: "!" };

/** Throws CliFault. `verify` is `svc domains verify`, for --wait. */
export async function publishDomain(
  cli: Cli,
  name: string,
  records: DnsRecord[],
  flags: PublishFlags,
  verify: (wait: string | true | undefined) => Promise<void>,
): Promise<void> {
  const address = parsePrimary(flags.server);
  if (address === null)
    throw usage(
      `--server: found "${flags.server}", expected a host name or an address, with a port if it is not 53`,
    );
  if (typeof flags.wait === "string") spanMs(flags.wait, "--wait"); // refused before anything is changed
  const primary = createPrimary({ address, key: readKey(cli, flags.keyFile), clock: cli.io.clock });
  const plan = await planPublication(primary, records);
  if (plan.kind === "failed") throw faultOf(plan);
  const { changes } = plan;
  const open = changes.filter(({ act }) => act === "add" || act === "replace");
  const conflicts = changes.filter(({ act }) => act === "conflict");
  if (!cli.out.json) showChanges(cli, primary, changes);
  const dry = flags.dryRun === true;
  if (open.length > 0 && !dry) {
    await agree(cli, `Publish ${open.length} of these records at ${primary.shown}?`, flags.yes);
    const done = await publish(primary, open);
    if (done.kind === "failed") throw faultOf(done);
  }
  if (cli.out.json) cli.out.body(JSON.stringify(bodyOf(primary, changes, open.length > 0 && !dry)));
  if (dry) return cli.out.next("Nothing was changed. Without --dry-run it is published.");
  cli.out.note(
    open.length === 0 ? "There was nothing to publish." : `Published at ${primary.shown}: ${open.length}`,
  );
  // What others have there does not go by waiting.
  if (flags.wait !== undefined) return verify(conflicts.length > 0 ? undefined : flags.wait);
  if (conflicts.some(({ record }) => record.required))
    throw new CliFault(
      5,
      `${conflicts.length} of the records of ${name} are in conflict with others, which were left as they are`,
      [`Change those yourself (marked ! above), then: ${cli.program} domains verify ${name}`],
    );
  cli.out.next(`Then: ${cli.program} domains verify ${name} --wait`);
}

function readKey(cli: Cli, file: string): TsigKey {
  const read = parseTsigKey(readInputFile(file, "--key-file").toString());
  if (!read.ok) throw usage(`--key-file: found ${read.found} in ${file}, expected ${read.expected}`);
  const mode = statSync(file).mode & 0o077;
  if (mode !== 0)
    cli.out.note(`${file} can be read by others, who can then change the zone: chmod 600 ${file}`);
  return read.key;
}

function showChanges(cli: Cli, primary: Primary, changes: readonly Change[]): void {
  for (const [zone, own] of Map.groupBy(changes, (change) => change.zone)) {
    cli.out.line(`zone ${zone || "."} at ${primary.shown}`);
    for (const { act, why, record } of own) {
      cli.out.line(
        `${signs[act]} ${record.type}  ${record.name}  (${[record.purpose, why ?? "new"].join(": ")})`,
      );
      cli.out.line(`     ${record.value}`);
    }
  }
}

function bodyOf(primary: Primary, changes: readonly Change[], published: boolean): object {
  const shown = changes.map(({ zone, act, why, record: { purpose, type, name, value, required } }) => {
    return { zone, action: act, reason: why, purpose, type, name, value, required };
  });
  return { server: primary.shown, published, changes: shown };
}

function faultOf({ why, refused }: Failed): CliFault {
  return new CliFault(refused ? 4 : 1, why);
}
