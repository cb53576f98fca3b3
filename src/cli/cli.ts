// What every command gets: the world, its output, the daemon. And the shapes that recur on the command line.
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import type { Client } from "./client.ts";
import type { DaemonModule } from "./daemon-contract.ts";
import { CliFault, usage } from "./fault.ts";
import type { Io } from "./io.ts";
import type { Output } from "./output.ts";
import { sizeText } from "./text.ts";

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
        ? "the file does not exist"
        : "it cannot be read";
    throw usage(`${flag}: found ${path}, but ${why}`);
  }
}

/** Standard input to its end, of at most `most` bytes. */
export async function readStandardInput(io: Io, most: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of io.stdin.stream as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > most) throw new CliFault(1, `standard input is larger than ${sizeText(most)}`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
