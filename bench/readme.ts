// Puts tables between their marks in bench/README.md: a section, which begins with its "### name", takes the place of
// the one of the same name.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export function intoReadme(mark: string, sections: string[]): void {
  const file = join(import.meta.dirname, "README.md");
  const between = new RegExp(`(<!-- ${mark} -->)([^]*)(<!-- end of ${mark} -->)`);
  const put = (_: string, from: string, held: string, to: string): string => {
    const all = new Map(
      [...held.split(/^(?=### )/m), ...sections].flatMap((section) => {
        const name = /^### .*/.exec(section)?.[0];
        return name === undefined ? [] : [[name, section.trim()]];
      }),
    );
    return `${from}\n\n${[...all.values()].join("\n\n")}\n\n${to}`;
  };
  writeFileSync(file, readFileSync(file, "utf8").replace(between, put));
}
