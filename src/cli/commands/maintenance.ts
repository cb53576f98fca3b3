// `svc maintenance`: refuses clients until it is turned off. What was accepted is delivered meanwhile.
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { moment } from "../times.ts";

export function register(maintenance: Command, cli: Cli): void {
  maintenance
    .command("on")
    .description("refuse clients: 503 maintenance, by SMTP 421; delivery and webhooks go on")
    .option("--until <time>", "open it again by itself: a time, or a span such as 30m")
    .action(async (flags: { until?: string }) => {
      const body =
        flags.until === undefined
          ? {}
          : { until: moment(flags.until, "--until", "future", cli.io.clock.now()) };
      const answer = await cli.client.call("POST", "/v1/maintenance", { body });
      if (cli.out.json) return cli.out.body(answer.text);
      const until = answer.json["until"];
      cli.out.line(`in maintenance ${typeof until === "string" ? `until ${until}` : "until it is ended"}`);
      cli.out.next(`To end it: ${cli.program} maintenance off`);
    });
  maintenance
    .command("off")
    .description("open it again")
    .action(async () => {
      await cli.client.call("DELETE", "/v1/maintenance");
      if (!cli.out.json) cli.out.line("open");
    });
}
