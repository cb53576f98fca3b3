// `svc limits`: how hard providers and domains are pushed, what holds there now and why. What is set holds at once, over
// the shaping file and the built-in table.
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { usage } from "../fault.ts";
import { field, type Row } from "../output.ts";
import { cell } from "../text.ts";
import { addVerbs, type Flag, type Verb } from "../verbs.ts";

const numberFlag = (name: string, member: string, about: string): Flag => ({
  flag: `--${name} <n>`,
  about: `${about}; default resets it`,
  member,
  read(text) {
    if (text === "default") return null;
    const value = Number(text);
    if (text.trim() !== "" && Number.isFinite(value)) return value;
    throw usage(`--${name}: found "${text}", expected a number or default`);
  },
});

const origins: Record<string, string> = {
  set: "svc limits",
  shaping_file: "shaping file",
  built_in: "built in",
};

export const verbs: readonly Verb[] = [
  {
    name: "list",
    about: "list the limits of providers and domains",
    lists: "/v1/shaping",
    columns: [
      field("name"),
      field("connections"),
      { title: "per second", of: (row) => row["per_second"] ?? "no limit" },
      field("messages_per_connection", "per connection"),
      { title: "tls", of: (row) => row["tls"] ?? "" },
      { title: "from", of: (row) => originText(row["origin"]) },
      { title: "slowed", of: (row) => (row["slowed"] === 0 ? "" : row["slowed"]) },
    ],
    empty: () => "No limits.",
  },
  {
    name: "show",
    about: "show the limits of a provider or a domain, where they come from, and what holds there now",
    route: "GET /v1/shaping/{name}",
    show: showLimits,
  },
  {
    name: "set",
    about:
      "set limits of google, microsoft, yahoo, apple, default, smart-host or a domain; they hold at once",
    route: "PATCH /v1/shaping/{name}",
    flags: [
      numberFlag("connections", "connections", "connections at once, from one sending address"),
      numberFlag("per-second", "per_second", "messages that are begun in a second, from one sending address"),
      numberFlag("messages-per-connection", "messages_per_connection", "messages on one connection"),
      {
        flag: "--tls <policy>",
        about:
          "opportunistic, require (any certificate) or verify (valid for the MX host); default resets it",
        member: "tls",
        read: (text) => (text === "default" ? null : text),
      },
    ],
    show(cli, { json }, name) {
      const set = Object.entries(json).filter(([member, value]) => value !== null && member !== "updated_at");
      cli.out.fields(set);
      cli.out.next(`What holds now: ${cli.program} limits show ${name}`);
    },
  },
  {
    name: "unset",
    about: "unset what was set: the shaping file and the built-in table hold again",
    route: "DELETE /v1/shaping/{name}",
    show: (cli, _answer, name) => cli.out.note(`what was set for ${name} is unset`),
  },
];

export function register(limits: Command, cli: Cli): void {
  addVerbs(limits, cli, verbs);
}

const originText = (origin: unknown): string =>
  typeof origin === "string" ? (origins[origin] ?? origin) : "default";

function showLimits(cli: Cli, { json }: Answer): void {
  const from = rowOf(json["from"]);
  const held = (member: string, value: unknown): unknown => {
    const { rule, origin } = rowOf(from[member]);
    return rule === undefined ? value : `${cell(value)}  (${cell(rule)}, ${originText(origin)})`;
  };
  cli.out.fields([
    ["name", json["name"]],
    ["mx_group", json["mx_group"]],
    ["connections", held("connections", json["connections"])],
    ["per_second", held("per_second", json["per_second"] ?? "no limit")],
    ["messages_per_connection", held("messages_per_connection", json["messages_per_connection"])],
    ["tls", held("tls", json["tls"] ?? "as outbound.tls")],
  ]);
  const now = Array.isArray(json["now"]) ? (json["now"] as Row[]) : [];
  if (now.length === 0) return cli.out.note("No mail went there lately.");
  cli.out.line("");
  cli.out.table(
    [
      field("group"),
      { title: "from", of: (row) => row["sending_ip"] ?? "system" },
      { title: "open", of: (row) => row["connections_open"] },
      { title: "attempts", of: (row) => `${cell(row["attempts"])} of ${cell(row["attempts_limit"])}` },
      { title: "per second", of: (row) => row["per_second"] ?? "no limit" },
      { title: "factor", of: (row) => row["factor"] },
      { title: "slowed since", of: (row) => row["slowed_since"] ?? "" },
    ],
    now,
  );
  for (const row of now.filter(({ slowed_by: reply }) => typeof reply === "string"))
    cli.out.line(`${cell(row["slowed_at"])} ${cell(row["group"])}: ${cell(row["slowed_by"])}`);
}

const rowOf = (value: unknown): Row => (value !== null && typeof value === "object" ? (value as Row) : {});
