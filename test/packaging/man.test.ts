// The manual pages that the Debian package installs: they name all that the program knows, and troff takes them.
import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { commandsPage, configurationPage } from "../../packaging/man.ts";
import { nouns } from "../../src/cli/program.ts";
import { optionPaths } from "../../src/config/options.ts";

const help =
  "Usage: svc\n\nOptions:\n  --json      print the API's own bodies\n  -h, --help  help\n\nMore:\n  x\n";
const pages = { "svc.1": await commandsPage("1.2.3", help), "svc.yaml.5": configurationPage("1.2.3") };
const troff = spawnSync("groff", ["--version"]).status === 0;

test("every noun, the options of every command and every exit code stand in svc(1)", () => {
  const page = pages["svc.1"];
  for (const { name } of nouns)
    expect(page).toMatch(new RegExp(`^\\.SS svc ${name.replaceAll("-", "\\\\-")}`, "m"));
  expect(page).toContain("\n  \\-\\-json      print the API's own bodies\n");
  expect(page).toContain("\\fB\\-\\-without\\-content\\fR");
  expect(page).toContain(".TP\n\\fB78\\fR\n");
});

test("every option stands in svc.yaml(5), with its default and its variable", () => {
  const page = pages["svc.yaml.5"];
  for (const path of optionPaths) expect(page).toContain(`.TP\n\\fB${path}\\fR\n`);
  expect(page).toContain("Default: 7. In the environment: SVC_BACKUP_KEEP.");
});

test.runIf(troff).each(Object.entries(pages))(
  "troff has no warning of %s, and nothing of it is lost",
  (_name, page) => {
    const { stdout, stderr } = spawnSync("groff", ["-man", "-ww", "-Tutf8", "-P-c"], {
      input: page,
      encoding: "utf8",
    });
    expect(stderr).toBe("");
    expect(stdout).toContain("svc 1.2.3");
  },
);
