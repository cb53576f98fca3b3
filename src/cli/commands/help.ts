// `svc help [topic]`: the commands of a noun, the topics (topics.ts), and example clients of the API.
import { join } from "node:path";
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { exampleLanguages, examplesOf } from "../examples.ts";
import { usage, type CliFault } from "../fault.ts";
import { renderMarkdown } from "../markdown.ts";
import { nearest } from "../nearest.ts";
import { coloured } from "../output.ts";
import { examplesFolder } from "../package-files.ts";
import { isTopic, topics, topicText, type Loadable } from "../topics.ts";
import { orList } from "../../word-list.ts";

export function registerHelp(program: Command, cli: Cli, nouns: () => readonly Loadable[]): void {
  program
    .command("help")
    .argument("[topic]", `a noun, or ${orList(Object.keys(topics))}`)
    .argument("[verb]", "a verb of the noun; after api: a language")
    .description("show the commands of a noun, or explain a topic")
    .helpGroup("Learn more:")
    .action(async (topic: string | undefined, word: string | undefined) => {
      if (topic === undefined) return program.outputHelp();
      if (topic === "api") return word === undefined ? listClients(cli) : showClients(cli, word);
      if (isTopic(topic)) return explain(cli, await topicText(topic, nouns));
      const noun = commandOf(program, topic);
      if (!noun) throw unknownCommand(cli, topic, program, "help", Object.keys(topics));
      if (word === undefined) return noun.outputHelp();
      const verb = commandOf(noun, word);
      if (!verb) throw unknownCommand(cli, word, noun, `help ${noun.name()}`);
      return verb.outputHelp();
    });
  program.addHelpText(
    "after",
    [
      "",
      "Topics (svc help TOPIC):",
      ...Object.entries(topics).map(([name, about]) => `  ${name.padEnd(13)}${about}`),
    ].join("\n"),
  );
}

function explain(cli: Cli, markdown: string): void {
  const { stdout, env } = cli.io;
  const bold = (text: string): string => (coloured(stdout, env) ? `\x1b[1m${text}\x1b[0m` : text);
  stdout.write(renderMarkdown(markdown, { columns: stdout.columns, bold }));
}

/** All names and aliases of the commands of a command. */
export function namesOf(parent: Command): string[] {
  return parent.commands.flatMap((command) => [command.name(), ...command.aliases()]);
}

/** The fault of an unknown command, with the nearest known one; `list` is the command that lists them. */
export function unknownCommand(
  cli: Cli,
  word: string,
  parent: Command,
  list: string,
  more: string[] = [],
): CliFault {
  const place = parent.parent === null ? "" : `${parent.name()} `;
  const near = nearest(word, [...namesOf(parent), ...more]);
  return usage(
    `unknown command "${place}${word}"`,
    ...(near === null ? [] : [`Did you mean "${place}${near}"?`]),
    `List the commands: ${cli.program} ${list}`,
  );
}

function commandOf(parent: Command, name: string): Command | undefined {
  return parent.commands.find((command) => command.name() === name || command.aliases().includes(name));
}

const environmentHelp = `They read the environment:
  SVC_BASE_URL        the server, without a slash at the end: the public_url of its svc.yaml, such as
                      https://mail.acme.example; serve --dev prints its own
  SVC_API_KEY         a key of the scope send, for events of the scope reporting
  SVC_CA_FILE         the certificate of a server with a self-signed one: <data-dir>/tls/cert.pem
  SVC_WEBHOOK_SECRET  the secret that webhooks create shows once`;

function listClients(cli: Cli): void {
  cli.out.line(
    "Example clients: send a message, page through the events, receive webhooks. They use only the language's standard library.",
  );
  for (const language of exampleLanguages()) {
    const names = examplesOf(language).map(({ name }) => name);
    cli.out.line(`  ${language.padEnd(8)}${names.join(", ")}`);
  }
  cli.io.stdout.write(`\n${environmentHelp}\n`);
  cli.out.next(`${cli.program} help api node   # or copy them from ${examplesFolder}`);
}

function showClients(cli: Cli, language: string): void {
  const languages = exampleLanguages();
  if (!languages.includes(language))
    throw usage(`found no example client in "${language}"`, `there is one in ${languages.join(", ")}`);
  for (const { name, text } of examplesOf(language))
    cli.io.stdout.write(`==> ${language}/${name} <==\n${text}\n`);
  cli.out.note(environmentHelp);
  cli.out.next(`cp -r ${join(examplesFolder, language)} .`);
}
