import { afterAll, beforeAll, expect, test } from "vitest";
import { errorCatalog } from "../../src/errors.ts";
import { startHttp, text as textOf, type Harness } from "./harness.ts";

let http: Harness;
beforeAll(async () => {
  http = await startHttp({ config: { publicUrl: "https://mail.acme.example:8443" } });
});
afterAll(() => http.stop());

test.each(Object.entries(errorCatalog))(
  "the page of %s says what it means, who mends it and how, to anybody",
  async (code, { title, status }) => {
    const { headers, text, ...answer } = await http.ask({ path: `/errors/${code}`, key: null });
    expect([answer.status, headers["content-type"]]).toEqual([200, "text/html; charset=utf-8"]);
    expect(text).toContain(`<h1>${title}</h1>`);
    expect(text).toContain(`<code>${code}</code>, HTTP ${status}`);
    expect(text.match(/<h2>[^<]+<\/h2>\n<p>[^<]+<\/p>/g)).toHaveLength(3);
    expect(text).not.toMatch(/<[a-z]+ [^>]*(src|href)=/); // nothing is loaded from anywhere
  },
);

test("the type of a problem leads to a page that is there", async () => {
  const { json } = await http.ask({ path: "/v1/none" });
  const { origin, pathname } = new URL(textOf(json["type"]));
  expect(origin).toBe("https://mail.acme.example:8443");
  expect((await http.ask({ path: pathname, key: null })).status).toBe(200);
});

test.each(["none", "toString", "__proto__", "%3Cscript%3E"])(
  "%s is no code, and is not repeated",
  async (code) => {
    const { status, text, headers } = await http.ask({ path: `/errors/${code}`, key: null });
    expect([status, headers["content-type"]]).toEqual([404, "application/problem+json"]);
    expect(text).not.toContain("<script>");
  },
);
