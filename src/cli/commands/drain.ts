// `svc drain`: maintenance mode, then waits until every recipient that is due has had its attempt, so that the service
// can be stopped with nothing under way. Deferred and scheduled mail stays for the next start.
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { CliFault } from "../fault.ts";
import type { Row } from "../output.ts";
import { pause, spanMs } from "../times.ts";

const pollMs = 1000;

export function register(drain: Command, cli: Cli): void {
  drain
    .option("--timeout <span>", "exit 1 if mail is still under way after that, such as 5m")
    .action(async ({ timeout }: { timeout?: string }) => {
      const { clock } = cli.io;
      const limitMs = timeout === undefined ? Infinity : spanMs(timeout, "--timeout");
      await cli.client.call("POST", "/v1/maintenance", { body: {} });
      cli.out.note("New mail is refused; mail that is due is sent.");
      const end = clock.monotonic() + limitMs;
      for (;;) {
        const { json } = await cli.client.call("GET", "/v1/status");
        const queue = (json["queue"] ?? {}) as Row;
        const underWay = Number(queue["queued"] ?? 0) + Number(queue["sending"] ?? 0);
        if (underWay === 0) return show(cli, queue);
        if (clock.monotonic() >= end)
          throw new CliFault(1, `${underWay} recipients are still queued or being sent`, [
            `See what they wait for: ${cli.program} queue count --by domain`,
            `New mail is still refused. To end that: ${cli.program} maintenance off`,
          ]);
        await pause(clock, pollMs);
      }
    });
}

function show(cli: Cli, queue: Row): void {
  if (cli.out.json) return cli.out.body(JSON.stringify({ queue }));
  const left = ["deferred", "scheduled", "held"].map((name) => `${Number(queue[name] ?? 0)} ${name}`);
  cli.out.line(`drained: nothing is due or being sent; in the queue stay ${left.join(", ")}`);
  cli.out.next(`Stop the service now, or take new mail again: ${cli.program} maintenance off`);
}
