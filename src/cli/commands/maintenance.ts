// `svc maintenance`: refuses clients until it is turned off. Accepted mail is delivered meanwhile.
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { moment } from "../times.ts";

export function register(maintenance: Command, cli: Cli): void {
  maintenance
    .command("on")
    .description("start maintenance mode: HTTP answers 503, SMTP 421; delivery and webhooks continue")
    .option("--until <time>", "end it then: a time, or a span such as 30m")
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
    .description("end maintenance mode")
    .action(async () => {
      await cli.client.call("DELETE", "/v1/maintenance");
      if (!cli.out.json) cli.out.line("maintenance mode is off");
    });
}
