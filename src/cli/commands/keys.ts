// `svc keys`: API keys. A value is shown once, alone on stdout, so that it can be piped.
import type { Command } from "commander";
import { keyScopes } from "../../model/api-key.ts";
import { listed, segment, type Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { usage } from "../fault.ts";
import { addLimitOptions, limitsOf, shownLimits, type LimitFlags } from "../limits.ts";
import { addListOptions, printList, type ListFlags } from "../lists.ts";
import { field, type Row } from "../output.ts";
import { moment, spanMs } from "../times.ts";
import { addVerbs, showStatus, type Verb } from "../verbs.ts";

const made: readonly Verb[] = [
  {
    name: "create",
    about: "make a key",
    route: "POST /v1/keys",
    flags: [
      { flag: "--name <name>", about: "what it is for", member: "name", required: true },
      {
        flag: "--scope <scope>",
        about: keyScopes.join(", "),
        member: "scope",
        required: true,
        read: scopeOf,
      },
      { flag: "--test", about: "a test key: nothing leaves the machine", member: "test" },
      {
        flag: "--allow-ip <network>",
        about: "usable from these networks only; repeat or separate by commas",
        member: "allow_ips",
        collect: listed,
      },
      {
        flag: "--expires <time>",
        about: "a time, or a span such as 90d",
        member: "expires_at",
        read: (text, { io }) => moment(text, "--expires", "future", io.clock.now()),
      },
    ],
    show: showNewKey,
  },
];
const others: readonly Verb[] = [
  { name: "show", about: "one key", route: "GET /v1/keys/{id}", show: showKey },
  {
    name: "rotate",
    about: "a new key with the same settings; the old one stays valid",
    route: "POST /v1/keys/{id}/rotate",
    show(cli, answer, id) {
      showNewKey(cli, answer);
      cli.out.next(`Once the new key is in use: ${cli.program} keys revoke ${id}`);
    },
  },
  {
    name: "revoke",
    about: "end a key at once, for good",
    route: "POST /v1/keys/{id}/revoke",
    question: (id) => `Revoke ${id}? Its requests fail from now on, for good.`,
    show: showStatus,
  },
  {
    name: "disable",
    about: "stop a key until it is enabled again",
    route: "POST /v1/keys/{id}/disable",
    show: showStatus,
  },
  {
    name: "enable",
    about: "let a disabled key work again",
    route: "POST /v1/keys/{id}/enable",
    show: showStatus,
  },
];

export const verbs: readonly Verb[] = [...made, ...others];

export function register(keys: Command, cli: Cli): void {
  addVerbs(keys, cli, made);
  addListOptions(keys.command("list").description("all keys"), false)
    .option("--unused <span>", "not used for so long: 90d")
    .action(async (flags: ListFlags & { unused?: string }) => {
      const before =
        flags.unused === undefined ? null : cli.io.clock.now() - spanMs(flags.unused, "--unused");
      await printList(cli, before === null ? flags : { ...flags, all: true }, {
        path: "/v1/keys",
        columns: ["id", "name", "scope", "test", "status", "hint", "last_used_at", "expires_at"].map((name) =>
          field(name),
        ),
        empty: `There is no key${before === null ? "" : " unused for so long"}.`,
        ...(before === null ? {} : { keep: (row) => lastUse(row) < before }),
      });
    });
  addVerbs(keys, cli, others);
  addLimitOptions(keys.command("set <id>").description("change what a key may do, from the next request on"))
    .option("--allow-ip <network>", "usable from these networks only; any: from everywhere", listed)
    .option("--name <name>", "what it is for")
    .action(async (id: string, flags: LimitFlags & { allowIp?: string[]; name?: string }) => {
      const { allowIp, name } = flags;
      const body = limitsOf("key", flags, ["--rate", "--quota", "--allow-ip", "--name"], {
        ...(name === undefined ? {} : { name }),
        ...(allowIp ? { allow_ips: allowIp.join() === "any" ? [] : allowIp } : {}),
      });
      const answer = await cli.client.call("PATCH", `/v1/keys/${segment(id)}`, { body });
      if (cli.out.json) cli.out.body(answer.text);
      else showKey(cli, answer);
    });
}

function showNewKey(cli: Cli, answer: Answer): void {
  const { id, name, scope, key } = answer.json;
  cli.out.note(`${String(id)}, ${String(name)}, scope ${String(scope)}. The key is shown this once:`);
  cli.out.secret(String(key));
  if (scope === "send") cli.out.next("Use it: POST /v1/messages with the header Authorization: Bearer KEY");
}

function showKey(cli: Cli, answer: Answer): void {
  cli.out.fields(shownLimits(answer.json));
}

function lastUse(row: Row): number {
  return Date.parse(String(row["last_used_at"] ?? row["created_at"]));
}

function scopeOf(text: string): string {
  if (keyScopes.some((scope) => scope === text)) return text;
  throw usage(`--scope: found "${text}", expected ${keyScopes.join(", ")}`);
}
