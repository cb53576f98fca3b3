// The copies of tracked messages from the outside: what two receivers get of one message, by REST and by a mail program,
// small and large, at once and after a deferral. Each verifies, and each link leads where it led.
import { request } from "node:https";
import { dkimVerify } from "mailauth";
import PostalMime from "postal-mime";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../support/appliance.ts";
import type { ReceivedMail } from "../support/smtp-receiver.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
let records: { name: string; value: string }[];

beforeAll(async () => {
  world = await startWorld({ domains: { "one.test": "127.0.0.71", "two.test": "127.0.0.72" } });
  await world.svc.admin("PATCH", "/v1/domains/ok.test", {
    tracking: { enabled: true, opens: true, clicks: true },
  });
  ({ records } = (await world.svc.admin("GET", "/v1/domains/ok.test")).json);
});
afterAll(() => world?.stop());

const arrived = (domain: string, to: string): Promise<ReceivedMail> =>
  eventually(
    async () => world.receiver(domain).mails.find(({ rcptTo }) => rcptTo.includes(to)) ?? null,
    undefined,
    `mail for ${to}`,
  );

async function verdicts(mail: Buffer): Promise<string[]> {
  const { results } = await dkimVerify(mail, {
    resolver: async (name: string) => records.filter((one) => one.name === name).map(({ value }) => [value]),
  });
  return results.map(({ status }) => status.result);
}

/** Where each link of ours in the HTML leads, in its order. */
async function leads(html: string): Promise<(string | undefined)[]> {
  const links = [...html.matchAll(/href="?(https:\/\/127\.0\.0\.1:\d+\/c\/[\w-]+)/g)].map(
    ([, link = ""]) => link,
  );
  return Promise.all(
    links.map(
      (link) =>
        new Promise<string | undefined>((resolve, reject) => {
          request(link, { rejectUnauthorized: false, agent: false, method: "HEAD" }, (res) => {
            res.resume();
            resolve(res.headers.location);
          })
            .on("error", reject)
            .end();
        }),
    ),
  );
}

const body =
  '<html><body>Grüße <a href="https://t.test/?a=1&amp;b=ü">one</a> <a href=https://bücher.test/x#y>two</a>' +
  '<a data-svc-track=off href="https://t.test/off">off</a></body></html>';
const targets = ["https://t.test/?a=1&b=%C3%BC", "https://xn--bcher-kva.test/x#y"];

test.each([
  ["small", ""],
  ["large", "<p>long text, long text, long text</p>\n".repeat(8_000)],
])(
  "a %s message by REST: each recipient's copy is its own, verifies, and leads where it led",
  async (size, more) => {
    const [one, two] = [`${size}@one.test`, `${size}@two.test`];
    const { status, json } = await world.send({
      to: [one, two],
      html: body.replace("</body>", `${more}</body>`),
      unsubscribe: true,
    });
    expect([status, json.errors]).toEqual([202, undefined]);
    const mails = [await arrived("one.test", one), await arrived("two.test", two)];
    const shown = await Promise.all(mails.map(({ data }) => PostalMime.parse(data)));
    for (const [i, mail] of mails.entries()) {
      expect(await verdicts(mail.data)).toEqual(["pass", "pass"]);
      expect(await leads(shown[i]?.html ?? "")).toEqual(targets);
      expect(shown[i]?.html).toContain('<a data-svc-track=off href="https://t.test/off">off</a>');
      expect(shown[i]?.html).toMatch(
        /<img src="https:\/\/127\.0\.0\.1:\d+\/o\/[\w-]+" width="1" height="1" alt=""><\/body>/,
      );
    }
    expect(shown[0]?.html).not.toBe(shown[1]?.html);
    const stored = await world.svc.admin("GET", `/v1/messages/${json.id}/content`);
    expect(stored.json.html).toContain('<a href="https://t.test/?a=1&amp;b=ü">one</a>');
  },
);

test("a copy that is deferred is made again, and verifies", async () => {
  const { options } = world.receiver("one.test");
  let refusals = 1;
  options.onData = () => (refusals-- > 0 ? "451 4.7.1 greylisted" : undefined);
  await world.send({ to: "late@one.test", html: body });
  const { data } = await arrived("one.test", "late@one.test");
  expect(world.receiver("one.test").refused).toHaveLength(1);
  expect(await verdicts(data)).toEqual(["pass", "pass"]);
  expect(await leads((await PostalMime.parse(data)).html ?? "")).toEqual(targets);
});

test("a mail program's message keeps its parts, and its HTML is tracked in its own charset", async () => {
  const html = Buffer.from(body.replaceAll("bücher", "buecher"), "latin1");
  const mail = [
    "From: a@ok.test",
    "Subject: s",
    "MIME-Version: 1.0",
    "X-Svc-Unsubscribe: true",
    "Content-Type: multipart/alternative; boundary=b",
    "",
    "--b",
    "Content-Type: text/plain; charset=utf-8",
    "",
    "https://t.test/text",
    "--b",
    "Content-Type: text/html; charset=iso-8859-1",
    "Content-Transfer-Encoding: base64",
    "",
    ...(html.toString("base64").match(/.{1,76}/g) ?? []),
    "--b--",
    ".",
    "",
  ].join("\r\n");
  const client = await world.smtp();
  expect((await client.submit("a@ok.test", ["relayed@two.test"], mail)).code).toBe(250);
  const { data } = await arrived("two.test", "relayed@two.test");
  expect(await verdicts(data)).toEqual(["pass", "pass"]);
  const shown = await PostalMime.parse(data);
  expect(shown.text?.trim()).toBe("https://t.test/text");
  expect(shown.html).toContain("Grüße <a href=");
  expect(await leads(shown.html ?? "")).toEqual([targets[0], "https://buecher.test/x#y"]);
  expect(data.toString()).toContain("charset=iso-8859-1\r\nContent-Transfer-Encoding: base64\r\n");
  expect(data.toString()).not.toContain("X-Svc-");
});

test("a domain that turns tracking off refuses to be asked, and sends as before", async () => {
  await world.svc.admin("PATCH", "/v1/domains/ok.test", { tracking: { enabled: false } });
  const refused = await world.send({ to: "off@one.test", html: body, tracking: { clicks: true } });
  expect([refused.status, refused.json.code, refused.json.field]).toEqual([
    422,
    "tracking_disabled",
    "tracking.clicks",
  ]);
  const client = await world.smtp();
  const mail = "From: a@ok.test\r\nX-Svc-Track-Opens: true\r\n\r\nx\r\n.\r\n";
  expect((await client.submit("a@ok.test", ["off@one.test"], mail)).text).toMatch(
    /^550 5\.7\.1 X-Svc-Track-Opens: tracking is not/,
  );
  await world.send({ to: "off@one.test", html: body });
  expect((await PostalMime.parse((await arrived("one.test", "off@one.test")).data)).html).toContain(
    body.slice(6, 80),
  );
});
