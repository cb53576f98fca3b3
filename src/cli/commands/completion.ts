// `svc completion SHELL`: prints a script that completes commands and flags, made of the very definitions that --help
// shows. The script knows every command by itself and runs nothing.
import { Command } from "commander";
import type { Cli, Register } from "../cli.ts";
import { usage } from "../fault.ts";
import { topics } from "../topics.ts";

interface Loadable {
  name: string;
  alias?: string;
  about: string;
  load: () => Promise<{ register: Register }>;
}

const shells: Readonly<Record<string, (tree: Tree) => string>> = { bash, zsh, fish };

/** Words that may follow, by the words before them, each with a space in front: ` keys create`. */
type Tree = ReadonlyMap<string, readonly string[]>;

/** `nouns`: every command of the program. */
export function registerCompletion(completion: Command, cli: Cli, nouns: () => readonly Loadable[]): void {
  completion
    .argument("<shell>", Object.keys(shells).join(", "))
    .addHelpText("after", "\nbash: svc completion bash > /etc/bash_completion.d/svc")
    .action(async (shell: string) => {
      const script = Object.hasOwn(shells, shell) ? shells[shell] : undefined;
      if (!script) throw usage(`shell: found "${shell}", expected ${Object.keys(shells).join(", ")}`);
      cli.io.stdout.write(script(await treeOf(cli, nouns())));
    });
}

async function treeOf(cli: Cli, nouns: readonly Loadable[]): Promise<Tree> {
  const tree = new Map<string, string[]>();
  const add = (command: Command, path: string): void => {
    const flags = command.options.flatMap(({ long }) => long ?? []);
    tree.set(path, [...command.commands.map((one) => one.name()), ...flags, "--help"]);
    for (const one of command.commands) add(one, `${path} ${one.name()}`);
  };
  tree.set("", [...nouns.map(({ name }) => name), "help", "--json", "--help", "--version"]);
  for (const { name, alias, load } of nouns) {
    const noun = new Command(name);
    (await load()).register(noun, cli);
    for (const called of [name, ...(alias === undefined ? [] : [alias])]) add(noun, ` ${called}`);
  }
  tree.set(" help", [...nouns.map(({ name }) => name), ...Object.keys(topics)]);
  return tree;
}

const paths = (tree: Tree, between: string): string =>
  [...tree.keys()]
    .filter((path) => path !== "")
    .map((path) => `'${path}'`)
    .join(between);

function cases(tree: Tree, line: (path: string, words: string) => string): string {
  return [...tree].map(([path, words]) => line(`'${path}'`, words.join(" "))).join("\n");
}

function bash(tree: Tree): string {
  return `# bash completion of svc
_svc() {
  local path= words= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path \${COMP_WORDS[i]}" in
      ${paths(tree, "|")}) path="$path \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$path" in
${cases(tree, (path, words) => `    ${path}) words='${words}' ;;`)}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _svc svc
`;
}

function zsh(tree: Tree): string {
  return `#compdef svc
_svc() {
  local at= candidates= i
  for ((i = 2; i < CURRENT; i++)); do
    case "$at \${words[i]}" in
      ${paths(tree, "|")}) at="$at \${words[i]}" ;;
    esac
  done
  case "$at" in
${cases(tree, (path, words) => `    ${path}) candidates='${words}' ;;`)}
  esac
  compadd -- \${=candidates} || _files
}
compdef _svc svc
`;
}

function fish(tree: Tree): string {
  return `# fish completion of svc
function __svc_words
  set -l path ''
  for word in (commandline -opc)[2..-1]
    switch "$path $word"
      case ${paths(tree, " ")}
        set path "$path $word"
    end
  end
  switch "$path"
${cases(tree, (path, words) => `    case ${path}\n      string split ' ' -- '${words}'`)}
  end
end
complete -c svc -a '(__svc_words)'
`;
}
