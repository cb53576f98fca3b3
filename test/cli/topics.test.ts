// `svc help TOPIC`: each topic is there, fits the terminal, and says what the code does.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { exitCodes } from "../../src/cli/fault.ts";
import { renderMarkdown } from "../../src/cli/markdown.ts";
import { widthOf } from "../../src/cli/text.ts";
import { environment, topics } from "../../src/cli/topics.ts";
import { svc } from "./world.ts";

const root = join(import.meta.dirname, "../..");

test("help lists the topics, and each is found by completion", async () => {
  const { code, out } = await svc(["help"]);
  expect(code).toBe(0);
  const completion = (await svc(["completion", "bash"])).out;
  for (const [name, about] of Object.entries(topics)) {
    expect(out).toContain(`${name.padEnd(13)}${about}`);
    expect(completion).toMatch(new RegExp(`' help'\\) words='[^']* ${name}[ ']`));
  }
});

describe.each(Object.keys(topics))("help %s", (topic) => {
  test.each([200, 80, 60])("on %d columns no line is wider, but for commands to copy", async (columns) => {
    const { code, out, err } = await svc(["help", topic], { columns, tty: true, env: { TERM: "dumb" } });
    expect([code, topic === "api" ? "" : err]).toEqual([0, ""]);
    if (topic === "api") return;
    const wide = out.split("\n").filter((line) => widthOf(line) > columns && !line.startsWith("  "));
    expect(wide).toEqual([]);
    expect(out.split("\n").length).toBeGreaterThan(8);
  });
});

test("a misspelt topic is a usage error with the right one", async () => {
  const ran = await svc(["help", "moving-im"]);
  expect(ran.code).toBe(2);
  expect(ran.err).toContain('"moving-in"');
});

test("help of a verb shows its examples, as --help does", async () => {
  const helped = await svc(["help", "config", "schema"]);
  const asked = await svc(["config", "schema", "--help"]);
  expect(helped.out).toContain("Examples:");
  expect(helped.out).toBe(asked.out);
});

test("every exit code is explained", async () => {
  const { out } = await svc(["help", "exit-codes"]);
  for (const code of Object.keys(exitCodes)) expect(out).toMatch(new RegExp(`^${code} `, "m"));
});

test("the filters name their flag, and which lists have it", async () => {
  const { out } = await svc(["help", "filters"], { columns: 200 });
  expect(out).toMatch(/^--to <email> +to this address +messages, queue, events$/m);
  expect(out).toMatch(/^--enhanced <status> +.+ +messages, queue, events$/m);
  expect(out).toContain("15m, 24h, 90d or yesterday");
});

test("every variable that is read is listed, and no other", () => {
  const files = ["src/cli", "src/config"]
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((file) =>
        join(root, folder, file),
      ),
    )
    .filter((file) => file.endsWith(".ts"));
  const read = new Set(
    files.flatMap((file) =>
      [
        ...readFileSync(file, "utf8").matchAll(
          /env\["([A-Z_]+)"\]|xdg\("([A-Z_]+)"\)|(?:password|secret)Variable = "([A-Z_]+)"/g,
        ),
      ].map(([, direct, xdg, password]) => direct ?? xdg ?? password ?? ""),
    ),
  );
  const internal = ["SVC_CALLED_AS"]; // set by bin/svc, not by people
  const elsewhere = ["SVC_<SECTION>_<KEY>", "NODE_EXTRA_CA_CERTS"]; // read by the options and by Node.js
  const listed = environment.map(([name]) => name);
  expect([...read].filter((name) => !internal.includes(name) && name !== "npm_command").toSorted()).toEqual(
    listed.filter((name) => !elsewhere.includes(name)).toSorted(),
  );
});

const render = (text: string, columns = 40): string =>
  renderMarkdown(text, { columns, bold: (head) => `*${head}*` });

test("headings, paragraphs, lists, code and tables are wrapped, and marks are left out", () => {
  expect(
    render(
      "# Head `code`\n\nSome **bold** words, [a link](other.md#x) and\n[a page](https://a.example/) that go on.\n",
    ),
  ).toBe("*Head code*\n\nSome bold words, a link and a page\n(https://a.example/) that go on.\n");
  expect(render("1. first item that is long enough to be wrapped\n   and goes on\n2. second\n")).toBe(
    "1. first item that is long enough to be\n   wrapped and goes on\n2. second\n",
  );
  expect(render("```sh\nsvc a --long " + "x".repeat(50) + "\n\n# not a heading\n```\nafter\n")).toBe(
    `  svc a --long ${"x".repeat(50)}\n\n  # not a heading\n\nafter\n`,
  );
  expect(
    render("| a | `b` |\n|---|---|\n| 1 | x \\| y |\n| 2 | long text that does not fit into its column |\n"),
  ).toBe("*a  b*\n1  x | y\n2  long text that does not fit into its\n   column\n");
  expect(render("<!-- generated: x -->\n\ntext\n\n<!-- end of x -->\n")).toBe("text\n");
});

test("a table that is far too wide is still no wider than the terminal", () => {
  const row = `| ${Array.from({ length: 6 }, (_, i) => "w".repeat(30 + i)).join(" | ")} |`;
  for (const line of render(`${row}\n|---|\n${row}\n`, 30).split("\n"))
    expect(widthOf(line.replaceAll("*", ""))).toBeLessThanOrEqual(30);
});

test("the page and the topic of moving in are one text", async () => {
  const page = readFileSync(join(root, "docs/moving-in.md"), "utf8");
  const { out } = await svc(["help", "moving-in"], { columns: 120 });
  for (const [, heading = ""] of page.matchAll(/^#+ (.+)$/gm)) expect(out).toContain(heading);
  for (const service of ["Postmark", "SendGrid", "Mailgun", "Resend", "Postal", "Amazon SES"])
    expect(out).toContain(`From ${service}`);
  expect(out).toContain("https://senders.yahooinc.com/");
});
