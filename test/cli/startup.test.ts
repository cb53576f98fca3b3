// What every command pays for: the modules that are loaded before it is known which one it is.
import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
/** Files that a file imports when it is loaded; types are gone by then, and `import()` is for later. */
const statement = /^(?:import|export)\s+(?!type\b)[^;]*?from\s+"([^"]+)"/gms;

/** All that is loaded with `entry`: files of ours, and names of modules. */
function loadedWith(entry: string): { files: Set<string>; modules: Set<string> } {
  const files = new Set<string>();
  const modules = new Set<string>();
  const visit = (file: string): void => {
    if (files.has(file)) return;
    files.add(file);
    for (const [whole, from = ""] of readFileSync(file, "utf8").matchAll(statement)) {
      if (/^import\s*\{(?:\s*type\s+\w+(?:\s+as\s+\w+)?,?)+\s*\}/.test(whole)) continue;
      if (from.startsWith(".")) visit(join(dirname(file), from));
      else modules.add(from);
    }
  };
  visit(join(root, entry));
  return { files: new Set([...files].map((file) => relative(root, file))), modules };
}

const cheap = ["node:fs", "node:os", "node:path"];

test("nothing but files, paths and the system's names is loaded for every command", () => {
  const { files, modules } = loadedWith("src/cli/main.ts");
  expect(files).toContain("src/cli/client.ts");
  expect([...modules].filter((name) => !cheap.includes(name))).toEqual([]);
});

test("a command line that is read has commander too, and still no network and no cryptography", () => {
  const { modules } = loadedWith("src/cli/program.ts");
  expect([...modules].filter((name) => !cheap.includes(name))).toEqual(["commander"]);
});

test("ink is loaded by the live screen alone, and not by the command that opens it", () => {
  const drawing = ["ink", "react"];
  for (const entry of ["src/cli/main.ts", "src/cli/program.ts", "src/cli/commands/top.ts"])
    expect([...loadedWith(entry).modules].filter((name) => drawing.includes(name))).toEqual([]);
  expect([...loadedWith("src/cli/views/top.ts").modules]).toEqual(expect.arrayContaining(drawing));
});
