// `svc top`: what the appliance does now, redrawn each second on a terminal, or as NDJSON with --json. What is shown is
// GET /v1/activity; the screen is views/top.ts, which is loaded once there is a terminal for it.
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { CliFault, usage } from "../fault.ts";
import { glyphsOf } from "../glyphs.ts";
import { coloured, type Row } from "../output.ts";
import { spanMs } from "../times.ts";

interface Flags {
  interval: string;
}

const leastMs = 500;
const mostMs = 3_600_000;

export function register(top: Command, cli: Cli): void {
  top
    .option("--interval <span>", "time between two samples, from 500ms", "1s")
    .addHelpText(
      "after",
      `
Examples:
  svc top
  svc top --json --interval 10s | jq .queue.deferred`,
    )
    .action(async ({ interval }: Flags) => {
      const everyMs = spanMs(interval, "--interval");
      if (everyMs < leastMs || everyMs > mostMs)
        throw usage(`--interval: found "${interval}", expected a span from 500ms to 1h`);
      if (cli.out.json) return samples(cli, everyMs);
      const { stdin, stdout, env } = cli.io;
      if (!stdout.isTTY || !stdin.isTTY || env["TERM"] === "dumb")
        throw usage(
          "top redraws the screen, and this is not a terminal that can",
          `For one look: ${cli.program} status`,
          `For samples, one a line: ${cli.program} top --json`,
        );
      return live(cli, everyMs);
    });
}

const activityOf = async (cli: Cli): Promise<{ text: string; json: Row }> =>
  cli.client.call("GET", "/v1/activity");

const pause = (cli: Cli, ms: number): Promise<void> =>
  new Promise((resolve) => void cli.io.clock.after(ms, resolve));

async function samples(cli: Cli, everyMs: number): Promise<void> {
  for (;;) {
    cli.out.body((await activityOf(cli)).text);
    await cli.out.drained();
    await pause(cli, everyMs);
  }
}

async function live(cli: Cli, everyMs: number): Promise<void> {
  const { io } = cli;
  let last = (await activityOf(cli)).json; // a daemon that cannot be reached is reported in words, before the screen opens
  const { openTop } = await import("../views/top.ts");
  const view = openTop({
    colour: coloured(io.stdout, io.env),
    glyphs: glyphsOf(io),
    first: { activity: last, fault: null },
  });
  const off = [io.onSignal("SIGINT", view.leave), io.onSignal("SIGTERM", view.leave)];
  let over = false;
  const follow = async (): Promise<void> => {
    for (;;) {
      await pause(cli, everyMs);
      if (over) return;
      let fault: string | null = null;
      try {
        last = (await activityOf(cli)).json;
      } catch (error) {
        if (!(error instanceof CliFault)) throw error;
        fault = error.message;
      }
      if (!over) view.show({ activity: last, fault });
    }
  };
  try {
    const how = await Promise.race([view.left, follow()]);
    over = true;
    // The next sample may be a while under way.
    io.exit(how === "interrupt" ? 130 : 0);
  } finally {
    over = true;
    view.leave(); // a fault is printed on the terminal as it was
    await view.left;
    for (const undo of off) undo();
  }
}
