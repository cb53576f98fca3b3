// Examples in a command's help: command lines as they are typed.
import type { Command } from "commander";

/** `lines`: without `svc` in front. */
export function withExample(command: Command, ...lines: string[]): Command {
  const title = lines.length === 1 ? "Example:" : "Examples:";
  return command.addHelpText("after", ["", title, ...lines.map((line) => `  svc ${line}`)].join("\n"));
}
