// Writes the tables of these pages that the code knows (`npm run docs`), each between its two marks:
// `<!-- generated: options -->` and `<!-- end of options -->`. It stands beside the pages that it writes, as the
// measurements' tables are written by bench/: it is a tool of the repository, and neither built nor shipped. A table is made
// of the product's own catalogue and of nothing else; test/docs.test.ts fails while a page is not what this would write.
// Over 300 lines: a function a table.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { format, resolveConfig } from "prettier";
import { Command, type Argument, type Option } from "commander";
import { accountLimits } from "../src/access/account-limits.ts";
import { rateTable } from "../src/access/buckets.ts";
import type { Cli } from "../src/cli/cli.ts";
import { exitCodes } from "../src/cli/fault.ts";
import { environment, filters } from "../src/cli/topics.ts";
import { nouns } from "../src/cli/program.ts";
import { options, optionNotes, optionPaths, type OptionPath } from "../src/config/options.ts";
import { placesOf } from "../src/config/places.ts";
import { errorCatalog } from "../src/errors.ts";
import { eventCatalog, eventTypes, type EventType } from "../src/events/catalog.ts";
import { checks } from "../src/doctor/doctor.ts";
import type { EventEntry } from "../src/events/entry.ts";
import { builtInZones } from "../src/dnsbl/zones.ts";
import { envelopeSchema } from "../src/events/envelope.ts";
import { sampleJob } from "../src/events/sample.ts";
import type { RouteDeps } from "../src/http/deps.ts";
import { flagsOf } from "../src/http/flags.ts";
import type { Route } from "../src/http/route.ts";
import { allRoutes } from "../src/http/routes.ts";
import { mostInBatch } from "../src/http/resources/sending.ts";
import { mostAddresses } from "../src/http/resources/suppressions.ts";
import { advice } from "../src/mail/advice.ts";
import { bounceCategories, type Classification } from "../src/model/classification.ts";
import { feedbackLoopDomains } from "../src/mail/feedback-loops.ts";
import { maxMessageBytes } from "../src/mail/intake.ts";
import { keyScopes } from "../src/model/api-key.ts";
import { counterEntries, gaugeEntries, type Facts } from "../src/metrics/catalog.ts";
import { countersIn } from "../src/model/counters.ts";
import { simulatorDomain } from "../src/model/simulator.ts";
import { capOf, capsOf, warmupDays } from "../src/pools/warmup.ts";
import { createShaping } from "../src/queue/shaping.ts";
import { mostRecipients } from "../src/relay/smtp-service.ts";
import { reactionEvents, reactionNames, sandboxOutcome, simulatedNames } from "../src/sandbox/simulator.ts";
import { farthestSendAtMs, most } from "../src/submission/fields.ts";

/** The pages, in the order in which README.md lists them. */
export const pages = [
  "install",
  "sending-by-rest",
  "sending-by-smtp",
  "domains",
  "dns-providers",
  "events",
  "bounces",
  "tracking",
  "pools",
  "tls",
  "blocklists",
  "accounts",
  "statistics",
  "configuration",
  "commands",
  "errors",
  "retention",
  "operations",
  "metrics",
  "backup",
  "moving-in",
] as const;

export const pageFile = (page: string): string => join(import.meta.dirname, `${page}.md`);

type Cell = string | number;
type Row = readonly Cell[];

const code = (text: Cell): string => `\`${text}\``;
const snake = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const codes = (texts: readonly string[]): string => texts.map(code).join(" ");

function table(heads: readonly string[], rows: readonly Row[]): string {
  const line = (cells: Row): string =>
    `| ${cells.map((cell) => String(cell).replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(heads), `|${"---|".repeat(heads.length)}`, ...rows.map(line)].join("\n");
}

// Options

/** A root's service and a plain user's, whose defaults differ. */
const system = placesOf({ env: {}, home: "~", uid: 0 });
const person = placesOf({ env: {}, home: "~", uid: 1000 });
const loops = "the providers' own, see below";

function standardText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.map(String).join(", ");
  return typeof value === "object" ? flow(value) : String(value as string | number | boolean);
}

/** `{hard_bounce: 10%}`, as in YAML. */
function flow(value: object): string {
  const entries = Object.entries(value).map(([name, one]) => `${name}: ${String(one)}`);
  return entries.length === 0 ? "none" : `{${entries.join(", ")}}`;
}

export function defaultOf(path: OptionPath): string {
  if (path === "feedback.loops") return loops;
  const standard = optionNotes.get(options[path])?.standard;
  if (typeof standard !== "function") return standardText(standard);
  const [root, user] = [system, person].map((places) =>
    standardText(standard({ places, machineName: "the machine's name", dev: false })),
  );
  return root === user ? String(root) : `${root} (root); ${user}`;
}

/** `<hostname>` is another option's value. */
export const aboutOf = (path: OptionPath): string =>
  (optionNotes.get(options[path])?.about ?? "").replaceAll(/<(\w+)>/g, "`$1`");

function optionTable(): string {
  return table(
    ["option", "default", "meaning"],
    optionPaths.map((path) => [code(path), defaultOf(path), aboutOf(path)]),
  );
}

// Events and bounces

function eventTypeTable(): string {
  const mailCounters: readonly string[] = countersIn("mail");
  return table(
    ["event", "meaning", "state of the recipient", "raises in the statistics"],
    Object.entries<EventEntry>(eventCatalog).map(([type, entry]) => {
      const { state = null, counters = {} } = entry.about === "recipient" ? entry : {};
      const shown = Object.keys(counters)
        .filter((name) => mailCounters.includes(name))
        .map(snake);
      return [code(type), entry.meaning, state === null ? "" : code(state), codes(shown)];
    }),
  );
}

function eventFieldTable(): string {
  const types = new Map<string, EventType[]>();
  for (const type of eventTypes)
    for (const field of Object.keys(envelopeSchema(type).shape.data.shape))
      types.set(field, [...(types.get(field) ?? []), type]);
  const ofMessages = eventTypes.filter((type) => type.startsWith("message."));
  const namesOf = (own: readonly EventType[]): string => {
    if (own.length === eventTypes.length) return "all";
    if (own.length === ofMessages.length && own.every((type) => ofMessages.includes(type)))
      return "all `message.*`";
    return own.map((type) => code(type.replace("message.", ""))).join(", ");
  };
  return table(
    ["field of `data`", "in"],
    [...types].map(([field, own]) => [code(field), namesOf(own)]),
  );
}

const classifications = Object.entries(bounceCategories) as [Classification, string][];

function categoryTable(): string {
  const byCategory = Map.groupBy(classifications, ([, category]) => category);
  return table(
    ["`bounce_category`", "`bounce_classification`"],
    [...byCategory].map(([category, own]) => [category, codes(own.map(([name]) => name))]),
  );
}

function classificationTable(): string {
  return table(
    ["classification", "fault of", "what to do"],
    classifications.map(([name]) => [code(name), ...advice[name]]),
  );
}

function simulatorTable(): string {
  const rows = simulatedNames.map((name): Row => {
    const address = `${name}@${simulatorDomain}`;
    const job = { ...sampleJob(0, "", 0), rcptTo: address, domain: simulatorDomain };
    const first = sandboxOutcome(job, 0);
    const reaction = reactionNames.find((known) => known === name);
    const then =
      reaction !== undefined
        ? `, then \`${reactionEvents[reaction]}\``
        : first.kind === "deferred"
          ? `, then \`message.${sandboxOutcome({ ...job, attempt: 2 }, 0).kind}\``
          : "";
    const cause = "classification" in first ? code(first.classification) : "";
    return [
      code(address),
      `\`message.${first.kind}\`${then}`,
      cause,
      `${first.reply.code} ${first.reply.text}`,
    ];
  });
  return table(["recipient", "event", "classification", "reply"], rows);
}

function feedbackLoopList(): string {
  return `${codes([...feedbackLoopDomains].toSorted())}`;
}

// The doctor

function checkTable(): string {
  return table(
    ["check", "what is right"],
    checks.map(({ id, about }) => [code(id), about]),
  );
}

// Metrics

/** Labels of gauges are read off a sample. */
const sampleFacts: Facts = {
  version: "",
  now: 0,
  queue: { scheduled: 0, queued: 0, deferred: 0, sending: 0, held: 0, oldestDueAt: null },
  health: { schemaVersion: 0, freeBytes: 0, writable: true, full: false, engine: {} },
  maintenance: false,
  pausedAccounts: 0,
  poolProblems: 0,
  listings: 0,
  failingCertificates: { host: 0, tracking: 0 },
  backupAt: 0,
  certificate: null,
};

function metricTable(): string {
  const labelled = (values: readonly Record<string, string>[]): string => {
    const [name] = Object.keys(values[0] ?? {});
    if (name === undefined) return "";
    const each = values.map((labels) => labels[name] ?? "").filter((value) => value !== "");
    return `${code(name)}${each.length === 0 ? "" : `: ${codes(each)}`}`;
  };
  const counters = Map.groupBy(counterEntries, ({ name }) => name);
  return table(
    ["metric", "type", "label", "meaning"],
    [
      ...Array.from(counters, ([name, own]): Row => [
        code(name),
        "counter",
        labelled(own.map(({ labels = {} }) => labels)),
        own[0]?.help ?? "",
      ]),
      ...gaugeEntries.map(({ name, help, read }): Row => {
        const labels = read(sampleFacts).map((sample) => sample.labels ?? {});
        return [code(name), "gauge", labelled(labels), help];
      }),
    ],
  );
}

// Errors and limits

function errorTable(): string {
  const rows = Object.entries(errorCatalog).map(([name, { status, meaning, fixedBy, smtp }]): Row => {
    return [status, code(name), meaning, fixedBy, `${smtp.code} ${smtp.enhanced}`];
  });
  return table(["status", "code", "meaning", "who can mend it", "by SMTP"], rows);
}

function rateTableText(): string {
  const routes = Map.groupBy(
    publicRoutes().filter(({ scopes }) => scopes !== "open"),
    ({ bucket }) => bucket,
  );
  const others: Record<string, string> = {
    default: "all others",
    account: "all keys of an account together, on each bucket",
    unauthenticated: "a source address without a valid key",
    open: "a source address at the routes that need no key",
  };
  return table(
    ["bucket", "burst", "a second", "requests"],
    Object.entries(rateTable).map(([name, { burst, perSecond }]) => {
      const own = [...routes].find(([bucket]) => bucket === name)?.[1] ?? [];
      return [code(name), burst, perSecond, others[name] ?? shortPaths(own)];
    }),
  );
}

/** `GET /v1/stats, /v1/stats/summary`: the methods once. */
function shortPaths(routes: readonly Route[]): string {
  return [...Map.groupBy(routes, ({ method }) => method)]
    .map(([method, own]) => `${method} ${[...new Set(own.map(({ path }) => code(path)))].join(" ")}`)
    .join(", ");
}

function accountLimitTable(): string {
  return table(
    ["limit", "at most", "of"],
    Object.entries(accountLimits).map(([name, { most, of }]) => [code(name), most ?? "half", of]),
  );
}

function requestLimitTable(): string {
  const number = (count: number): string => count.toLocaleString("en-US");
  const rows: Row[] = [
    ["message, finished", `${maxMessageBytes / 1_048_576} MB (${number(maxMessageBytes)} bytes)`],
    ["recipients of a message", `${most.recipients} by REST, ${mostRecipients} by SMTP`],
    ["`reply_to`", most.replyTo],
    ["subject", `${most.subject} characters`],
    ["`headers`", `${most.headers} fields, ${number(most.headerBytes)} bytes`],
    ["attachments", `${most.attachments}, names of ${most.filename} characters`],
    ["tags", `${most.tags} of ${most.tag} characters`],
    [
      "`metadata`",
      `${most.metadata}; keys of ${most.metadataKey}, values of ${number(most.metadataValue)} characters`,
    ],
    ["`send_at`", `${farthestSendAtMs / 3_600_000} hours ahead`],
    ["messages in one batch", mostInBatch],
    ["suppressions in one request", number(mostAddresses)],
  ];
  return table(["of a request", "at most"], rows);
}

function shapingTable(): string {
  const shaping = createShaping(null);
  return table(
    ["for", "connections", "messages a second", "messages per connection"],
    shaping.names().map((name) => {
      const { connections, perSecond, messagesPerConnection } = shaping.limits(name);
      return [
        code(name),
        connections,
        Number.isFinite(perSecond) ? perSecond : "no limit",
        messagesPerConnection,
      ];
    }),
  );
}

function warmupTable(): string {
  const days = [1, 3, 5, 7, 11, 15, 21, warmupDays];
  return table(
    ["day of the warm-up", ...days.map(String)],
    Object.keys(capsOf(1)).map((provider) => [
      provider === "default" ? "all others" : code(provider),
      ...days.map((day) => capOf(provider, day) ?? "no cap"),
    ]),
  );
}

// The API

/** Routes are data with a handler; nothing of what they are given is called before a request comes. */
function routes(): Route[] {
  const nothing: RouteDeps = new Proxy(Object.create(null) as RouteDeps, { get: () => nothing });
  return allRoutes(nothing).filter(({ alias }) => alias !== true);
}

const publicRoutes = (): Route[] => routes().filter(({ listeners }) => listeners !== "admin");

const mayCall = (scope: (typeof keyScopes)[number], { scopes }: Route): boolean =>
  scopes !== "open" && (scope === "admin" || scopes.includes(scope));

function scopeTable(): string {
  const keyed = publicRoutes().filter(({ scopes }) => scopes !== "open");
  return table(
    ["scope", "may call"],
    keyScopes.map((scope) => [
      code(scope),
      scope === "admin" ? "all" : shortPaths(keyed.filter((route) => mayCall(scope, route))),
    ]),
  );
}

function endpointTable(): string {
  return table(
    ["endpoint", "", "scope"],
    publicRoutes().map(({ method, path, summary, scopes }) => [
      code(`${method} ${path}`),
      summary,
      scopes === "open" ? "no key" : scopes.join(", "),
    ]),
  );
}

// Commands

/** Each noun with its commands, as the program registers them; no action is run. */
export async function programOf(): Promise<Command[]> {
  const cli = Object.create(null) as Cli;
  return Promise.all(
    nouns.map(async ({ name, alias, about, load }) => {
      const noun = new Command(name).description(about);
      if (alias !== undefined) noun.alias(alias);
      (await load()).register(noun, cli);
      return noun;
    }),
  );
}

/** The commands that do something, with the words before their name: `dkim rotate`. */
export function verbsOf(
  command: Command,
  before: readonly string[] = [],
): { words: string[]; command: Command }[] {
  return command.commands.flatMap((verb) => {
    const words = [...before, verb.name()];
    return verb.commands.length > 0 ? verbsOf(verb, words) : [{ words, command: verb }];
  });
}

async function commandTable(): Promise<string> {
  const rows = (await programOf()).map((noun): Row => {
    const verbs = verbsOf(noun).map(({ words }) => words.join(" "));
    return [code(`svc ${noun.name()}`), verbs.length === 0 ? noun.description() : verbs.join(", ")];
  });
  return table(["command", ""], rows);
}

/** What every list takes is said once, above the reference. */
const ofLists = ["--limit", "--cursor", "--all"];

export const argumentText = (argument: Argument): string => {
  const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
  return argument.required ? `<${name}>` : `[${name}]`;
};

function optionLine(option: Option): string {
  const required = option.mandatory ? ", required" : "";
  const standard: unknown = option.defaultValue;
  const fallback = typeof standard === "string" ? ` (${standard})` : "";
  return `${code(option.flags)}${required}: ${option.description}${fallback}`;
}

function commandText(name: string, command: Command): string {
  const call = [name, ...command.registeredArguments.map(argumentText)].join(" ");
  const listing = ofLists.every((flag) => command.options.some(({ long }) => long === flag));
  const own = command.options.filter(({ long }) => !listing || !ofLists.includes(long ?? ""));
  const flags = [...own.map(optionLine), ...(listing ? ["and [those of every list](#lists)"] : [])];
  return [
    `**\`${call}\`**: ${command.description()}`,
    ...(flags.length === 0 ? [] : ["", ...flags.map((flag) => `- ${flag}`)]),
  ].join("\n");
}

async function commandReference(): Promise<string> {
  const sections = (await programOf()).map((noun) => {
    const name = `svc ${noun.name()}`;
    const alias = noun.alias();
    const head = [`### ${name}`, ...(alias ? [`Also \`svc ${alias}\`.`] : [])];
    const verbs = verbsOf(noun);
    const texts =
      verbs.length === 0
        ? [commandText(name, noun)]
        : verbs.map(({ words, command }) => commandText([name, ...words].join(" "), command));
    return [...head, ...texts].join("\n\n");
  });
  return sections.join("\n\n");
}

function blocklistTable(): string {
  return table(
    ["zone", "codes that count", "removal"],
    builtInZones.map(({ zone, name, codes, removalUrl, ipv6 }) => [
      `${code(zone)} (${name}${ipv6 === true ? ", IPv6 too" : ""})`,
      codes.map(({ code: value, meaning }) => `${code(value)} ${meaning ?? ""}`).join("<br>"),
      removalUrl ?? "",
    ]),
  );
}

function exitCodeTable(): string {
  return table(["exit code", ""], Object.entries(exitCodes));
}

function environmentTable(): string {
  return table(
    ["variable", ""],
    environment.map(([name, meaning]) => [code(name), meaning]),
  );
}

async function filterTable(): Promise<string> {
  return table(
    ["filter", "", "of"],
    (await filters(nouns)).map(([flag = "", meaning = "", of = ""]) => [code(flag), meaning, of]),
  );
}

/** Every table, by the name in its marks. */
const tables: Record<string, () => string | Promise<string>> = {
  options: optionTable,
  "event types": eventTypeTable,
  "event fields": eventFieldTable,
  "bounce categories": categoryTable,
  "bounce classifications": classificationTable,
  "simulator recipients": simulatorTable,
  "feedback loops": feedbackLoopList,
  errors: errorTable,
  "rate buckets": rateTableText,
  "account limits": accountLimitTable,
  "request limits": requestLimitTable,
  "shaping groups": shapingTable,
  "warm-up caps": warmupTable,
  blocklists: blocklistTable,
  "doctor checks": checkTable,
  metrics: metricTable,
  scopes: scopeTable,
  endpoints: endpointTable,
  commands: commandTable,
  "command reference": commandReference,
  "exit codes": exitCodeTable,
  environment: environmentTable,
  filters: filterTable,
};

export const tableNames: readonly string[] = Object.keys(tables);
const marked = /<!-- generated: ([^>]+) -->\n[^]*?<!-- end of \1 -->/g;

/** The names of the tables that a page has places for. */
export function tablesIn(text: string): string[] {
  return [...text.matchAll(marked)].map((match) => match[1] ?? "");
}

/** A page with every table regenerated. Throws for a mark that names no table. */
export async function generated(text: string): Promise<string> {
  const written = new Map<string, string>();
  for (const name of tablesIn(text)) {
    const make = tables[name];
    if (make === undefined)
      throw new Error(`there is no table "${name}"; there are ${tableNames.join(", ")}`);
    written.set(name, await make());
  }
  return text.replace(
    marked,
    (_, name: string) =>
      `<!-- generated: ${name} -->\n\n${written.get(name) ?? ""}\n\n<!-- end of ${name} -->`,
  );
}

/** cli/route-flags.ts, whose program has no schemas of the API. */
export const flagFile = join(import.meta.dirname, "../src/cli/route-flags.ts");

export async function flagText(): Promise<string> {
  const flags = Object.fromEntries(
    routes()
      .map(({ method, path, body }) => [`${method} ${path}`, flagsOf(body)] as const)
      .filter(([route, own]) => own.length > 0 || route.startsWith("PATCH ")),
  );
  const text = `// Written by \`npm run docs\` of the notes at fields of the API (http/flags.ts): the flags that set them, by route. Each
// PATCH is here, so that the command that calls it has the flag of a field that is noted later.
import type { Flag } from "./verbs.ts";

export const routeFlags = ${JSON.stringify(flags, null, 2)} as const satisfies Record<string, readonly Flag[]>;
`;
  return format(text, { ...(await resolveConfig(flagFile)), filepath: flagFile });
}

if (process.argv[1] === import.meta.filename) {
  writeFileSync(flagFile, await flagText());
  for (const page of pages) {
    const file = pageFile(page);
    writeFileSync(file, await generated(readFileSync(file, "utf8")));
  }
}
