// For `svc messages show` and `trace`: explains which rule holds back each recipient that waits, and where no address of
// its pool can be used, which and what to do. What cannot be read (with a key in place of the socket) is left out.
import { defaultPool } from "../model/ip-pool.ts";
import { segment, type Cli } from "./cli.ts";
import { CliFault } from "./fault.ts";
import type { Row } from "./output.ts";
import { cell } from "./text.ts";

const waiting = new Set<unknown>(["queued", "deferred"]);
const unfinished = new Set<unknown>([...waiting, "scheduled", "sending"]);

/** Recipients that are explained one by one. */
const explainedMost = 10;

/** Says on stderr what its recipients wait for. */
export async function explainWait(cli: Cli, message: Row): Promise<void> {
  await explainPool(cli, message);
  if (!rowsOf(message["recipients"]).some(({ status }) => unfinished.has(status))) return;
  const found = await orNull(cli.client.call("GET", `/v1/messages/${segment(String(message["id"]))}/waits`));
  const waits = rowsOf(found?.json["data"]).filter(({ rule }) => rule !== "pool");
  for (const { recipient, why } of waits.slice(0, explainedMost))
    cli.out.note(`${cell(recipient)}: ${cell(why)}`);
  if (waits.length > explainedMost) cli.out.note(`${waits.length - explainedMost} more recipients wait.`);
}

/** Which addresses of the pool cannot be used, where none can. */
async function explainPool(cli: Cli, message: Row): Promise<void> {
  const { recipients, ip_pool: pool } = message;
  if (typeof pool !== "string" || !rowsOf(recipients).some(({ status }) => waiting.has(status))) return;
  const found = await orNull(cli.client.call("GET", `/v1/ip_pools/${segment(pool)}`));
  const ips = rowsOf(found?.json["ips"]);
  if (!found || ips.some(({ status }) => status !== "unbindable" && status !== "paused")) return;
  if (ips.length === 0) {
    if (pool === defaultPool) return;
    cli.out.note(`It waits: the pool ${pool} has no address.`);
    return cli.out.note(`To send it: ${cli.program} ips add ADDRESS --pool ${pool}`);
  }
  for (const { ip_address: address, status } of ips)
    cli.out.note(
      status === "paused"
        ? `It waits: ${cell(address)} of the pool ${pool} is paused. To send it: ${cli.program} ips resume ${cell(address)}`
        : `It waits: ${cell(address)} of the pool ${pool} is not an address of this machine. To send it: configure the address, or add another to the pool.`,
    );
}

/** The same for a message of which only the id is known. */
export async function explainWaitOf(cli: Cli, id: string): Promise<void> {
  const message = await orNull(cli.client.call("GET", `/v1/messages/${segment(id)}`));
  if (message) await explainWait(cli, message.json);
}

async function orNull<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof CliFault) return null;
    throw error;
  }
}

function rowsOf(value: unknown): Row[] {
  return Array.isArray(value) ? (value as Row[]) : [];
}
