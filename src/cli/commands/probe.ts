// `svc probe ADDRESS`: the road of mail to a mailbox, up to the reply to RCPT. No message is sent.
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { CliFault } from "../fault.ts";
import { field, type Row } from "../output.ts";
import { cell } from "../text.ts";

export function register(probe: Command, cli: Cli): void {
  probe
    .argument("<address>", "the recipient")
    .option("--pool <name>", "the pool to leave from (the default pool)")
    .action(async (recipient: string, { pool }: { pool?: string }) => {
      const body = { recipient, ...(pool === undefined ? {} : { ip_pool: pool }) };
      const answer = await cli.client.call("POST", "/v1/probe", { body });
      if (cli.out.json) cli.out.body(answer.text);
      else show(cli, answer.json);
      if (answer.json["outcome"] !== "accepted")
        throw new CliFault(7, `${recipient} is not accepted now: ${cell(answer.json["smtp_response"])}`);
    });
}

function show(cli: Cli, json: Row): void {
  const tls = json["tls"] as Row | null;
  const mx = Array.isArray(json["mx"]) ? (json["mx"] as Row[]) : [];
  if (mx.length > 0) {
    cli.out.table(
      [
        { title: "mx", of: (row) => row["host"] },
        field("preference"),
        {
          title: "addresses",
          of: (row) => [row["addresses"], row["failure"]].flat().filter((one) => one !== null),
        },
      ],
      mx,
    );
    cli.out.line("");
  }
  cli.out.fields([
    ["mx_group", json["mx_group"]],
    ["tls wanted", json["tls_wanted"]],
    ["sending_ip", json["sending_ip"]],
    ["host", json["host"]],
    ["address", json["address"]],
    [
      "tls",
      tls === null
        ? null
        : `${tls["version"] === null ? "no TLS" : cell(tls["version"])}, ${tls["verified"] === true ? "verified" : "not verified"}, policy ${cell(tls["policy"])}`,
    ],
    ["outcome", json["outcome"]],
    ["classification", json["classification"]],
    [
      "reply",
      [json["smtp_code"], json["smtp_response"]]
        .filter((part) => part !== null)
        .map(cell)
        .join(" "),
    ],
  ]);
  const dialogue = Array.isArray(json["dialogue"]) ? (json["dialogue"] as Row[]) : [];
  if (dialogue.length > 0) cli.out.line("");
  for (const { at_ms: ms, from, text } of dialogue)
    cli.out.line(`  ${String(ms).padStart(6)} ms  ${from === "us" ? ">" : "<"} ${String(text)}`);
}
