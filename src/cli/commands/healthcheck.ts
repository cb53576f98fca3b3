// `svc healthcheck`: for the health checks of containers and monitors, an exit code and one line. --live: the program answers;
// --ready: it takes mail, too.
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { CliFault, usage } from "../fault.ts";

export function register(healthcheck: Command, cli: Cli): void {
  healthcheck
    .option("--live", "the service answers (default)")
    .option("--ready", "it takes mail too: not in maintenance, and the store can be written; exit 7 if not")
    .action(async ({ live = false, ready = false }: { live?: boolean; ready?: boolean }) => {
      if (live && ready) throw usage("--live and --ready exclude each other");
      const { json } = await cli.client.call("GET", "/v1/status");
      const state = { live: true, ready: json["ready"] === true };
      if (ready && !state.ready) {
        if (cli.out.json) cli.out.body(JSON.stringify(state));
        throw new CliFault(7, "the service takes no mail now", [`See why: ${cli.program} status`]);
      }
      if (cli.out.json) cli.out.body(JSON.stringify(state));
      else cli.out.line(ready ? "ready" : "live");
    });
}
