// `svc help [topic]`: the commands of a noun, the exit codes, and clients of the API to copy.
import { join } from "node:path";
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { exampleLanguages, examplesFolder, examplesOf } from "../examples.ts";
import { exitCodes, usage } from "../fault.ts";

export function registerHelp(program: Command, cli: Cli): void {
  program
    .command("help")
    .argument("[topic]", "a noun, exit-codes, or api")
    .argument("[language]", "after api: the language of the clients to show")
    .description("the commands of a noun, exit-codes, or api: clients to copy")
    .action((topic: string | undefined, language: string | undefined) => {
      if (topic === "api") return language === undefined ? listClients(cli) : showClients(cli, language);
      if (language !== undefined) throw usage(`found "${language}" after the topic`, `${cli.program} help`);
      if (topic === undefined) return void cli.io.stdout.write(program.helpInformation());
      if (topic === "exit-codes") {
        for (const [code, meaning] of Object.entries(exitCodes))
          cli.out.line(`${code.padStart(3)}  ${meaning}`);
        return undefined;
      }
      const noun = program.commands.find(
        (command) => command.name() === topic || command.aliases().includes(topic),
      );
      if (!noun) throw usage(`found no help on "${topic}"`, `${cli.program} help lists what there is`);
      return void cli.io.stdout.write(noun.helpInformation());
    });
}

const surroundings = `They read the environment:
  SVC_BASE_URL        the server, without a slash at the end: the public_url of its svc.yaml,
                      https://mail.acme.example say; serve --dev prints its own
  SVC_API_KEY         a key of the scope send, for events of the scope reporting
  SVC_CA_FILE         the certificate of a server that made its own: <data-dir>/tls/cert.pem
  SVC_WEBHOOK_SECRET  the secret that webhooks create shows once`;

function listClients(cli: Cli): void {
  cli.out.line(
    "Clients to copy: send a message, page through the events, receive webhooks. Nothing but the language's own library.",
  );
  for (const language of exampleLanguages()) {
    const names = examplesOf(language).map(({ name }) => name);
    cli.out.line(`  ${language.padEnd(8)}${names.join(", ")}`);
  }
  cli.io.stdout.write(`\n${surroundings}\n`);
  cli.out.next(`${cli.program} help api node   # or copy them from ${examplesFolder}`);
}

function showClients(cli: Cli, language: string): void {
  const languages = exampleLanguages();
  if (!languages.includes(language))
    throw usage(`found no client in "${language}"`, `there is one in ${languages.join(", ")}`);
  for (const { name, text } of examplesOf(language))
    cli.io.stdout.write(`==> ${language}/${name} <==\n${text}\n`);
  cli.out.note(surroundings);
  cli.out.next(`cp -r ${join(examplesFolder, language)} .`);
}
