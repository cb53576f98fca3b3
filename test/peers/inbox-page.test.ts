// A hostile mail in a real browser, as `svc inbox open` writes it: its text is shown, nothing of it runs, and nothing is asked of
// any host.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { mailPage } from "../../src/cli/mail-page.ts";
import { visit } from "../support/browser.ts";

const host = "http://127.0.0.1:9";
const html = `<!doctype html><html><head><title>x</title><meta http-equiv="refresh" content="0; url=${host}/refresh">
<link rel="stylesheet" href="${host}/a.css"><base href="${host}/base/"></head><body onload="top.document.title='ran'">
<h1>Shown within the frame</h1><script>parent.document.body.innerText = "a script ran"</script>
<img src="${host}/open.gif" onerror="parent.document.body.innerText='an error handler ran'">
<iframe src="${host}/frame"></iframe><object data="${host}/object"></object><video src="${host}/video" autoplay></video>
<form action="${host}/form"><button autofocus>send</button></form><svg onload="alert(1)"></svg></body></html>`;

test("its text is shown, no script runs, and nothing is loaded", async () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-mail-page-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "mail.html");
  const headers: [string, string][] = [["Subject", `<img src="${host}/subject" onerror="alert(2)">`]];
  writeFileSync(file, mailPage({ headers, text: "the text part", html, attachments: [] }));
  const { requests, text } = await visit(pathToFileURL(file).href, "the text part");
  expect(text).toContain(`<img src="${host}/subject"`);
  expect(requests.filter((url) => url.startsWith("http"))).toEqual([]);
  expect(text).not.toMatch(/ ran/);
});
