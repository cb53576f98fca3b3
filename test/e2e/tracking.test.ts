// Tracking from the outside: a tracked message is sent, its receiver's copy is opened, a link followed, the unsubscribe
// link used; the events, each once, by the API and by webhook. What scanners do changes nothing.
import { request } from "node:https";
import type { TLSSocket } from "node:tls";
import { dkimVerify } from "mailauth";
import PostalMime from "postal-mime";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, freePort, type Appliance } from "../support/appliance.ts";
import { connectSmtp } from "../support/smtp-client.ts";
import { startSending, type Sending } from "../support/sending.ts";
import type { ReceivedMail, Receiver } from "../support/smtp-receiver.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../support/webhook-receiver.ts";

const port = await freePort();
const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const hookOptions = { secret: "", now: () => Date.now() };
let hooks: WebhookReceiver;
let sending: Sending;
let receiver: Receiver;
let svc: Appliance;
let key: string;

beforeAll(async () => {
  hooks = await startWebhookReceiver(hookOptions);
  sending = await startSending(
    "far.test",
    { address: "127.0.0.36", port },
    { config: { webhooks: { allow_networks: ["127.0.0.0/8", "::1/128"], ca_file: hooks.caFile } } },
  );
  ({ receiver, svc, key } = sending);
  const hook = await svc.api(key, "POST", "/v1/webhooks", { url: hooks.url });
  hookOptions.secret = hook.json.secret;
  const changed = await svc.api(key, "PATCH", "/v1/domains/ok.test", { tracking: { enabled: true } });
  expect(changed.json.tracking).toMatchObject({ enabled: true });
});
afterAll(async () => {
  await sending?.stop();
  await hooks?.stop();
});

const html =
  '<!doctype html><html><body><p>Hello</p><a href="https://shop.example/sale?a=1&amp;b=2#top">Sale</a>' +
  '<a href="mailto:shop@ok.test">Write</a></body></html>';
const target = "https://shop.example/sale?a=1&b=2#top";

interface Sent {
  id: string;
  mail: ReceivedMail;
  /** As their links are in the mail. */
  links: { pixel: string; click: string; page: string; mailto: string };
}

async function sent(to: string): Promise<Sent> {
  const { status, json } = await svc.api(key, "POST", "/v1/messages", {
    from: "shop@ok.test",
    to,
    subject: "Sale",
    text: "Hello",
    html,
    track_opens: true,
    track_clicks: true,
    unsubscribe: true,
    metadata: { campaign: "7" },
  });
  expect([status, json.errors]).toEqual([202, undefined]);
  const mail = await eventually(async () => receiver.mails.find(({ rcptTo }) => rcptTo.includes(to)));
  const parsed = await PostalMime.parse(mail.data);
  const list = parsed.headers.find(({ key: name }) => name === "list-unsubscribe")?.value ?? "";
  const found = (pattern: RegExp, text: string): string => pattern.exec(text)?.[1] ?? "";
  const links = {
    pixel: found(/<img src="([^"]+)"/, parsed.html ?? ""),
    click: found(/<a href="([^"]+)">Sale/, parsed.html ?? ""),
    page: found(/<(https:[^>]+)>/, list),
    mailto: found(/<mailto:([^?>]+)/, list),
  };
  expect(parsed.html).toContain('<a href="mailto:shop@ok.test">Write</a>');
  expect(Object.values(links).every((link) => link !== "")).toBe(true);
  return { id: json.id as string, mail, links };
}

interface Visited {
  status: number;
  location: string | undefined;
  cookie: unknown;
  /** The names of the certificate. */
  certificate: string;
  body: string;
}

/** As a mail program or a browser asks, by the link as it stands in the mail. */
function visit(
  link: string,
  method = "GET",
  body = "",
  at: { hostname?: string; servername?: string } = {},
): Promise<Visited> {
  return new Promise((resolve, reject) => {
    const asked = request(
      link,
      {
        method,
        rejectUnauthorized: false,
        agent: false,
        headers: { "user-agent": browser, host: new URL(link).host },
        ...at,
      },
      (res) => {
        const chunks: Buffer[] = [];
        const certificate = (res.socket as TLSSocket).getPeerCertificate().subjectaltname ?? "";
        res.on("data", (chunk: Buffer) => chunks.push(chunk));
        res.on("end", () =>
          resolve({
            status: res.statusCode ?? 0,
            location: res.headers.location,
            cookie: res.headers["set-cookie"],
            certificate,
            body: Buffer.concat(chunks).toString("latin1"),
          }),
        );
      },
    );
    asked.on("error", reject);
    asked.end(body === "" ? undefined : body);
  });
}

interface Shown {
  event: string;
  event_id: string;
  data: Record<string, unknown>;
}
const trackingRecord = async (): Promise<{ value: string; status: string }> =>
  (await svc.admin("GET", "/v1/domains/ok.test")).json.records.find(
    ({ purpose }: { purpose: string }) => purpose === "tracking",
  );
const eventsOf = async (id: string): Promise<Shown[]> =>
  (await svc.admin("GET", `/v1/events?message_id=${id}`)).json.data;
const afterDelivery = async (id: string): Promise<Shown[]> =>
  (await eventsOf(id)).filter(({ event }) => event !== "message.delivered");

test("a copy verifies, and its open, click and one-click unsubscribe are three events, by webhook too", async () => {
  const { id, mail, links } = await sent("ann@far.test");
  const records = (await svc.admin("GET", "/v1/domains/ok.test")).json.records as {
    name: string;
    value: string;
  }[];
  const { results } = await dkimVerify(mail.data, {
    resolver: async (name: string) => {
      const found = records.find((record) => record.name === name);
      return found ? [[found.value]] : [];
    },
  });
  expect(results.map(({ status }) => status.result)).toEqual(["pass", "pass"]);
  for (const { signingHeaders } of results)
    expect(signingHeaders?.keys.toLowerCase()).toMatch(
      /list-unsubscribe:.*list-unsubscribe-post|list-unsubscribe-post:.*list-unsubscribe:/,
    );

  expect((await visit(links.pixel)).body.slice(0, 6)).toBe("GIF89a");
  expect(await visit(links.click)).toMatchObject({ status: 302, location: target });
  for (let times = 0; times < 2; times++)
    expect(await visit(links.page, "POST", "List-Unsubscribe=One-Click")).toMatchObject({
      status: 200,
      location: undefined,
      cookie: undefined,
    });

  const events = await afterDelivery(id);
  expect(events.map(({ event }) => event)).toEqual([
    "message.opened",
    "message.clicked",
    "message.unsubscribed",
  ]);
  expect(events.map(({ data }) => [data["to"], data["metadata"]])).toEqual(
    Array.from({ length: 3 }, () => ["ann@far.test", { campaign: "7" }]),
  );
  expect(events[1]?.data).toMatchObject({
    url: target,
    first: true,
    machine: false,
    ip_address: "127.0.0.1",
  });
  expect(events[2]?.data).toMatchObject({ method: "one_click" });
  await eventually(async () =>
    events.every(({ event_id }) => hooks.requests.some((one) => one.eventId === event_id)),
  );
  expect(hooks.requests.every(({ problem }) => problem === null)).toBe(true);

  const record = (await svc.api(key, "GET", `/v1/messages/${id}`)).json;
  expect(record.recipients[0]).toMatchObject({
    status: "delivered",
    open_count: 1,
    click_count: 1,
    opened_at: expect.any(String) as unknown,
    clicked_at: expect.any(String) as unknown,
    unsubscribed_at: expect.any(String) as unknown,
  });
  const again = await svc.api(key, "POST", "/v1/messages", {
    from: "shop@ok.test",
    to: "ann@far.test",
    subject: "x",
    text: "x",
  });
  expect(again.json).toMatchObject({
    code: "recipient_suppressed",
    suppressed_recipients: [{ reason: "unsubscribe" }],
  });
});

test("a scanner's GET and HEAD of every link unsubscribe nobody, and HEAD counts nothing", async () => {
  const { id, links } = await sent("bob@far.test");
  for (const link of [links.page, links.pixel, links.click]) await visit(link, "HEAD");
  const page = await visit(links.page);
  expect([page.status, page.cookie]).toEqual([200, undefined]);
  expect(page.body).toContain('<form method="post">');
  expect(await afterDelivery(id)).toEqual([]);
  expect((await svc.api(key, "GET", "/v1/suppressions/bob@far.test")).status).toBe(404);
});

test("the page's form, and a mail to List-Unsubscribe's address, unsubscribe with their own method", async () => {
  const [form, mailto] = [await sent("cat@far.test"), await sent("dan@far.test")];
  expect((await visit(form.links.page, "POST", "unsubscribe=yes")).body).toContain("You are unsubscribed");
  const client = await connectSmtp({ port: svc.inboundPort });
  await client.answer();
  await client.command("EHLO mail.far.test");
  const mail = "From: dan@far.test\r\nSubject: unsubscribe\r\n\r\n.\r\n";
  expect((await client.submit("dan@far.test", [mailto.links.mailto], mail)).text).toMatch(/^250 /);
  client.end();
  const methods = async ({ id }: Sent) =>
    (await afterDelivery(id)).map(({ event, data }) => [event, data["method"]]);
  expect(await methods(form)).toEqual([["message.unsubscribed", "link"]]);
  expect(await methods(mailto)).toEqual([["message.unsubscribed", "mailto"]]);
  expect((await svc.api(key, "GET", "/v1/suppressions/dan@far.test")).json).toMatchObject({
    reason: "unsubscribe",
    source: "recipient",
  });
});

test("links work with the domain and the account suspended, after a crash, and when the recipient was forgotten", async () => {
  const { id, links } = await sent("eve@far.test");
  const paths = ["/v1/domains/ok.test", "/v1/accounts/default"];
  for (const path of paths) expect((await svc.admin("POST", `${path}/suspend`)).status).toBe(200);
  await svc.kill("SIGKILL");
  await svc.restart();
  expect(await visit(links.click)).toMatchObject({ status: 302, location: target });
  expect((await visit(links.pixel)).status).toBe(200);
  for (const path of paths.toReversed()) expect((await svc.admin("POST", `${path}/resume`)).status).toBe(200);
  await svc.admin("POST", "/v1/domains/ok.test/verify");
  expect((await afterDelivery(id)).map(({ event }) => event)).toEqual(["message.clicked", "message.opened"]);

  expect((await svc.admin("POST", "/v1/recipients/forget", { email: "eve@far.test" })).status).toBe(200);
  expect((await svc.api(key, "GET", `/v1/messages/${id}`)).status).toBe(404);
  expect(await visit(links.click)).toMatchObject({ status: 302, location: target });
  expect((await visit(links.page, "POST", "List-Unsubscribe=One-Click")).status).toBe(200);
  expect((await svc.api(key, "GET", "/v1/suppressions/eve@far.test")).json).toMatchObject({
    reason: "unsubscribe",
  });
});

test("a verified tracking name is where links lead, with a certificate of its own, and serves nothing else", async () => {
  const name = "t.ok.test";
  await svc.api(key, "PATCH", "/v1/domains/ok.test", { tracking_domain: name });
  const before = await sent("fay@far.test");
  expect(new URL(before.links.click).hostname).toBe("127.0.0.1");
  sending.dns.set(name, "CNAME", [(await trackingRecord()).value]);
  await svc.api(key, "POST", "/v1/domains/ok.test/verify");
  expect((await trackingRecord()).status).toBe("ok");
  const { links, id } = await eventually(async () => {
    const tried = await sent(`gus${receiver.mails.length}@far.test`); // domains are read again once a second
    return new URL(tried.links.click).hostname === name ? tried : null;
  });
  const at = { hostname: "127.0.0.1", servername: name };
  const seen = await visit(links.click, "GET", "", at);
  expect(seen).toMatchObject({ status: 302, location: target });
  expect(seen.certificate).toBe("DNS:t.ok.test");
  expect((await visit(`https://${name}:${svc.httpPort}/v1/messages`, "GET", "", at)).status).toBe(404);
  expect((await afterDelivery(id)).map(({ event }) => event)).toEqual(["message.clicked"]);

  await svc.api(key, "PATCH", "/v1/domains/ok.test", { tracking_domain: null });
  await svc.kill("SIGKILL");
  await svc.restart();
  expect(await visit(links.click, "HEAD", "", at)).toMatchObject({
    status: 302,
    location: target,
    certificate: "DNS:t.ok.test",
  });
  expect((await visit(`https://${name}:${svc.httpPort}/v1/messages`, "GET", "", at)).status).toBe(404);
});

test("simulated recipients react: open@, click@, unsubscribe@ and complaint@", async () => {
  const test = (await svc.admin("POST", "/v1/keys", { name: "t", scope: "send", test: true })).json
    .key as string;
  for (const [name, event] of Object.entries({
    open: "message.opened",
    click: "message.clicked",
    unsubscribe: "message.unsubscribed",
    complaint: "message.complained",
  })) {
    const to = `${name}@simulator.svc`;
    const body = { from: "shop@ok.test", to, subject: "x", text: "x" };
    const { json } = await svc.api(test, "POST", "/v1/messages", body);
    const events = await eventually(async () => {
      const found = await afterDelivery(json.id);
      return found.length > 0 ? found : null;
    });
    expect(events.map((one) => [one.event, one.data["test"]])).toEqual([[event, true]]);
    expect((await svc.api(key, "GET", `/v1/suppressions/${to}`)).status).toBe(404);
  }
});

test("the statistics count them, with rates of unique ones", async () => {
  const { json } = await svc.api(key, "GET", "/v1/stats");
  const { delivered } = json.totals;
  const counts = { opened: 2, unique_opened: 2, clicked: 3, unique_clicked: 3, unsubscribed: 3 };
  expect(json.totals).toMatchObject(counts);
  expect(json.rates.open_rate).toBeCloseTo(2 / delivered, 3);
  expect(json.rates.click_rate).toBeCloseTo(3 / delivered, 3);
});
