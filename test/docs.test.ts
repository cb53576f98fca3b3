// README.md, docs/ and ARCHITECTURE.md are held to the code: what they list is what there is, and nothing is left out.
// The tables that docs/generate.ts writes are compared as a whole. Shell blocks are run by test/e2e/docs.test.ts.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { flagFile, flagText, generated, pages, tableNames, tablesIn } from "../docs/generate.ts";
import { exitCodes } from "../src/cli/fault.ts";
import { nouns } from "../src/cli/program.ts";
import { faultText, loadConfig } from "../src/config.ts";
import { notYet, optionPaths } from "../src/config/options.ts";
import { shapingFaults } from "../src/config/shaping-file.ts";
import { errorCatalog } from "../src/errors.ts";
import { bounceCategories } from "../src/model/classification.ts";
import { Refusal } from "../src/errors.ts";
import { readOptions } from "../src/submission/mail-options.ts";
import { messageFields } from "../src/submission/shape.ts";
import { signatureHeaders } from "../src/webhooks/signature.ts";
import { documentedVerify } from "./support/documented-world.ts";
import {
  anchorsOf,
  blocksOf,
  docs,
  docsPage,
  linksOf,
  readme,
  section,
  type Block,
} from "./support/pages.ts";

const root = join(import.meta.dirname, "..");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
  files: string[];
};
const firstCells = (text: string): string[] =>
  [...text.matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1] ?? "");
/** `a` and `b` of a row that begins with "| `a`, `b` |". */
const namesInFirstCells = (text: string): string[] =>
  [...text.matchAll(/^\| (`[^|]+`) \|/gm)].flatMap(([, cell = ""]) =>
    [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? ""),
  );

test.each(docs)("the tables of $file are what the code says (npm run docs writes them)", async ({ text }) => {
  expect(await generated(text)).toBe(text);
});

test("the flags of commands are what the fields of the API note (npm run docs writes them)", async () => {
  expect(readFileSync(flagFile, "utf8")).toBe(await flagText());
});

test("every table that can be generated stands in a page", () => {
  const used = docs.flatMap(({ text }) => tablesIn(text));
  expect(used.toSorted()).toEqual(tableNames.toSorted());
});

test("every mark of a generated table has its end", () => {
  for (const { file, text } of docs) {
    const marks = [...text.matchAll(/<!-- (?:generated: |end of )/g)];
    expect(marks.length, file).toBe(2 * tablesIn(text).length);
  }
});

test("the README links to every page, and there is no other page", () => {
  const files = pages.map((page) => `docs/${page}.md`);
  expect(docs.map(({ file }) => file)).toEqual(files.toSorted());
  const linked = linksOf(section(readme.text, "Documentation")).filter((link) => link.startsWith("docs/"));
  expect(linked).toEqual(files);
});

test("the README has two screens", () => {
  expect(readme.text.split("\n").length).toBeLessThanOrEqual(120);
});

test("the README's two commands are the first blocks, and there are scripts for them", () => {
  const [first, second] = blocksOf(readme);
  expect([first?.code, second?.code]).toEqual(["npm ci && npm run dev\n", "npm ci && npm test\n"]);
  expect(Object.keys(manifest.scripts)).toEqual(expect.arrayContaining(["dev", "test"]));
});

test("the package has the pages, to which the files that svc init writes refer", () => {
  expect(manifest.files).toContain("docs/*.md");
});

test("every relative link leads to a file that is there, and to a heading of it", () => {
  const others = ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "ARCHITECTURE.md", "DECISIONS.md"].map(
    (file) => ({ file, text: readFileSync(join(root, file), "utf8") }),
  );
  const broken = [readme, ...docs, ...others].flatMap(({ file, text }) =>
    linksOf(text)
      .filter((link) => !/^[a-z]+:/.test(link) && !leadsSomewhere(file, text, link))
      .map((link) => `${file}: ${link}`),
  );
  expect(broken).toEqual([]);
});

function leadsSomewhere(file: string, text: string, link: string): boolean {
  const [path = "", anchor] = link.split("#");
  const target = join(root, dirname(file), path);
  if (path !== "" && !existsSync(target)) return false;
  return (
    anchor === undefined || anchorsOf(path === "" ? text : readFileSync(target, "utf8")).includes(anchor)
  );
}

test("the table of options lists every option, in the order of the code, and no other", () => {
  expect(firstCells(section(docsPage("configuration"), "Options"))).toEqual(optionPaths);
});

test("what the README says is not there yet is what the configuration refuses as such", () => {
  const named = [...section(readme.text, "Not there yet").matchAll(/`([a-z_.]+)[:`]/g)].map(
    (found) => found[1],
  );
  expect(named.filter((name) => name !== "svc.yaml")).toEqual(notYet);
});

test("keys of coming versions are named nowhere among the options", () => {
  for (const key of notYet) expect(section(docsPage("configuration"), "Options")).not.toContain(`\`${key}`);
});

test("the table of commands lists every noun", () => {
  expect(
    firstCells(docsPage("commands"))
      .filter((cell) => cell.startsWith("svc "))
      .toSorted(),
  ).toEqual(nouns.map(({ name }) => `svc ${name}`).toSorted());
});

test("the exit codes are those of the code", () => {
  const listed = [...docsPage("commands").matchAll(/^\| (\d+) \|/gm)].map((match) => match[1]);
  expect(listed).toEqual(Object.keys(exitCodes));
});

test("every error code is listed under its status", () => {
  for (const [code, { status }] of Object.entries(errorCatalog)) {
    const row = docsPage("errors")
      .split("\n")
      .find((line) => line.startsWith("|") && line.includes(`\`${code}\``));
    expect(row, code).toContain(String(status));
  }
});

test("every classification of a failure stands in the row of its category", () => {
  for (const [classification, category] of Object.entries(bounceCategories)) {
    const row = section(docsPage("bounces"), "Classifications")
      .split("\n")
      .find((line) => line.startsWith(`| ${category} |`));
    expect(row, classification).toContain(`\`${classification}\``);
  }
});

test("the table of a message's fields lists every field, and no other", () => {
  const listed = namesInFirstCells(section(docsPage("sending-by-rest"), "Fields"));
  expect(listed.toSorted()).toEqual(Object.keys(messageFields).toSorted());
});

test("every X-Svc-* option that is listed is known", () => {
  const listed = namesInFirstCells(section(docsPage("sending-by-smtp"), "Options"));
  expect(listed.length).toBeGreaterThan(4);
  const unknown = listed.filter((name) => {
    try {
      readOptions(new Map([[name.toLowerCase(), "{}"]]), 0, () => ({ problems: [], extras: {}, pool: "" }));
      return false;
    } catch (error) {
      return !(error instanceof Refusal) || error.message.includes("is not an option here");
    }
  });
  expect(unknown).toEqual([]);
});

test("a field that is explained is a field of an event", () => {
  const [fields = "", notes = ""] = section(docsPage("events"), "What an event holds").split("<!-- end of");
  const known = firstCells(fields);
  expect(namesInFirstCells(notes).filter((name) => !known.includes(name))).toEqual([]);
});

const blocks = [readme, ...docs].flatMap(blocksOf);
const inLanguage = (language: string): Block[] => blocks.filter((block) => block.language === language);

test("blocks are of languages that a test looks at; plain ones show output", () => {
  const looked = ["sh", "yaml", "js", ""];
  expect(blocks.filter(({ language }) => !looked.includes(language))).toEqual([]);
});

test.each(inLanguage("yaml"))("the YAML of $file:$line is taken", ({ code }) => {
  const content: unknown = parse(code);
  if (typeof content === "object" && content !== null && "groups" in content)
    return expect(shapingFaults(content)).toEqual([]);
  const result = loadConfig({
    flags: { config: "/svc.yaml" },
    env: {},
    home: "/home/ann",
    uid: 0,
    machineName: "mail.acme.example",
    readFile: (path) => (path === "/svc.yaml" ? code : "a file\n"),
    listDir: () => [],
  });
  expect("faults" in result ? result.faults.map(faultText) : []).toEqual([]);
});

test("the function that verifies a webhook takes what is signed, and nothing else", async () => {
  const verify = await documentedVerify();
  const secret = "s".repeat(64);
  const body = Buffer.from('{"event":"message.delivered"}');
  const endpoint = { secret, previousSecret: null, previousSecretUntil: null, format: "svc" as const };
  const signed = (at: number): Record<string, string> =>
    Object.fromEntries(
      Object.entries(signatureHeaders(endpoint, { id: "evt_1", body }, at)).map(([name, value]) => [
        name.toLowerCase(),
        value,
      ]),
    );
  const now = Date.now();
  expect(verify(signed(now), body, secret)).toBe(true);
  expect(verify(signed(now), Buffer.from("{}"), secret)).toBe(false);
  expect(verify(signed(now), body, "t".repeat(64))).toBe(false);
  expect(verify(signed(now - 3_600_000), body, secret)).toBe(false);
  expect(verify({}, body, secret)).toBe(false);
});

test("ARCHITECTURE.md names every module, and none that is not there", () => {
  const architecture = readFileSync(join(import.meta.dirname, "..", "ARCHITECTURE.md"), "utf8");
  const listed = [...architecture.matchAll(/^ {2}([a-z-]+)\/ {2,}/gm)].map((match) => match[1] ?? "");
  const modules = readdirSync(join(import.meta.dirname, "../src"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .filter((name) => !existsSync(join(import.meta.dirname, "../src", `${name}.ts`))); // `config/` belongs to config.ts
  expect(listed.toSorted()).toEqual(modules.toSorted());
});

test.each(["ARCHITECTURE.md", "DECISIONS.md", "SECURITY.md"])(
  "every file that %s names is there",
  (document) => {
    const root = join(import.meta.dirname, "..");
    const text = readFileSync(join(root, document), "utf8");
    const named = [...text.matchAll(/`([a-z-]+(?:\/[a-z-]+)*\.ts)`/g)].map((match) => match[1] ?? "");
    expect(
      named.filter((file) => !existsSync(join(root, "src", file)) && !existsSync(join(root, file))),
    ).toEqual([]);
    expect(named.length).toBeGreaterThan(5);
  },
);
