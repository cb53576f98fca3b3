// `svc keys`: API keys. A value is shown once, alone on stdout, so that it can be piped.
import type { Command } from "commander";
import { keyScopes } from "../../model/api-key.ts";
import { agree } from "../ask.ts";
import { listed, segment, type Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { usage } from "../fault.ts";
import { addLimitOptions, limitsOf, shownLimits, type LimitFlags } from "../limits.ts";
import { addListOptions, printList, type ListFlags } from "../lists.ts";
import { field, type Row } from "../output.ts";
import { moment, spanMs } from "../times.ts";

export function register(keys: Command, cli: Cli): void {
  keys
    .command("create")
    .description("create an API key")
    .requiredOption("--name <name>", "what it is for")
    .requiredOption("--scope <scope>", keyScopes.join(", "))
    .option("--test", "create a test key, whose mail never leaves this machine")
    .option(
      "--allow-ip <network>",
      "accept it from these networks only; repeat or separate by commas",
      listed,
    )
    .option("--expires <time>", "expiry: a time, or a span such as 90d")
    .action(
      async (flags: {
        name: string;
        scope: string;
        test?: boolean;
        allowIp?: string[];
        expires?: string;
      }) => {
        if (!keyScopes.some((scope) => scope === flags.scope))
          throw usage(`--scope: found "${flags.scope}", expected ${keyScopes.join(", ")}`);
        const body = {
          name: flags.name,
          scope: flags.scope,
          ...(flags.test ? { test: true } : {}),
          ...(flags.allowIp ? { allow_ips: flags.allowIp } : {}),
          ...(flags.expires === undefined
            ? {}
            : { expires_at: moment(flags.expires, "--expires", "future", cli.io.clock.now()) }),
        };
        showNewKey(cli, await cli.client.call("POST", "/v1/keys", { body }));
      },
    );
  addListOptions(keys.command("list").description("list the keys"), false)
    .option("--unused <span>", "only keys not used for this long, such as 90d")
    .action(async (flags: ListFlags & { unused?: string }) => {
      const before =
        flags.unused === undefined ? null : cli.io.clock.now() - spanMs(flags.unused, "--unused");
      await printList(cli, before === null ? flags : { ...flags, all: true }, {
        path: "/v1/keys",
        columns: ["id", "name", "scope", "test", "status", "hint", "last_used_at", "expires_at"].map((name) =>
          field(name),
        ),
        empty: `No keys${before === null ? "" : " unused for that long"}.`,
        ...(before === null ? {} : { keep: (row) => lastUse(row) < before }),
      });
    });
  keys
    .command("show <id>")
    .description("show a key")
    .action(async (id: string) => {
      showKey(cli, await cli.client.call("GET", `/v1/keys/${segment(id)}`));
    });
  addLimitOptions(
    keys
      .command("set <id>")
      .description("change a key's name, limits and networks; applies from the next request"),
  )
    .option("--allow-ip <network>", "accept it from these networks only; any: from everywhere", listed)
    .option("--name <name>", "what it is for")
    .action(async (id: string, flags: LimitFlags & { allowIp?: string[]; name?: string }) => {
      const { allowIp, name } = flags;
      const body = limitsOf("key", flags, ["--rate", "--quota", "--allow-ip", "--name"], {
        ...(name === undefined ? {} : { name }),
        ...(allowIp ? { allow_ips: allowIp.join() === "any" ? [] : allowIp } : {}),
      });
      showKey(cli, await cli.client.call("PATCH", `/v1/keys/${segment(id)}`, { body }));
    });
  keys
    .command("rotate <id>")
    .description("create a key with the same settings; the old key stays valid")
    .action(async (id: string) => {
      const answer = await cli.client.call("POST", `/v1/keys/${segment(id)}/rotate`);
      showNewKey(cli, answer);
      cli.out.next(`Once the new key is in use: ${cli.program} keys revoke ${id}`);
    });
  keys
    .command("revoke <id>")
    .description("revoke a key at once and permanently")
    .option("--yes", "skip the prompt")
    .action(async (id: string, flags: { yes?: boolean }) => {
      await agree(cli, `Revoke ${id}? Requests with it fail from now on. This cannot be undone.`, flags.yes);
      showStatus(cli, id, await cli.client.call("POST", `/v1/keys/${segment(id)}/revoke`));
    });
  for (const verb of ["disable", "enable"] as const)
    keys
      .command(`${verb} <id>`)
      .description(
        verb === "disable" ? "refuse a key until it is enabled again" : "accept a disabled key again",
      )
      .action(async (id: string) =>
        showStatus(cli, id, await cli.client.call("POST", `/v1/keys/${segment(id)}/${verb}`)),
      );
}

function showNewKey(cli: Cli, answer: Answer): void {
  if (cli.out.json) return cli.out.body(answer.text);
  const { id, name, scope, key } = answer.json;
  cli.out.note(`${String(id)}, ${String(name)}, scope ${String(scope)}. The key is shown only once:`);
  cli.out.secret(String(key));
  if (scope === "send") cli.out.next("Use it: POST /v1/messages with the header Authorization: Bearer KEY");
}

function showKey(cli: Cli, answer: Answer): void {
  if (cli.out.json) return cli.out.body(answer.text);
  cli.out.fields(shownLimits(answer.json));
}

function showStatus(cli: Cli, id: string, answer: Answer): void {
  if (cli.out.json) return cli.out.body(answer.text);
  cli.out.line(`${id} is ${String(answer.json["status"])}`);
}

function lastUse(row: Row): number {
  return Date.parse(String(row["last_used_at"] ?? row["created_at"]));
}
