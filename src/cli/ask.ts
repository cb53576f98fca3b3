// Prompts before an action that cannot be undone. Every prompt has a flag that answers it; without a terminal and
// without the flag the command fails with a usage error (exit 2) that names the flag.
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import type { Cli } from "./cli.ts";
import { CliFault, usage } from "./fault.ts";

/** Returns after `y` or with --yes, and throws CliFault otherwise. */
export async function agree(cli: Cli, question: string, yes: boolean | undefined): Promise<void> {
  if (yes) return;
  if (!cli.io.stdin.isTTY)
    throw usage(`${question} There is no terminal to confirm on.`, "Add --yes to skip the prompt.");
  const answer = await ask(cli, `${question} [y/N] `);
  if (!/^y(es)?$/i.test(answer.trim())) throw new CliFault(1, "nothing was done");
}

/** As agree, but the name of the resource must be typed or given with --confirm. */
export async function agreeByName(
  cli: Cli,
  question: string,
  name: string,
  confirmed: string | undefined,
): Promise<void> {
  if (confirmed === undefined && !cli.io.stdin.isTTY)
    throw usage(
      `${question} There is no terminal to confirm on.`,
      `Add --confirm ${name} to skip the prompt.`,
    );
  const answer = confirmed ?? (await ask(cli, `${question} Type ${name} to confirm: `));
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
