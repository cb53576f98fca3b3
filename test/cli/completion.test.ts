// Each script in its own shell, where that is installed.
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { missingTools } from "../support/examples.ts";
import { scratch, svc } from "./world.ts";

const missing = new Map(["bash", "fish", "zsh"].map((shell) => [shell, missingTools([shell])]));
for (const [shell, why] of missing) if (why) console.warn(`SKIPPED: completion in ${shell}: ${why}`);
const installed = (shell: string): boolean => missing.get(shell) === null;

async function scriptOf(shell: string): Promise<string> {
  const { code, out } = await svc(["completion", shell]);
  expect(code).toBe(0);
  const file = join(scratch(), `svc.${shell}`);
  writeFileSync(file, out);
  return file;
}

/** What stands on stdout, a line each; stderr must be empty. */
function run(shell: string, args: string[]): string[] {
  const { stdout, stderr, status } = spawnSync(shell, args, { encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
  return stdout.trim().split("\n");
}

test.runIf(installed("bash"))("bash completes nouns, verbs of a noun or its alias, and flags", async () => {
  const file = await scriptOf("bash");
  const complete = (...words: string[]): string[] =>
    run("bash", [
      "--norc",
      "-c",
      `. "$0"; COMP_WORDS=(svc "$@"); COMP_CWORD=$#; _svc; printf '%s\\n' "\${COMPREPLY[@]}"`,
      file,
      ...words,
    ]);
  expect(complete("we")).toEqual(["webhooks"]);
  expect(complete("key", "ro")).toEqual(["rotate"]);
  expect(complete("domains", "dkim", "r")).toEqual(["rotate"]);
  expect(complete("--json", "keys", "create", "--sc")).toEqual(["--scope"]);
  expect(complete("help", "dra")).toEqual(["drain"]);
  expect(complete("domains", "show", "acme.example", "--he")).toEqual(["--help"]);
});

test.runIf(installed("fish"))("fish completes the same", async () => {
  const file = await scriptOf("fish");
  const complete = (line: string): string[] =>
    run("fish", ["--no-config", "-c", `source ${file}; complete -C '${line}'`]);
  expect(complete("svc we")).toEqual(["webhooks"]);
  expect(complete("svc key ro")).toEqual(["rotate"]);
  expect(complete("svc keys create --sc")).toEqual(["--scope"]);
});

test.runIf(installed("zsh"))("zsh reads its script and offers the same", async () => {
  const file = await scriptOf("zsh");
  const offer = (...words: string[]): string[] =>
    run("zsh", [
      "-f",
      "-c",
      `compdef() { :; }; compadd() { shift; print -l -- "$@"; }; . "$0"; words=(svc "$@"); CURRENT=$(($# + 1)); _svc`,
      file,
      ...words,
    ]);
  expect(offer("we")).toContain("webhooks");
  expect(offer("key", "ro")).toContain("rotate");
  expect(offer("keys", "create", "--sc")).toContain("--scope");
});

test("another shell is a usage error that names those there are", async () => {
  const ran = await svc(["completion", "tcsh"]);
  expect([ran.code, ran.out]).toEqual([2, ""]);
  expect(ran.err).toContain("bash, zsh, fish");
});
