// A tracked message in a real browser: its HTML is opened, its pixel loads, a link is followed, the unsubscribe page is
// opened and its button pressed. Three events, each once.
import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import PostalMime from "postal-mime";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../support/appliance.ts";
import { visit } from "../support/browser.ts";
import { startSending, type Sending } from "../support/sending.ts";

const userAgent =
  "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0 Safari/537.36";
let sending: Sending;
let pages: Server;
let base: string;
let mail = "";

beforeAll(async () => {
  // Where the link leads, and what a webmail would show.
  pages = createServer((req, res) => {
    res.writeHead(200, { "content-type": "text/html; charset=utf-8" });
    res.end(req.url === "/mail" ? mail : `<!doctype html><title>shop</title><p>You asked for ${req.url}</p>`);
  });
  pages.listen(0, "127.0.0.1");
  await once(pages, "listening");
  base = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
  sending = await startSending("far.test", { address: "127.0.0.37" });
  await sending.svc.admin("PATCH", "/v1/domains/ok.test", { tracking: { enabled: true } });
});
afterAll(async () => {
  await sending?.stop();
  pages.close();
});

test("a browser opens the mail, follows its link and presses the page's button: three events, each once", async () => {
  const { svc, key, receiver } = sending;
  const { json } = await svc.api(key, "POST", "/v1/messages", {
    from: "shop@ok.test",
    to: "ann@far.test",
    subject: "Sale",
    html: `<!doctype html><html><body><p>Grüße</p><a href="${base}/sale?a=1&amp;b=2#top">Sale</a></body></html>`,
    track_opens: true,
    track_clicks: true,
    unsubscribe: true,
  });
  const received = await eventually(async () => receiver.mails[0]);
  const parsed = await PostalMime.parse(received.data);
  mail = parsed.html ?? "";
  const list = parsed.headers.find(({ key: name }) => name === "list-unsubscribe")?.value ?? "";
  const page = /<(https:[^>]+)>/.exec(list)?.[1] ?? "";

  const read = await visit(`${base}/mail`, "Grüße", {
    userAgent,
    steps: [{ press: "a", shown: "You asked for /sale?a=1&b=2" }],
  });
  expect(read.requests.filter((url) => url.includes("/o/"))).toHaveLength(1);
  const asked = await visit(page, "Unsubscribe", {
    userAgent,
    steps: [{ press: "button", shown: "You are unsubscribed" }],
  });
  // The page asks for nothing but itself, and its policy has nothing to refuse.
  expect(asked.complaints).toEqual([]);
  expect(new Set(asked.requests)).toEqual(new Set([page]));

  const { data } = (await svc.admin("GET", `/v1/events?message_id=${json.id}`)).json;
  const events = (data as { event: string; data: Record<string, unknown> }[]).map((one) => [
    one.event,
    one.data["machine"] ?? one.data["method"],
  ]);
  // The link was pressed while the pixel was on its way, so either may be first.
  const byName = (a: unknown[], b: unknown[]): number => String(a[0]).localeCompare(String(b[0]));
  expect(events.slice(1).toSorted(byName)).toEqual([
    ["message.clicked", false],
    ["message.opened", false],
    ["message.unsubscribed", "link"],
  ]);
});
