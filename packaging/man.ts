// The manual pages svc(1) and svc.yaml(5), in man(7), made of what the program knows: its commands, as they register
// themselves, its exit codes and its options. Nothing of them is written by hand but where files are.
import type { Command } from "commander";
import { aboutOf, argumentText, defaultOf, programOf, verbsOf } from "../docs/generate.ts";
import { exitCodes } from "../src/cli/fault.ts";
import { environment, topics } from "../src/cli/topics.ts";
import { environmentName, optionPaths } from "../src/config/options.ts";

/** Text as it stands, whatever of it troff would obey; hyphens that can be copied. */
function plain(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll(/`([^`]*)`/g, "$1")
    .replaceAll(/^(?=[.'])/gm, "\\&")
    .replaceAll(
      /[^\n -~]/gu,
      (letter) => `\\[u${(letter.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}]`,
    );
}

const bold = (text: string): string => `\\fB${plain(text)}\\fR`;
const item = (head: string, text: string): string => `.TP\n${head}\n${plain(text)}`;

function page(name: string, section: number, version: string, parts: readonly string[]): string {
  return [`.TH ${name} ${section} "" "svc ${version}" "svc"`, ...parts, ""].join("\n");
}

/** `globals`: the options of every command, as `svc --help` lists them. */
export async function commandsPage(version: string, help: string): Promise<string> {
  const nouns = await programOf();
  return page("SVC", 1, version, [
    ".SH NAME",
    "svc \\- self\\-hostable email delivery appliance",
    ".SH SYNOPSIS",
    "\\fBsvc\\fR \\fInoun\\fR [\\fIverb\\fR] [\\fIoption\\fR ...]",
    ".SH DESCRIPTION",
    plain(
      "Mail comes in by REST and SMTP and goes out to the receiving servers; outcomes are events. The command line reaches the running server over its admin socket.",
    ),
    ".SH OPTIONS",
    ".nf",
    plain(globalOptions(help)),
    ".fi",
    ".SH COMMANDS",
    ...nouns.flatMap(nounText),
    ".SH TOPICS",
    ...Object.entries(topics).map(([name, about]) => item(bold(`svc help ${name}`), about)),
    ".SH ENVIRONMENT",
    ...environment.map(([name, meaning]) => item(bold(name), meaning)),
    ".SH EXIT STATUS",
    ...Object.entries(exitCodes).map(([code, meaning]) => item(bold(code), meaning)),
    ".SH FILES",
    item("\\fI/etc/svc/svc.yaml\\fR", "the configuration: svc.yaml(5)"),
    item("\\fI/var/lib/svc\\fR", "database, content, keys and certificates"),
    item("\\fI/run/svc/admin.sock\\fR", "the admin socket, open to root and the group svc"),
    item("\\fI/var/backups/svc\\fR", "backups"),
    item("\\fI/usr/share/doc/svc\\-mail/docs\\fR", "the documentation"),
    ".SH SEE ALSO",
    "\\fBsvc.yaml\\fR(5)",
  ]);
}

/** Between "Options:" and the next heading. */
function globalOptions(help: string): string {
  const [, options = ""] = /^Options:\n((?: .*\n)+)/m.exec(help) ?? [];
  if (options === "") throw new Error("svc --help has no list of options");
  return options.trimEnd();
}

function nounText(noun: Command): string[] {
  const verbs = verbsOf(noun);
  const name = `svc ${noun.name()}`;
  const commands =
    verbs.length === 0
      ? [{ call: name, command: noun }]
      : verbs.map(({ words, command }) => ({ call: [name, ...words].join(" "), command }));
  return commands.flatMap(({ call, command }) => {
    const usage = [call, ...command.registeredArguments.map(argumentText)].join(" ");
    return [
      `.SS ${plain(usage)}`,
      plain(command.description()),
      ...command.options.map((option) => item(bold(option.flags), option.description)),
    ];
  });
}

export function configurationPage(version: string): string {
  return page("SVC.YAML", 5, version, [
    ".SH NAME",
    "svc.yaml \\- configuration of svc",
    ".SH DESCRIPTION",
    plain(
      "YAML. Every option has a default: a file with only hostname runs. The options stand in sections: outbound.max_age is max_age in the section outbound. In order of precedence: the command line, the environment, the user's file, /etc/svc/conf.d/*.yaml, /etc/svc/svc.yaml. The command svc config check lists every fault with its line.",
    ),
    ".SH OPTIONS",
    ...optionPaths.flatMap((path) => [
      `.TP\n${bold(path)}`,
      plain(`${aboutOf(path)}.`),
      `Default: ${plain(String(defaultOf(path)) || "none")}. In the environment: ${plain(environmentName(path))}.`,
    ]),
    ".SH SEE ALSO",
    "\\fBsvc\\fR(1)",
  ]);
}
