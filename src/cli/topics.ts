// What `svc help TOPIC` explains beside the commands. A topic is a page of docs/, or is made of what the program knows, as the
// tables of docs/ are: neither is written twice.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import type { Cli, Register } from "./cli.ts";
import { exitCodes } from "./fault.ts";

export const topics = {
  "exit-codes": "what the exit code of a command says",
  environment: "variables that commands and the service read",
  filters: "the filters of lists; how times are written",
  dns: "DNS records of the server and of domains",
  api: "example clients of the API",
  "moving-in": "warm-up, feedback loops, coming from elsewhere",
} as const;
export type Topic = keyof typeof topics;

/** Topics that are pages of the documentation, by the page's name. */
const pages: Partial<Record<Topic, string>> = { dns: "domains", "moving-in": "moving-in" };

/** Two folders up from here as written, one from the bundle. */
const docsFolder = join(import.meta.dirname, import.meta.url.endsWith(".ts") ? "../../docs" : "../docs");

/** `api` is not a text. */
export const isTopic = (word: string): word is Exclude<Topic, "api"> =>
  word !== "api" && Object.hasOwn(topics, word);

export interface Loadable {
  name: string;
  load: () => Promise<{ register: Register }>;
}

/** In Markdown. */
export async function topicText(
  topic: Exclude<Topic, "api">,
  nouns: () => readonly Loadable[],
): Promise<string> {
  const page = pages[topic];
  if (page !== undefined) return readFileSync(join(docsFolder, `${page}.md`), "utf8");
  if (topic === "exit-codes") return table(["exit code", ""], Object.entries(exitCodes));
  if (topic === "environment") return table(["variable", ""], environment);
  return `${table(["filter", "", "of"], await filters(nouns()))}\n\n${times}`;
}

/** Every variable that is read, but for those of single options. test/cli/topics.test.ts compares it with the code. */
export const environment: readonly (readonly [string, string])[] = [
  ["SVC_CONFIG", "the svc.yaml to read in place of the default ones (--config)"],
  ["SVC_DATA_DIR", "database, spool, keys (--data-dir)"],
  ["SVC_SOCKET", "the admin socket (--socket)"],
  ["SVC_ACCOUNT", "the account to act on (--account)"],
  ["SVC_OPERATOR", "your name in the audit log (--as); else SUDO_USER, then USER"],
  [
    "SVC_<SECTION>_<KEY>",
    "an option of svc.yaml: SVC_OUTBOUND_MAX_AGE is outbound.max_age; lists take commas, structures YAML's flow form",
  ],
  [
    "SVC_OUTBOUND_SMART_HOST_PASSWORD",
    "the smart host's password, in place of outbound.smart_host.password_file",
  ],
  ["SVC_WEBHOOK_SECRET", "the secret that webhooks create shows once, for webhooks listen and verify"],
  ["DISPLAY", "with it, or WAYLAND_DISPLAY, inbox open starts a browser"],
  ["WAYLAND_DISPLAY", "see DISPLAY"],
  ["NO_COLOR", "set: no colours"],
  ["FORCE_COLOR", "colours also into a pipe; 0 or false: none"],
  ["TERM", "dumb: no colours, no redrawing, charts in ASCII"],
  ["LC_ALL", "the locale, else LC_CTYPE, else LANG: charts are drawn in Unicode where it is one of UTF-8"],
  ["LC_CTYPE", "see LC_ALL"],
  ["LANG", "see LC_ALL"],
  ["NODE_EXTRA_CA_CERTS", "a certificate that is trusted too, for --url"],
  ["XDG_CONFIG_HOME", "where a plain user's svc/svc.yaml is; ~/.config"],
  ["XDG_DATA_HOME", "where a plain user's data directory is; ~/.local/share"],
  ["XDG_RUNTIME_DIR", "where a plain user's admin socket is; else it is in the data directory"],
  ["STATE_DIRECTORY", "set by systemd: the data directory"],
  ["RUNTIME_DIRECTORY", "set by systemd: where the admin socket is"],
  ["PATH", "where config systemd-unit looks for svc"],
  ["SUDO_USER", "see SVC_OPERATOR"],
  ["USER", "see SVC_OPERATOR"],
];

/** Lists with filters, in the order of their names in the table. */
const filtered = ["messages", "queue", "events", "suppressions", "audit"];
const ofEveryList = ["--limit", "--cursor", "--all"];

/** A row a flag of the `list` verbs: the flag, what it means, and which nouns have it. */
export async function filters(nouns: readonly Loadable[]): Promise<string[][]> {
  const rows = new Map<string, { meaning: string; of: string[] }>();
  for (const name of filtered) {
    const noun = new Command(name);
    const { register } = (await nouns.find((one) => one.name === name)?.load()) ?? {};
    register?.(noun, Object.create(null) as Cli); // no action is run
    const options = noun.commands.find((verb) => verb.name() === "list")?.options ?? [];
    for (const { flags, long, description } of options) {
      if (ofEveryList.includes(long ?? "")) continue;
      const row = rows.get(flags) ?? { meaning: description, of: [] };
      row.of.push(name);
      rows.set(flags, row);
    }
  }
  return [...rows].map(([flags, { meaning, of }]) => [flags, meaning, of.join(", ")]);
}

const times = `Times are written 2026-12-01T08:00:00Z, 2026-12-01, 15m, 24h, 90d or yesterday. Every list takes --limit N (rows of a
page), --cursor CURSOR (of the page before) and --all (every page). --json prints the API's own bodies, with --all a row a line.`;

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(heads), `|${"---|".repeat(heads.length)}`, ...rows.map(line)].join("\n");
}
