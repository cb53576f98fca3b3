// Puts a table between its marks in bench/README.md.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export function intoReadme(mark: string, text: string): void {
  const file = join(import.meta.dirname, "README.md");
  const between = new RegExp(`(<!-- ${mark} -->\n)[^]*(<!-- end of ${mark} -->)`);
  const put = (_: string, from: string, to: string): string => `${from}\n${text.trimEnd()}\n\n${to}`;
  writeFileSync(file, readFileSync(file, "utf8").replace(between, put));
}
