// The README is held to the code: what it lists is what there is, and nothing is left out.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exitCodes } from "../src/cli/fault.ts";
import { nouns } from "../src/cli/program.ts";
import { notYet, optionPaths } from "../src/config/options.ts";
import { errorCatalog } from "../src/errors.ts";
import { bounceCategories } from "../src/mail/classify.ts";

const readme = readFileSync(join(import.meta.dirname, "..", "README.md"), "utf8");
const section = (title: string): string => readme.split(`\n## ${title}\n`)[1]?.split("\n## ")[0] ?? "";
const firstCells = (text: string): string[] =>
  [...text.matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1] ?? "");

test("the table of options lists every option, in the order of the code, and no other", () => {
  expect(firstCells(section("Options"))).toEqual(optionPaths);
});

test("keys of coming versions are named nowhere among the options", () => {
  for (const key of notYet) expect(section("Options")).not.toContain(`\`${key}`);
});

test("the table of commands lists every noun", () => {
  expect(firstCells(section("Commands")).toSorted()).toEqual(
    nouns.map(({ name }) => `svc ${name}`).toSorted(),
  );
});

test("the exit codes are those of the code", () => {
  const listed = [...section("Commands").matchAll(/^\| (\d+) \|/gm)].map((match) => match[1]);
  expect(listed).toEqual(Object.keys(exitCodes));
});

test("every error code is listed under its status", () => {
  for (const [code, { status }] of Object.entries(errorCatalog)) {
    const row = section("Errors")
      .split("\n")
      .find((line) => line.startsWith("|") && line.includes(`\`${code}\``));
    expect(row, code).toContain(String(status));
  }
});

test("every classification of a failure stands in the row of its category", () => {
  for (const [classification, category] of Object.entries(bounceCategories)) {
    const row = section("Events")
      .split("\n")
      .find((line) => line.startsWith(`| ${category} |`));
    expect(row, classification).toContain(`\`${classification}\``);
  }
});

test("ARCHITECTURE.md names every room, and none that is not there", () => {
  const architecture = readFileSync(join(import.meta.dirname, "..", "ARCHITECTURE.md"), "utf8");
  const listed = [...architecture.matchAll(/^ {2}([a-z]+)\/ {2,}/gm)].map((match) => match[1] ?? "");
  const rooms = readdirSync(join(import.meta.dirname, "../src"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .filter((name) => !existsSync(join(import.meta.dirname, "../src", `${name}.ts`))); // `config/` belongs to config.ts
  expect(listed.toSorted()).toEqual(rooms.toSorted());
});

test("every file that ARCHITECTURE.md names is there", () => {
  const architecture = readFileSync(join(import.meta.dirname, "..", "ARCHITECTURE.md"), "utf8");
  const named = [...architecture.matchAll(/`([a-z-]+(?:\/[a-z-]+)*\.ts)`/g)].map((match) => match[1] ?? "");
  const root = join(import.meta.dirname, "..");
  expect(
    named.filter((file) => !existsSync(join(root, "src", file)) && !existsSync(join(root, file))),
  ).toEqual([]);
  expect(named.length).toBeGreaterThan(20);
});
