// `svc maintenance`: refuses clients until it is turned off. Accepted mail is delivered meanwhile.
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { moment } from "../times.ts";
import { addVerbs, type Verb } from "../verbs.ts";

export const verbs: readonly Verb[] = [
  {
    name: "on",
    about: "start maintenance mode: HTTP answers 503, SMTP 421; delivery and webhooks continue",
    route: "POST /v1/maintenance",
    flags: [
      {
        flag: "--until <time>",
        about: "end it then: a time, or a span such as 30m",
        member: "until",
        read: (text, { io }) => moment(text, "--until", "future", io.clock.now()),
      },
    ],
    show(cli, { json: { until } }) {
      cli.out.line(`in maintenance ${typeof until === "string" ? `until ${until}` : "until it is ended"}`);
      cli.out.next(`To end it: ${cli.program} maintenance off`);
    },
  },
  {
    name: "off",
    about: "end maintenance mode",
    route: "DELETE /v1/maintenance",
    show(cli) {
      if (!cli.out.json) cli.out.line("maintenance mode is off");
    },
  },
];

export function register(maintenance: Command, cli: Cli): void {
  addVerbs(maintenance, cli, verbs);
}
