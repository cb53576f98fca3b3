// `svc help [topic]`: the commands of a noun, and the exit codes.
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { exitCodes, usage } from "../fault.ts";

export function registerHelp(program: Command, cli: Cli): void {
  program
    .command("help")
    .argument("[topic]", "a noun, or exit-codes")
    .description("the commands of a noun, or exit-codes")
    .action((topic: string | undefined) => {
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
