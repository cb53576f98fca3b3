import { expect, test } from "vitest";
import { textFromHtml, textFromLargeHtml } from "../../src/mail/html-text.ts";

const units = [
  "<b>x</b>",
  "<a href=https://x.test/a>y</a>",
  "&amp;",
  "word ",
  "<br>",
  "<p>",
  "é",
  "<pre>x",
  "&hearts",
];

const unread = ["<!>", "<!---->", "</>", "<style></style>", "<script>x</script>"];

/** Turns of the loop while it runs. */
async function turnsOf(run: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let counting = true;
  const turn = (): void => {
    turns++;
    if (counting) setImmediate(turn);
  };
  setImmediate(turn);
  await run();
  counting = false;
  return turns;
}

test.each([...units, ...unread])(
  "the loop turns at least every 32 KB while html of %s becomes text, which is the same",
  async (unit) => {
    const html = unit.repeat(Math.ceil(400_000 / unit.length));
    let text = "";
    const turns = await turnsOf(async () => (text = await textFromLargeHtml(html)));
    expect(turns).toBeGreaterThanOrEqual(Math.floor(html.length / 32_768));
    expect(text).toBe(textFromHtml(html));
  },
);

test("the loop turns too where an element without readable content never ends", async () => {
  const html = `<script>${"</b>".repeat(100_000)}`;
  const turns = await turnsOf(() => textFromLargeHtml(html));
  expect(turns).toBeGreaterThanOrEqual(Math.floor(html.length / 32_768));
});

test("neither a reference nor a word nor a link is divided where a step ends", () => {
  for (let shift = 16_384 - 40; shift <= 16_384 + 8; shift++) {
    const html = `${"z".repeat(shift)}&eacute;w<a href="https://x.test/">here</a> <a href="https://y.test/">https://y.test/</a>`;
    expect(textFromHtml(html)).toBe(`${"z".repeat(shift)}éwhere (https://x.test/) https://y.test/\n`);
  }
});
