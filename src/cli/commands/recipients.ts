// `svc recipients`: deletes the data that an account keeps about one address, except its suppressions.
import type { Command } from "commander";
import { agreeByName } from "../ask.ts";
import type { Cli } from "../cli.ts";
import { withExample } from "../help-example.ts";

const counted = ["messages", "recipients", "canceled", "content", "events", "inbox", "content_kept"];

export function register(recipients: Command, cli: Cli): void {
  withExample(
    recipients
      .command("forget <address>")
      .description(
        "delete the mail, events and attempts of an address and cancel its queued mail; suppressions stay",
      )
      .option("--confirm <address>", "act without a prompt"),
    "recipients forget someone@example.net --confirm someone@example.net",
  ).action(async (address: string, flags: { confirm?: string }) => {
    const question = `Delete the data kept about ${address} and cancel its queued mail? This cannot be undone.`;
    await agreeByName(cli, question, address, flags.confirm);
    const sums = new Map<string, number>();
    const kept: string[] = [];
    for (let more = true; more;) {
      const { json, text } = await cli.client.call("POST", "/v1/recipients/forget", {
        body: { email: address },
      });
      if (cli.out.json) cli.out.body(text);
      for (const name of [...counted, "under_way"])
        sums.set(name, (name === "under_way" ? 0 : (sums.get(name) ?? 0)) + Number(json[name] ?? 0));
      if (Array.isArray(json["content_kept_in"])) kept.push(...json["content_kept_in"].map(String));
      more = json["has_more"] === true;
    }
    if (!cli.out.json) cli.out.fields(counted.map((name) => [name, sums.get(name)]));
    if (kept.length > 0)
      cli.out.note(
        `The content of these messages may show the address; it is kept for their other recipients until retention deletes it: ${kept.join(", ")}`,
      );
    const underWay = sums.get("under_way") ?? 0;
    if (underWay > 0)
      cli.out.next(
        `${underWay} recipients are being delivered now and were not deleted; repeat in a minute: ${cli.program} recipients forget ${address}`,
      );
  });
}
