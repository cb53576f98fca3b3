// A mail of the inbox as a page: what is in it, and that nothing of the mail gets out of its frame.
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { mailPage } from "../../src/cli/mail-page.ts";
import { fakeDaemon, scratch, svc } from "./world.ts";
import { removeFolder } from "../support/folders.ts";

const html = `<p onclick="x()">Hello</p></iframe><script>alert("1")</script><img src="https://t.example/o.gif">'"`;
const json = {
  text: "Hello & <b>goodbye</b>",
  html,
  headers: [
    { name: "from", value: "Shop <shop@acme.example>" },
    { name: "Subject", value: "</title><script>alert(2)</script>" },
    { name: "X-Other", value: "not shown" },
  ],
  attachments: [{ filename: '"><img src=x>.txt', content_type: "text/plain", size_bytes: 3 }],
};
const answers = { "GET /v1/messages/msg_1/content": { json } };

test("a mail is written to a file of its own that only its owner reads, whose name stands alone on stdout", async () => {
  const { socket } = await fakeDaemon(answers);
  const ran = await svc(["inbox", "open", "msg_1"], { socket });
  const file = ran.out.trimEnd();
  expect(ran.code).toBe(0);
  expect([statSync(file).mode & 0o777, statSync(dirname(file)).mode & 0o777]).toEqual([0o600, 0o700]);
  expect(readFileSync(file, "utf8")).toContain("Hello &#38; &#60;b&#62;goodbye");
  removeFolder(dirname(file));
});

test("a subject in another alphabet is shown as it reads", async () => {
  const headers = [{ name: "Subject", value: "=?UTF-8?B?R3LDvMOfZQ==?=" }];
  const { socket } = await fakeDaemon({ "GET /v1/messages/msg_1/content": { json: { ...json, headers } } });
  expect((await svc(["inbox", "show", "msg_1"], { socket })).out).toContain("Grüße");
  const file = join(scratch(), "mail.html");
  await svc(["inbox", "open", "msg_1", "--to", file], { socket });
  expect(readFileSync(file, "utf8")).toContain("<title>Grüße</title>");
});

test("--to names the file, and one that is there is not overwritten", async () => {
  const { socket } = await fakeDaemon(answers);
  const file = join(scratch(), "mail.html");
  const args = ["--json", "inbox", "open", "msg_1", "--to", file, "--no-browser"];
  expect(JSON.parse((await svc(args, { socket })).out)).toEqual({ message_id: "msg_1", file, opened: false });
  const again = await svc(args, { socket });
  expect(again).toMatchObject({ code: 2, out: "" });
  expect(again.err).toContain("is not overwritten");
  const nowhere = await svc(["inbox", "open", "msg_1", "--to", join(file, "x")], { socket });
  expect(nowhere.err).toContain("cannot be written");
});

test("a mail that is not there writes no file", async () => {
  const { socket } = await fakeDaemon({});
  const file = join(scratch(), "mail.html");
  const ran = await svc(["inbox", "open", "msg_1", "--to", file], { socket });
  expect([ran.code, ran.err]).toEqual([3, expect.stringContaining("svc inbox list")]);
  expect(existsSync(file)).toBe(false);
});

test("the page forbids all that could run or be loaded, and the mail's HTML is the text of one sandboxed frame", () => {
  const page = mailPage({
    headers: json.headers.map(({ name, value }): [string, string] => [name, value]),
    text: json.text,
    html,
    attachments: json.attachments,
  });
  expect(page).toContain(`http-equiv="Content-Security-Policy" content="default-src 'none';`);
  expect(page).not.toMatch(/<script|<img|onclick="/);
  expect(page.match(/<iframe [^>]*>/g)).toHaveLength(1);
  const frame = /<iframe sandbox="" [^>]*srcdoc="([^"]*)"><\/iframe>/.exec(page)?.[1] ?? "";
  const read = frame.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));
  expect(read).toBe(html);
});

test("what a browser connects to a host for before it asks the policy is taken out of the mail's HTML", () => {
  const hints =
    '<LINK rel=preconnect href="https://t.example"><link\nrel=dns-prefetch href=//t.example><links><iframe src=//t.example></iframe><Frame/src=//t.example>';
  const page = mailPage({ headers: [], text: null, html: hints, attachments: [] });
  expect(page).not.toMatch(/&#60;(link|i?frame)([\s/]|&#62;)/i);
  expect(page).toContain("&#60;links&#62;");
  expect(page).toContain('<meta http-equiv="x-dns-prefetch-control" content="off">');
});
