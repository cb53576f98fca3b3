// `svc recipients`: one person out of all that an account keeps, but for its suppression list.
import type { Command } from "commander";
import { agreeByName } from "../ask.ts";
import type { Cli } from "../cli.ts";

const counted = ["messages", "recipients", "canceled", "content", "events", "inbox", "content_kept"];

export function register(recipients: Command, cli: Cli): void {
  recipients
    .command("forget <address>")
    .description("remove a person's mail, events and traces; what is queued is canceled, suppressions stay")
    .option("--confirm <address>", "do not ask")
    .action(async (address: string, flags: { confirm?: string }) => {
      const question = `Remove all that is kept of ${address}, and cancel what is queued? It cannot be taken back.`;
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
          `Others still wait for messages whose content may show the address until it is too old: ${kept.join(", ")}`,
        );
      const underWay = sums.get("under_way") ?? 0;
      if (underWay > 0)
        cli.out.next(
          `${underWay} are being sent right now and are left; in a minute: ${cli.program} recipients forget ${address}`,
        );
    });
}
