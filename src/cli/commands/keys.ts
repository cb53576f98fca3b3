// `svc keys`: API keys. A value is shown once, alone on stdout, so that it can be piped.
import type { Command } from "commander";
import { keyScopes } from "../../model/api-key.ts";
import { listed, type Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { usage } from "../fault.ts";
import { withExample } from "../help-example.ts";
import { limitFlags, shownLimits } from "../limits.ts";
import { addListOptions, printList, type ListFlags } from "../lists.ts";
import { field, type Row } from "../output.ts";
import { moment, spanMs } from "../times.ts";
import { routeFlags } from "../route-flags.ts";
import { addVerbs, showStatus, type Verb } from "../verbs.ts";

const made: readonly Verb[] = [
  {
    name: "create",
    about: "create an API key",
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
      { flag: "--test", about: "create a test key, whose mail never leaves this machine", member: "test" },
      {
        flag: "--allow-ip <network>",
        about: "accept it from these networks only; repeat or separate by commas",
        member: "allow_ips",
        collect: listed,
      },
      {
        flag: "--expires <time>",
        about: "expiry: a time, or a span such as 90d",
        member: "expires_at",
        read: (text, { io }) => moment(text, "--expires", "future", io.clock.now()),
      },
    ],
    show: showNewKey,
  },
];
const others: readonly Verb[] = [
  { name: "show", about: "show a key", route: "GET /v1/keys/{id}", show: showKey },
  {
    name: "rotate",
    about: "create a key with the same settings; the old key stays valid",
    route: "POST /v1/keys/{id}/rotate",
    show(cli, answer, id) {
      showNewKey(cli, answer);
      cli.out.next(`Once the new key is in use: ${cli.program} keys revoke ${id}`);
    },
  },
  {
    name: "revoke",
    about: "revoke a key at once and permanently",
    route: "POST /v1/keys/{id}/revoke",
    question: (id) => `Revoke ${id}? Requests with it fail from now on. This cannot be undone.`,
    show: showStatus,
  },
  {
    name: "disable",
    about: "refuse a key until it is enabled again",
    route: "POST /v1/keys/{id}/disable",
    show: showStatus,
  },
  {
    name: "enable",
    about: "accept a disabled key again",
    route: "POST /v1/keys/{id}/enable",
    show: showStatus,
  },
  {
    name: "set",
    about: "change a key's name, limits and networks; applies from the next request",
    route: "PATCH /v1/keys/{id}",
    flags: [
      ...limitFlags("key"),
      {
        flag: "--allow-ip <network>",
        about: "accept it from these networks only; any: from everywhere",
        member: "allow_ips",
        collect: listed,
        readAll: (networks) => (networks.join() === "any" ? [] : networks),
      },
      { flag: "--name <name>", about: "what it is for", member: "name" },
      ...routeFlags["PATCH /v1/keys/{id}"],
    ],
    show: showKey,
  },
];

export const verbs: readonly Verb[] = [...made, ...others];

export function register(keys: Command, cli: Cli): void {
  addVerbs(keys, cli, made);
  withExample(
    addListOptions(keys.command("list").description("list the keys"), false).option(
      "--unused <span>",
      "only keys not used for this long, such as 90d",
    ),
    "keys list --unused 90d",
  ).action(async (flags: ListFlags & { unused?: string }) => {
    const before = flags.unused === undefined ? null : cli.io.clock.now() - spanMs(flags.unused, "--unused");
    await printList(cli, before === null ? flags : { ...flags, all: true }, {
      path: "/v1/keys",
      columns: ["id", "name", "scope", "test", "status", "hint", "last_used_at", "expires_at"].map((name) =>
        field(name),
      ),
      empty: `No keys${before === null ? "" : " unused for that long"}.`,
      ...(before === null ? {} : { keep: (row) => lastUse(row) < before }),
    });
  });
  addVerbs(keys, cli, others);
}

function showNewKey(cli: Cli, answer: Answer): void {
  const { id, name, scope, key } = answer.json;
  cli.out.note(`${String(id)}, ${String(name)}, scope ${String(scope)}. The key is shown only once:`);
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
