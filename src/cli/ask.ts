// Asking a person before what cannot be undone. Nothing needs a prompt: every question has a flag that
// answers it, and without a terminal and without the flag the command ends with usage (exit 2) that names it.
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import type { Cli } from "./cli.ts";
import { CliFault, usage } from "./fault.ts";

/** Goes on after `y`; without a terminal only with --yes. */
export async function agree(cli: Cli, question: string, yes: boolean | undefined): Promise<void> {
  if (yes) return;
  if (!cli.io.stdin.isTTY)
    throw usage(`${question} Nobody is there to ask.`, "Add --yes to go on without being asked.");
  const answer = await ask(cli, `${question} [y/N] `);
  if (!/^y(es)?$/i.test(answer.trim())) throw new CliFault(1, "nothing was done");
}

/** For what cannot be undone: the name is typed, or given with --confirm. */
export async function agreeByName(
  cli: Cli,
  question: string,
  name: string,
  confirmed: string | undefined,
): Promise<void> {
  if (confirmed === undefined && !cli.io.stdin.isTTY)
    throw usage(`${question} Nobody is there to ask.`, `Add --confirm ${name} to go on without being asked.`);
  const answer = confirmed ?? (await ask(cli, `${question} Type ${name} to go on: `));
  if (answer.trim() !== name) throw usage(`found "${answer.trim()}", expected ${name}; nothing was done`);
}

async function ask(cli: Cli, question: string): Promise<string> {
  const output = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      cli.io.stderr.write(chunk);
      done();
    },
  });
  const prompt = createInterface({ input: cli.io.stdin.stream, output });
  try {
    const closed = new Promise<string>((resolve) => void prompt.once("close", () => resolve(""))); // Ctrl-D
    return await Promise.race([prompt.question(question), closed]);
  } finally {
    prompt.close();
  }
}
