// What every command gets: the world, its output, the daemon, and the ways to ask a person.
// And the shapes that recur on the command line.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline/promises";
import { Readable, Writable } from "node:stream";
import type { Command } from "commander";
import type { Client } from "./client.ts";
import type { DaemonModule } from "./daemon-contract.ts";
import { CliFault, usage } from "./fault.ts";
import type { Io } from "./io.ts";
import type { Output } from "./output.ts";

export interface Globals {
  json: boolean;
  account: string | undefined;
  socket: string | undefined;
  url: string | undefined;
  apiKeyFile: string | undefined;
  as: string | undefined;
}

export interface Cli {
  io: Io;
  /** As the person calls this program: `svc`, `bin/svc`. For advice. */
  program: string;
  version: string;
  readonly globals: Globals;
  readonly out: Output;
  readonly client: Client;
  loadDaemon: () => Promise<DaemonModule>;
}

/** One noun: its commands are added to `command`; `cli` is complete once an action runs. */
export type Register = (command: Command, cli: Cli) => void;

/** A repeated option that takes commas too; commas in double quotes stand. */
export function listed(value: string, before: string[] = []): string[] {
  const parts = value.match(/(?:"(?:\\.|[^"\\])*"|[^,"])+/g) ?? [];
  return [...before, ...parts.map((part) => part.trim()).filter((part) => part !== "")];
}

/** A repeated option whose value stands as it is. */
export function repeated(value: string, before: string[] = []): string[] {
  return [...before, value];
}

/** An id or name as a part of a path. */
export function segment(text: string): string {
  return encodeURIComponent(text);
}

export function readInputFile(path: string, flag: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const why =
      error instanceof Error && "code" in error && error.code === "ENOENT"
        ? "there is no such file"
        : "it cannot be read";
    throw usage(`${flag}: found ${path}, but ${why}`);
  }
}

/** Standard input to its end, of at most `most` bytes. */
export async function readStandardInput(io: Io, most: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of io.stdin.bytes) {
    size += chunk.length;
    if (size > most) throw new CliFault(1, `standard input is larger than ${most} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

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
  const prompt = createInterface({ input: Readable.from(cli.io.stdin.bytes), output });
  try {
    return await prompt.question(question);
  } finally {
    prompt.close();
  }
}
