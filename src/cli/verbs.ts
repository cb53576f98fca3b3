// Verbs that only call a route, as data: the route, what of the command line becomes its body, and what is printed of its
// answer. The arguments are the parameters of the route's path, then the members of its body that `takes` names. A verb that
// does more is written by hand in its noun's file. test/cli/verbs.test.ts checks each against the routes of the API.
import { Option, type Command } from "commander";
import { agree, agreeByName } from "./ask.ts";
import { segment, type Cli } from "./cli.ts";
import type { Answer } from "./client.ts";
import { usage } from "./fault.ts";
import { withExample } from "./help-example.ts";
import { addListOptions, printList, type ListFlags } from "./lists.ts";
import type { Column } from "./output.ts";

export interface Flag {
  /** `--events <types>` */
  flag: string;
  about: string;
  /** The member of the body that it sets. */
  member: string;
  required?: true;
  /** Joins a repeated option. */
  collect?: (text: string, before?: string[]) => string[];
  /** The member's value of what was written. */
  read?: (text: string, cli: Cli) => unknown;
  /** The same of a repeated option: of all its texts. */
  readAll?: (texts: string[]) => unknown;
}

export interface Call {
  name: string;
  about: string;
  /** A command line without `svc`, for its help. */
  example?: string;
  route: `${"GET" | "POST" | "PATCH" | "DELETE"} /v1/${string}`;
  /** Members of the body that are arguments. */
  takes?: readonly string[];
  flags?: readonly Flag[];
  /** Members of the body that are always the same. */
  body?: Readonly<Record<string, unknown>>;
  /** Asked first, unless --yes is given; of the first argument. */
  question?: (first: string) => string;
  /** The same for what cannot be undone: the first argument is typed, or given with --confirm. */
  irreversible?: (first: string) => string;
  /** Prints the answer for a person; under --json the answer's own text is printed. */
  show: (cli: Cli, answer: Answer, first: string) => void;
}

export interface List {
  name: string;
  about: string;
  example?: string;
  /** The path of the GET that lists. */
  lists: `/v1/${string}`;
  columns: readonly Column[];
  /** Said where there is nothing; of the program's name. */
  empty: (program: string) => string;
}

export type Verb = Call | List;

export function addVerbs(noun: Command, cli: Cli, verbs: readonly Verb[]): void {
  for (const verb of verbs)
    if ("lists" in verb) addList(noun, cli, verb);
    else addCall(noun, cli, verb);
}

function addList(noun: Command, cli: Cli, { name, about, example, lists, columns, empty }: List): void {
  const command = addListOptions(noun.command(name).description(about), false);
  if (example !== undefined) withExample(command, example);
  command.action((flags: ListFlags) =>
    printList(cli, flags, { path: lists, columns: [...columns], empty: empty(cli.program) }),
  );
}

function addCall(noun: Command, cli: Cli, verb: Call): void {
  const [method = "", path = ""] = verb.route.split(" ");
  const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const { takes = [], question, irreversible } = verb;
  const names = [...parameters, ...takes];
  const command = noun
    .command([verb.name, ...names.map((name) => `<${name}>`)].join(" "))
    .description(verb.about);
  const flags = (verb.flags ?? []).map((flag) => ({ ...flag, option: addFlag(command, flag) }));
  if (question) command.option("--yes", "skip the prompt");
  if (irreversible) command.option(`--confirm <${names[0]}>`, "act without a prompt");

  if (verb.example !== undefined) withExample(command, verb.example);
  const hasBody = verb.body !== undefined || takes.length > 0 || flags.length > 0;

  command.action(async (...given: unknown[]) => {
    const texts = given.slice(0, names.length).map(String);
    const options = given[names.length] as Record<string, unknown>;
    const [first = ""] = texts;
    const body = {
      ...verb.body,
      ...Object.fromEntries(takes.map((name, i) => [name, texts[parameters.length + i]])),
      ...bodyOf(cli, flags, options),
    };
    if (method === "PATCH" && Object.keys(body).length === 0)
      throw usage(`nothing to change: give ${orFlags(flags)}`);
    if (question) await agree(cli, question(first), options["yes"] === true);
    if (irreversible)
      await agreeByName(cli, irreversible(first), first, options["confirm"] as string | undefined);
    const filled = parameters.reduce(
      (text, name, i) => text.replace(`{${name}}`, segment(texts[i] ?? "")),
      path,
    );
    const answer = await cli.client.call(method, filled, hasBody ? { body } : {});
    if (cli.out.json && answer.text !== "") cli.out.body(answer.text);
    else verb.show(cli, answer, first);
  });
}

function addFlag(command: Command, { flag, about, required, collect }: Flag): Option {
  const option = new Option(flag, about).makeOptionMandatory(required === true);
  if (collect) option.argParser<string[]>(collect);
  command.addOption(option);
  return option;
}

function bodyOf(
  cli: Cli,
  flags: readonly (Flag & { option: Option })[],
  options: Record<string, unknown>,
): Record<string, unknown> {
  return Object.fromEntries(
    flags.flatMap(({ member, option, read, readAll }): [string, unknown][] => {
      const value = options[option.attributeName()];
      if (value === undefined) return [];
      if (readAll && Array.isArray(value)) return [[member, readAll(value as string[])]];
      return [[member, read && typeof value === "string" ? read(value, cli) : value]];
    }),
  );
}

/** `--description, --default or --no-default` */
function orFlags(flags: readonly Flag[]): string {
  const names = flags.map(({ flag }) => flag.split(" ")[0] ?? "");
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}

/** Every field of the answer, one a line. */
export function showFields(cli: Cli, { json }: Answer): void {
  cli.out.fields(Object.entries(json));
}

export function showStatus(cli: Cli, { json }: Answer, first: string): void {
  cli.out.line(`${first} is ${String(json["status"])}`);
}

export function showDeleted(cli: Cli, _answer: Answer, first: string): void {
  cli.out.note(`${first} is deleted`);
}
