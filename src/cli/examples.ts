// The client programs that come with the package, in its examples/ folder, as `svc help api` shows them: what languages
// there are, and the files of one. examples/README.md describes them.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { examplesFolder } from "./package-files.ts";

export function exampleLanguages(): string[] {
  return readdirSync(examplesFolder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .toSorted();
}

/** Name and text of each file, those that the others need first. */
export function examplesOf(language: string): { name: string; text: string }[] {
  const folder = join(examplesFolder, language);
  const shared = (name: string): number => (/^(?:svc|client)\./.test(name) ? 0 : 1);
  return readdirSync(folder)
    .toSorted((a, b) => shared(a) - shared(b) || (a < b ? -1 : 1))
    .map((name) => ({ name, text: readFileSync(join(folder, name), "utf8") }));
}
