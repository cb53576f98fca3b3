import { expect, test } from "vitest";
import { textFromHtml } from "../../src/mail/html-text.ts";

test("neither a reference nor a word nor a link is divided where a step ends", () => {
  for (let shift = 16_384 - 40; shift <= 16_384 + 8; shift++) {
    const html = `${"z".repeat(shift)}&eacute;w<a href="https://x.test/">here</a> <a href="https://y.test/">https://y.test/</a>`;
    expect(textFromHtml(html)).toBe(`${"z".repeat(shift)}éwhere (https://x.test/) https://y.test/\n`);
  }
});
