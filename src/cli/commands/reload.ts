// `svc reload`: the running service reads the certificates and the shaping file again; no connection is dropped. Says which
// other options have changed and need a restart.
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { CliFault } from "../fault.ts";
import { rowsOf } from "../lists.ts";
import { cell } from "../text.ts";

const names: Record<string, string> = {
  certificates: "the certificates",
  shaping_file: "the shaping file",
  configuration: "the configuration",
};

export function register(reload: Command, cli: Cli): void {
  reload
    .addHelpText(
      "after",
      `
Exit code: 1 where a certificate or the shaping file is
unusable, 78 where svc.yaml has a fault. What was read
before stays in use.

Examples:
  certbot renew --deploy-hook 'svc reload'
  svc config set outbound.max_age 24h && svc reload`,
    )
    .action(async () => {
      const answer = await cli.client.call("POST", "/v1/reload");
      const failed = rowsOf({ data: answer.json["failed"] });
      const changed = answer.json["restart_needed_for"];
      const restart = Array.isArray(changed) ? changed.map(cell) : [];
      if (cli.out.json) cli.out.body(answer.text);
      else {
        const done = ["certificates", "shaping_file"].filter((part) =>
          failed.every((one) => one["part"] !== part),
        );
        if (done.length > 0) cli.out.line(`reloaded ${done.map((part) => names[part]).join(" and ")}`);
        if (restart.length > 0) cli.out.note(`Changed, and used from the next start: ${restart.join(", ")}`);
      }
      const [first] = failed;
      if (!first) {
        if (restart.length > 0)
          cli.out.next("To use it: systemctl restart svc-mail, or end serve and start it again");
        return;
      }
      const faults = failed.flatMap(({ part, faults: said }) =>
        (Array.isArray(said) ? said : []).map(
          (fault) => `  ${names[cell(part)] ?? cell(part)}: ${cell(fault)}`,
        ),
      );
      throw new CliFault(
        failed.every(({ part }) => part === "configuration") ? 78 : 1,
        "not all could be reloaded; what was read before stays in use:",
        faults,
      );
    });
}
