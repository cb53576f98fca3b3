// README.md and the pages of docs/ as tests read them: their text, headings, links and code blocks.
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

const root = join(import.meta.dirname, "../..");

export interface Page {
  /** From the root of the repository: `docs/events.md`. */
  file: string;
  text: string;
}

export const readme: Page = pageOf(join(root, "README.md"));
export const docs: readonly Page[] = readdirSync(join(root, "docs"))
  .filter((name) => name.endsWith(".md"))
  .toSorted()
  .map((name) => pageOf(join(root, "docs", name)));

function pageOf(path: string): Page {
  return { file: relative(root, path), text: readFileSync(path, "utf8") };
}

/** The text of `docs/<name>.md`. */
export function docsPage(name: string): string {
  const page = docs.find(({ file }) => file === `docs/${name}.md`);
  if (!page) throw new Error(`there is no page docs/${name}.md`);
  return page.text;
}

/** What stands below a heading of the second level, to the next one. */
export function section(text: string, title: string): string {
  return text.split(`\n## ${title}\n`)[1]?.split("\n## ")[0] ?? "";
}

export interface Block {
  file: string;
  /** Where its fence stands, from 1. */
  line: number;
  language: string;
  /** What stands behind the language: how the tests are to take it. */
  note: string;
  code: string;
}

/** The fenced code blocks of a page. Throws for a fence that is not closed. */
export function blocksOf({ file, text }: Page): Block[] {
  const blocks: Block[] = [];
  let open: Block | null = null;
  for (const [index, line] of text.split("\n").entries()) {
    const fence = /^```(\S*) ?(.*)$/.exec(line);
    if (open === null && fence) {
      open = { file, line: index + 1, language: fence[1] ?? "", note: fence[2] ?? "", code: "" };
    } else if (open !== null && line === "```") {
      blocks.push(open);
      open = null;
    } else if (open !== null) open.code += `${line}\n`;
  }
  if (open !== null) throw new Error(`${file}:${open.line}: the block has no end`);
  return blocks;
}

/** The text without its code blocks. */
function prose(text: string): string {
  return text.replaceAll(/^```[^]*?^```$/gm, "");
}

/** The anchors of a page's headings, as GitHub makes them. */
export function anchorsOf(text: string): string[] {
  const seen = new Map<string, number>();
  return [...prose(text).matchAll(/^#{1,6} (.*)$/gm)].map(([, title = ""]) => {
    const slug = title
      .toLowerCase()
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, "")
      .replaceAll(" ", "-");
    const times = seen.get(slug) ?? 0;
    seen.set(slug, times + 1);
    return times === 0 ? slug : `${slug}-${times}`;
  });
}

/** The targets of a page's links. */
export function linksOf(text: string): string[] {
  return [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? "");
}
