// Runs the shell blocks of README.md and docs/ as a reader would paste them: command by command, each in the directory of
// its page, with the ids that the commands before it printed in place of `msg_…` and the like. A fence says how its block
// is to be taken: "```sh" is run and has to succeed; "```sh runs on" is run until it has printed something and then
// interrupted; "```sh not run: <reason>" cannot be run by a test.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Block } from "./pages.ts";

/** Why a block is not run; null: it is. Throws for a note that means nothing. */
export function notRunReason({ file, line, note }: Block): string | null {
  if (note === "" || note === "runs on") return null;
  const reason = /^not run: (.+)$/.exec(note)?.[1];
  if (reason === undefined) throw new Error(`${file}:${line}: "${note}" does not say how to take the block`);
  return reason;
}

/** The commands of a block, those of several lines whole. Throws where the last one has no end. */
export function commandsOf({ file, line, code }: Block): string[] {
  const commands: string[] = [];
  let open = "";
  for (const text of code.split("\n")) {
    open += `${text}\n`;
    if (!isWhole(open)) continue;
    if (open.replaceAll(/^\s*#.*$/gm, "").trim() !== "") commands.push(open.trim());
    open = "";
  }
  if (open.trim() !== "") throw new Error(`${file}:${line}: the last command has no end: ${open}`);
  return commands;
}

function isWhole(text: string): boolean {
  if (text.endsWith("\\\n")) return false;
  const here = /<<'?(\w+)'?/.exec(text)?.[1];
  if (here !== undefined && !text.endsWith(`\n${here}\n`)) return false;
  return spawnSync("sh", ["-n", "-c", text]).status === 0;
}

export interface Reader {
  cwd: string;
  env: Record<string, string>;
  /** What the page's text stands for here, beside ids: what is replaced, in order. */
  standsFor: [text: string | RegExp, value: string][];
}

/** A reader who goes through a page and keeps what was printed. */
export function createWalk(reader: Reader) {
  const ids = new Map<string, string>();
  /** `msg_…`: the last one that was printed. `smtp_…` is a login's name. */
  const filledIn = (command: string): string => {
    let text = command;
    for (const [what, value] of reader.standsFor) text = text.replaceAll(what, value);
    return text.replaceAll(/\b([a-z]+)_…/g, (placeholder, prefix: string) => ids.get(prefix) ?? placeholder);
  };
  const notice = (printed: string): void => {
    for (const [id, prefix = ""] of printed.matchAll(/\b([a-z]+)_[0-9a-z]{26}(?:_test)?\b/g))
      ids.set(prefix, id);
  };
  const start = (command: string): { child: ChildProcess; printed(): string } => {
    const text = filledIn(command);
    if (text.includes("…")) throw new Error(`nothing stands for the … of: ${text}`);
    const child = spawn("sh", ["-e", "-c", text], {
      cwd: reader.cwd,
      env: { ...process.env, ...reader.env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true, // a group of its own, as at a terminal, so that it can be interrupted as a whole
    });
    let printed = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => (printed += chunk.toString()));
    return { child, printed: () => printed };
  };
  return {
    /** Runs a command to its end. Throws with what it printed where that is no success. */
    async run(command: string): Promise<string> {
      const { child, printed } = start(command);
      const [code] = (await once(child, "close")) as [number | null];
      notice(printed());
      if (code !== 0) throw new Error(`exit ${code} of: ${filledIn(command)}\n${printed()}`);
      return printed();
    },
    /** Runs a command until `seen` holds of what it printed, and interrupts it. Throws where that is no orderly end. */
    async runUntil(command: string, seen: (printed: string) => Promise<void>): Promise<void> {
      const { child, printed } = start(command);
      const closed = once(child, "close");
      try {
        while (printed() === "" && child.exitCode === null) await seen(printed());
      } finally {
        if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, "SIGINT");
      }
      await closed;
      const code = child.exitCode ?? (child.signalCode === "SIGINT" ? 130 : -1);
      if (code !== 0 && code !== 130) throw new Error(`exit ${code} of: ${filledIn(command)}\n${printed()}`);
    },
  };
}
