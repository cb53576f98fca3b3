import { Agent, request, type IncomingHttpHeaders } from "node:http";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { StoreUnavailable } from "../../src/store/store.ts";
import { trackingWorld, type TrackingWorld } from "../tracking/world.ts";
import { connectionRule } from "../../src/http/connections.ts";
import { seenTracking } from "../support/domains.ts";
import { newDomain } from "./stored.ts";
import { startHttp, type Harness } from "./harness.ts";

const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

interface Asked {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

let world: TrackingWorld;
let http: Harness;
let fails: Error | null = null;
let stalls: Promise<void> | null = null;

beforeAll(async () => {
  world = await trackingWorld((store) => ({
    async recordVisits(visits) {
      await stalls;
      return store.recordVisits(visits);
    },
    recordUnsubscribe: (one) => (fails ? Promise.reject(fails) : store.recordUnsubscribe(one)),
  }));
  const { tokens, visits, unsubscribes, store, clock } = world;
  http = await startHttp({ opened: { store, clock }, tracking: { tokens, visits, unsubscribes } });
});
afterAll(async () => {
  await world.visits.stop();
  await http.stop();
});
beforeEach(async () => {
  await world.clock.advance(61_000); // what one source may do within a minute
});

function ask(
  path: string,
  {
    method = "GET",
    body = "",
    headers = {},
    agent = false,
  }: { method?: string; body?: string; headers?: Record<string, string>; agent?: Agent | false } = {},
): Promise<Asked> {
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        host: "127.0.0.1",
        port: http.port,
        method,
        path,
        agent,
        headers: { "user-agent": browser, ...headers },
      },
      (res) => {
        const chunks: Buffer[] = [];
        res.on("data", (chunk: Buffer) => chunks.push(chunk));
        res.on("end", () =>
          resolve({ status: res.statusCode ?? 0, headers: res.headers, body: Buffer.concat(chunks) }),
        );
      },
    );
    asked.on("error", reject);
    asked.end(body === "" ? undefined : body);
  });
}

test("a pixel is a GIF that nobody keeps, and its load is an open, in the event, the record and the list", async () => {
  const { job, recipient } = await world.delivered();
  const answer = await ask(`/o/${world.tokens.open(recipient)}`);
  expect(answer.status).toBe(200);
  expect(answer.headers).toMatchObject({ "content-type": "image/gif", "cache-control": "no-store" });
  expect(answer.headers["set-cookie"]).toBeUndefined();
  expect(answer.body.subarray(0, 6).toString()).toBe("GIF89a");
  expect(answer.body.subarray(-1)).toEqual(Buffer.from(";"));
  expect(await world.eventsOf(job.message.id)).toEqual([
    {
      type: "message.opened",
      data: expect.objectContaining({
        to: recipient.email,
        ip_address: "127.0.0.1",
        user_agent: browser,
        first: true,
        machine: false,
        metadata: { order: "17" },
      }) as unknown,
    },
  ]);
  const shown = await http.ask({ path: `/v1/messages/${job.message.id}` });
  expect(shown.json["recipients"]?.["0"]).toMatchObject({
    status: "delivered",
    opened_at: new Date(world.clock.now()).toISOString(),
    open_count: 1,
    clicked_at: null,
    click_count: 0,
  });
});

test("of a long User-Agent the beginning is kept", async () => {
  const { job, recipient } = await world.delivered();
  const headers = { "user-agent": `${browser} ${"x".repeat(8_000)}` };
  await ask(`/o/${world.tokens.open(recipient)}`, { headers });
  const [event] = await world.eventsOf(job.message.id);
  expect(event?.data["user_agent"]).toBe(headers["user-agent"].slice(0, 512));
});

test("a link leads to its exact target, and the query decides nothing", async () => {
  const { job, recipient } = await world.delivered();
  const target = "HTTPS://User:p@Shop.example:8443/a b/%7e%2F?x=1&amp;y=[z]|'#Frag{1}";
  const path = `/c/${world.tokens.click(recipient, target)}`;
  for (const asked of [path, `${path}?url=https://evil.test`, `${path}?utm_source=x`]) {
    const { status, headers, body } = await ask(asked);
    expect([status, headers.location, body.length]).toEqual([302, target, 0]);
    expect(headers).toMatchObject({ "cache-control": "no-store", "referrer-policy": "no-referrer" });
  }
  expect((await world.eventsOf(job.message.id)).map(({ type, data }) => [type, data["url"]])).toEqual([
    ["message.clicked", target],
  ]);
});

test("every target of printable ASCII comes back octet for octet", async () => {
  const { recipient } = await world.delivered();
  const printable = fc
    .string({
      unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
      maxLength: 300,
    })
    .map((rest) => `https://x.example/${rest.trimEnd()}`);
  await fc.assert(
    fc.asyncProperty(printable, async (target) => {
      const { status, headers } = await ask(`/c/${world.tokens.click(recipient, target)}`);
      expect([status, headers.location]).toEqual([302, target]);
    }),
    { numRuns: 300 },
  );
  const longest = `https://x.example/${"y".repeat(4_078)}`;
  expect((await ask(`/c/${world.tokens.click(recipient, longest)}`)).headers.location).toBe(longest);
});

test("a target that no link of a mail has is never a Location", async () => {
  const { recipient } = await world.delivered();
  for (const target of [
    "javascript:alert(1)",
    "//evil.test",
    "https://a.test/\r\nSet-Cookie: a=b",
    "data:,x",
    "",
    "https://é.test/",
  ]) {
    const { status, headers } = await ask(`/c/${world.tokens.click(recipient, target)}`);
    expect([target, status, headers.location, headers["set-cookie"]]).toEqual([
      target,
      404,
      undefined,
      undefined,
    ]);
  }
});

test("HEAD is answered as GET is, and counts nothing", async () => {
  const { job, recipient } = await world.delivered();
  const pixel = await ask(`/o/${world.tokens.open(recipient)}`, { method: "HEAD" });
  expect([pixel.status, pixel.headers["content-length"], pixel.body.length]).toEqual([200, "42", 0]);
  const click = await ask(`/c/${world.tokens.click(recipient, "https://a.example/")}`, { method: "HEAD" });
  expect([click.status, click.headers.location]).toEqual([302, "https://a.example/"]);
  expect((await ask(`/u/${world.tokens.unsubscribe(recipient)}`, { method: "HEAD" })).status).toBe(200);
  expect(await world.eventsOf(job.message.id)).toEqual([]);
});

test("every single-character change of a token is 404 without a Location, alike for each cause", async () => {
  const { recipient } = await world.delivered();
  const token = world.tokens.click(recipient, "https://shop.example/");
  const bad = Array.from({ length: token.length }, (_, i) => {
    const other = token[i] === "A" ? "B" : "A";
    return `/c/${token.slice(0, i)}${other}${token.slice(i + 1)}`;
  });
  const wrongPurpose = [
    `/o/${token}`,
    `/u/${token}`,
    `/c/${world.tokens.open(recipient)}`,
    `/u/${world.tokens.open(recipient)}`,
  ];
  const answers: string[] = [];
  for (const path of [...bad, ...wrongPurpose, "/c/x", "/o/%2e%2e", "/u/%00"]) {
    const { status, headers, body } = await ask(path);
    delete headers.date;
    answers.push(JSON.stringify([status, headers, body.toString()]));
    expect(headers.location).toBeUndefined();
  }
  expect(new Set(answers).size).toBe(1);
  expect(answers[0]).toContain("404");
});

test("past a number of bad tokens a source gets its 404s a second late; good ones are answered as ever", async () => {
  const { recipient } = await world.delivered();
  const bad = (n: number): Promise<Asked> => ask(`/c/${"A".repeat(60)}${n}`);
  for (let i = 0; i < 12_000; i += 100)
    for (const { status } of await Promise.all(Array.from({ length: 100 }, (_, n) => bad(i + n))))
      expect(status).toBe(404);
  let answered = 0;
  const late = Array.from({ length: 5 }, (_, i) => bad(12_000 + i).finally(() => answered++));
  expect((await ask(`/o/${world.tokens.open(recipient)}`)).status).toBe(200);
  expect((await ask(`/c/${world.tokens.click(recipient, "https://a.example/")}`)).status).toBe(302);
  expect(answered).toBe(0);
  await expect
    .poll(async () => {
      await world.clock.advance(1_000);
      return answered;
    })
    .toBe(5);
  for (const { status, headers } of await Promise.all(late))
    expect([status, headers.location]).toEqual([404, undefined]);
});

test("readers behind one address are answered, however many connections they keep open", async () => {
  const { recipient } = await world.delivered();
  const path = `/o/${world.tokens.open(recipient)}`;
  const agents = Array.from(
    { length: connectionRule.unknownPerSource + 20 },
    () => new Agent({ keepAlive: true }),
  );
  for (const agent of agents) expect((await ask(path, { agent })).status).toBe(200);
  for (const agent of agents) agent.destroy();
});

test("the page asks in the reader's language, loads nothing, and a GET of it changes nothing", async () => {
  const { job, recipient } = await world.delivered(`o'neil&"x"@d.test`.replaceAll('"', ""));
  const path = `/u/${world.tokens.unsubscribe(recipient)}`;
  const german = await ask(path, { headers: { "accept-language": "tlh, de-AT;q=0.9, en;q=0.8" } });
  expect(german.status).toBe(200);
  const html = german.body.toString();
  expect(html).toContain('<html lang="de">');
  expect(html).toContain("o&#39;neil&#38;x@d.test");
  expect(html).toMatch(/<form method="post">.*<button type="submit">Abmelden<\/button>/);
  expect(html).not.toMatch(/<script|src=|href=|url\(/);
  expect(german.headers).toMatchObject({
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": expect.stringMatching(/^default-src 'none'; style-src 'sha256-/) as unknown,
    "referrer-policy": "no-referrer",
    "x-robots-tag": "noindex, nofollow",
    "cache-control": "no-store",
    vary: "Accept-Language",
  });
  expect(german.headers["set-cookie"]).toBeUndefined();
  for (const [wish, lang] of Object.entries({
    ja: "ja",
    "pt-BR,pt;q=0.5": "pt",
    xx: "en",
    "": "en",
    "fr;q=0,es;q=0.1": "es",
  }))
    expect((await ask(path, { headers: { "accept-language": wish } })).body.toString()).toContain(
      `lang="${lang}"`,
    );
  expect(await world.eventsOf(job.message.id)).toEqual([]);
  expect(await world.store.suppression(world.account, job.canonical, world.clock.now())).toBeNull();
});

const forms: [string, string, Record<string, string>, string][] = [
  [
    "one click",
    "one_click",
    { "content-type": "application/x-www-form-urlencoded" },
    "List-Unsubscribe=One-Click",
  ],
  [
    "one click as multipart",
    "one_click",
    { "content-type": "multipart/form-data; boundary=b" },
    '--b\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--b--\r\n',
  ],
  [
    "one click as multipart, with the type of its part",
    "one_click",
    { "content-type": "multipart/form-data; boundary=b" },
    '--b\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\nContent-Type: text/plain\r\n\r\nOne-Click\r\n--b--\r\n',
  ],
  ["the page's form", "link", { "content-type": "application/x-www-form-urlencoded" }, "unsubscribe=yes"],
];

test.each(forms)(
  "%s unsubscribes: 200 without a redirect or a cookie, the event once",
  async (_, method, headers, body) => {
    const { job, recipient } = await world.delivered();
    const path = `/u/${world.tokens.unsubscribe(recipient)}`;
    for (let times = 0; times < 3; times++) {
      const answer = await ask(path, { method: "POST", headers, body });
      expect(answer.status).toBe(200);
      expect(answer.headers.location).toBeUndefined();
      expect(answer.headers["set-cookie"]).toBeUndefined();
      expect(answer.body.toString()).not.toContain("<form");
    }
    const events = await world.eventsOf(job.message.id);
    expect(events.map(({ type, data }) => [type, data["method"]])).toEqual([
      ["message.unsubscribed", method],
    ]);
    expect(await world.store.suppression(world.account, job.canonical, world.clock.now())).toMatchObject({
      reason: "unsubscribe",
      source: "recipient",
      messageId: job.message.id,
      email: recipient.email,
    });
    expect(await world.recipientOf(job.message.id)).toMatchObject({ unsubscribedAt: world.clock.now() });
  },
);

test("who is taken off the list again and unsubscribes again is on it again, with no second event", async () => {
  const { job, recipient } = await world.delivered();
  const path = `/u/${world.tokens.unsubscribe(recipient)}`;
  await ask(path, { method: "POST", body: "List-Unsubscribe=One-Click" });
  await world.store.removeSuppression(world.account, job.canonical);
  await ask(path, { method: "POST", body: "List-Unsubscribe=One-Click" });
  expect(await world.store.suppression(world.account, job.canonical, world.clock.now())).not.toBeNull();
  expect(await world.eventsOf(job.message.id)).toHaveLength(1);
});

test("when the message is gone a link still redirects and an unsubscribe still suppresses, without an event", async () => {
  const gone = {
    accountKey: world.account,
    messageId: "msg_01jd0000000000000000000000",
    recipientKey: 9e9,
    email: "Gone@Old.test",
    test: false,
  };
  expect((await ask(`/o/${world.tokens.open(gone)}`)).status).toBe(200);
  expect((await ask(`/c/${world.tokens.click(gone, "http://a.example/")}`)).headers.location).toBe(
    "http://a.example/",
  );
  const answer = await ask(`/u/${world.tokens.unsubscribe(gone)}`, {
    method: "POST",
    body: "List-Unsubscribe=One-Click",
  });
  expect(answer.status).toBe(200);
  expect(await world.store.suppression(world.account, "gone@old.test", world.clock.now())).toMatchObject({
    reason: "unsubscribe",
    source: "recipient",
    email: "Gone@Old.test",
    eventId: null,
  });
});

test("mail of a test key has the event, and suppresses nobody, whether or not the message is there", async () => {
  const { job, recipient } = await world.delivered("tess@t.test", { test: true });
  const gone = { ...recipient, messageId: "msg_01jd0000000000000000000001" };
  for (const of of [recipient, gone])
    expect(
      (await ask(`/u/${world.tokens.unsubscribe(of)}`, { method: "POST", body: "unsubscribe=yes" })).status,
    ).toBe(200);
  expect((await world.eventsOf(job.message.id)).map(({ data }) => data["test"])).toEqual([true]);
  expect(await world.store.suppression(world.account, job.canonical, world.clock.now())).toBeNull();
});

test("an unsubscribe that cannot be written is 503 and says so, and the next one does it", async () => {
  const { job, recipient } = await world.delivered();
  const path = `/u/${world.tokens.unsubscribe(recipient)}`;
  fails = new StoreUnavailable("full", "no room");
  const refused = await ask(path, { method: "POST", body: "unsubscribe=yes" });
  fails = null;
  expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "60"]);
  expect(refused.body.toString()).toContain("<form");
  expect((await ask(path, { method: "POST", body: "unsubscribe=yes" })).status).toBe(200);
  expect(await world.eventsOf(job.message.id)).toHaveLength(1);
});

test("a store that does not answer holds no reader longer than two seconds, and the open is written when it does", async () => {
  const { job, recipient } = await world.delivered();
  const { promise, resolve } = Promise.withResolvers<void>();
  stalls = promise;
  let answered = false;
  const asked = ask(`/o/${world.tokens.open(recipient)}`).then((answer) => {
    answered = true;
    return answer;
  });
  await expect
    .poll(async () => {
      await world.clock.advance(1_900);
      return answered;
    })
    .toBe(true);
  expect((await asked).status).toBe(200);
  expect(await world.eventsOf(job.message.id)).toEqual([]);
  stalls = null;
  resolve();
  await expect.poll(() => world.eventsOf(job.message.id)).toHaveLength(1);
});

test("other methods are 405 with what is allowed, and a long form is refused unread", async () => {
  const { recipient } = await world.delivered();
  const post = await ask(`/o/${world.tokens.open(recipient)}`, { method: "POST", body: "x" });
  expect([post.status, post.headers.allow]).toEqual([405, "GET, HEAD"]);
  const put = await ask(`/u/${world.tokens.unsubscribe(recipient)}`, { method: "PUT", body: "x" });
  expect([put.status, put.headers.allow]).toEqual([405, "GET, HEAD, POST"]);
  const long = await ask(`/u/${world.tokens.unsubscribe(recipient)}`, {
    method: "POST",
    body: "x".repeat(5_000),
  });
  expect(long.status).toBe(413);
});

test("a tracking name serves its links and nothing else; an unverified domain's is nobody's", async () => {
  const { recipient } = await world.delivered();
  const at = world.clock.now();
  const names = { "news.test": at, "unverified.test": null };
  for (const [name, verifiedAt] of Object.entries(names)) {
    const made = await world.store.createDomain({ ...newDomain(world.account, name, at), verifiedAt });
    if (!made) throw new Error("not made");
    const trackingDomain = `t.${name}`;
    await world.store.saveDomain({ ...made, trackingDomain, records: [seenTracking(trackingDomain)] });
  }
  const from = (host: string) => ({ headers: { host } });
  for (const path of ["/v1/messages", "/healthz", "/", "/docs", "/o/", "/x"])
    expect([path, (await ask(path, from("T.News.test:8443"))).status]).toEqual([path, 404]);
  const refused = await ask("/v1/messages", from("t.news.test"));
  expect(refused.headers["x-request-id"]).toBeUndefined();
  expect((await ask("/v1/messages", from("t.unverified.test"))).status).toBe(401);
  for (const host of ["t.news.test", "old-name.test", "mail.acme.example"])
    expect((await ask(`/o/${world.tokens.open(recipient)}`, from(host))).status).toBe(200);
});

test("links stay open in maintenance mode", async () => {
  const { recipient } = await world.delivered();
  await http.ask({ method: "POST", path: "/v1/maintenance", admin: true, body: {} });
  expect((await ask(`/c/${world.tokens.click(recipient, "https://a.example/")}`)).status).toBe(302);
  await http.ask({ method: "DELETE", path: "/v1/maintenance", admin: true });
});
