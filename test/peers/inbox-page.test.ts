// A hostile mail in a real browser, as `svc inbox open` writes it: its text is shown, nothing of it runs, and nothing is asked of
// any host.
import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { mailPage } from "../../src/cli/mail-page.ts";
import { visit } from "../support/browser.ts";
import { removeFolder } from "../support/folders.ts";

const mailFrom = (
  host: string,
): string => `<!doctype html><html><head><title>x</title><meta http-equiv="refresh" content="0; url=${host}/refresh">
<link rel="stylesheet" href="${host}/a.css"><base href="${host}/base/"></head><body onload="top.document.title='ran'">
<h1>Shown within the frame</h1><script>parent.document.body.innerText = "a script ran"</script>
<img src="${host}/open.gif" onerror="parent.document.body.innerText='an error handler ran'">
<iframe src="${host}/frame"></iframe><object data="${host}/object"></object><video src="${host}/video" autoplay></video>
<form action="${host}/form"><button autofocus>send</button></form><svg onload="alert(1)"></svg></body></html>`;

/** The page as it is written, or with its protections taken out, and what was asked of the host that the mail names. */
async function opened(change: (page: string) => string = (page) => page) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const host = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const folder = mkdtempSync(join(tmpdir(), "svc-mail-page-"));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
    removeFolder(folder);
  });
  const file = join(folder, "mail.html");
  const headers: [string, string][] = [["Subject", `<img src="${host}/subject" onerror="alert(2)">`]];
  const page = mailPage({ headers, text: "the text part", html: mailFrom(host), attachments: [] });
  writeFileSync(file, change(page));
  const { text } = await visit(pathToFileURL(file).href, "the text part", { whole: true });
  return { text, asked };
}

test("its text is shown, no script runs, and nothing is loaded", async () => {
  const { text, asked } = await opened();
  expect(text).toContain('/subject" onerror="alert(2)">');
  expect(asked).toEqual([]);
  expect(text).not.toMatch(/ ran/);
});

test("without the page's policy the same mail would load what it names", async () => {
  const { asked } = await opened((page) =>
    page.replace(/<meta http-equiv="Content-Security-Policy"[^>]*>/, ""),
  );
  expect(asked).toContain("/open.gif");
});
