// `svc maintenance`: refuses clients until it is turned off. What was accepted is delivered meanwhile.
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { moment } from "../times.ts";
import { addVerbs, type Verb } from "../verbs.ts";

export const verbs: readonly Verb[] = [
  {
    name: "on",
    about: "refuse clients: 503 maintenance, by SMTP 421; delivery and webhooks go on",
    route: "POST /v1/maintenance",
    flags: [
      {
        flag: "--until <time>",
        about: "open it again by itself: a time, or a span such as 30m",
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
    about: "open it again",
    route: "DELETE /v1/maintenance",
    show(cli) {
      if (!cli.out.json) cli.out.line("open");
    },
  },
];

export function register(maintenance: Command, cli: Cli): void {
  addVerbs(maintenance, cli, verbs);
}
