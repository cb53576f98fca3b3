// The routes over a real store: what is written is what is read back.
import { request } from "node:http";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Refusal } from "../../src/errors.ts";
import { parseDomain } from "../../src/mail/address.ts";
import type { SenderDomain } from "../../src/model/domain.ts";
import type { Endpoint } from "../../src/model/webhook.ts";
import type { Store } from "../../src/store/store.ts";
import {
  accept,
  mint,
  newDirectory,
  newEvent,
  newMessage,
  openSqlite,
  settlementOf,
} from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { list, startHttp, text, type Answer, type Ask, type Harness } from "./harness.ts";
import { asAdded } from "../support/domains.ts";

const high = { burst: 1e9, perSecond: 1e9 };
const rates = Object.fromEntries(
  [
    "messages-read",
    "suppressions-write",
    "suppressions-list",
    "suppressions-delete",
    "events-read",
    "webhooks-write",
    "default",
    "account",
  ].map((name) => [name, high]),
);

let http: Harness;
let store: Store;
let clock: ManualClock;
let accountKey: number;
let kicks = 0;
const verified: SenderDomain[] = [];
/** The types of event that webhooks were tested with. */
const tested: (string | undefined)[] = [];

beforeAll(async () => {
  clock = new ManualClock();
  store = await openSqlite(newDirectory(), clock);
  http = await startHttp({
    opened: { store, clock },
    config: { rates },
    webhooks: {
      kick: () => void kicks++,
      checkUrl(url) {
        if (url.startsWith("https://")) return Promise.resolve();
        const errors = [{ field: "url", code: "validation_failed" as const, issue: "is not https" }];
        return Promise.reject(new Refusal("validation_failed", "url is not https", { errors }));
      },
      test: (endpoint: Endpoint, type?: string) => {
        tested.push(type);
        return Promise.resolve({
          delivered: false,
          status: type === undefined ? 500 : null,
          durationMs: 12,
          failure: type === undefined ? null : "b.example does not resolve",
          eventId: endpoint.id.replace("whk", "evt"),
        });
      },
    },
    domains: {
      async add(account, given) {
        const name = parseDomain(given);
        if (!name.ok) throw new Refusal("validation_failed", `name ${name.issue}`, { field: "name" });
        const domain = await store.createDomain(newDomain(account, name.value));
        if (!domain) throw new Refusal("conflict", "The account has this domain already.");
        return domain;
      },
      verify(domain) {
        verified.push(domain);
        return Promise.resolve({ ...domain, status: "verified" as const, verifiedAt: clock.now() });
      },
    },
  });
  accountKey = http.account.key;
});
afterAll(() => http.stop());
beforeEach(() => clock.advance(1000));

const newDomain = (account: number, name: string): Omit<SenderDomain, "key"> => ({
  id: mint("dom", clock.now()),
  accountKey: account,
  name,
  status: "pending",
  returnPathDomain: `rp.${name}`,
  records: [
    {
      purpose: "spf",
      type: "TXT",
      name: `rp.${name}`,
      value: "v=spf1 -all",
      required: true,
      status: "unchecked",
      found: [],
      issue: null,
    },
  ],
  dkimKeys: [
    {
      selector: "s1",
      algorithm: "rsa-sha256",
      privatePem: "-----SECRET-----",
      publicKey: "AAAA",
      status: "active",
    },
  ],
  createdAt: clock.now(),
  updatedAt: clock.now(),
  verifiedAt: null,
  checkedAt: null,
  failingSince: null,
  ...asAdded,
});
const ask = (method: string, path: string, body?: unknown, more: Ask = {}): Promise<Answer> =>
  http.ask({ method, path, ...(body === undefined ? {} : { body }), ...more });
const alphabetical = (a: string, b: string): number => (a < b ? -1 : 1);
const fields = (answer: Answer): string[] => list(answer.json["errors"]).map((row) => text(row["field"]));

describe("messages", () => {
  test("a message is shown with its recipients, its status being what they have in common", async () => {
    const at = clock.now();
    const message = newMessage({ accountKey, at, to: ["ann@a.test", "bob@b.test"], lease: true });
    const [ann, bob] = await accept(store, message);
    const path = `/v1/messages/${message.message.id}`;
    expect((await ask("GET", path)).json).toMatchObject({
      id: message.message.id,
      from: "info@shop.example",
      from_name: "Shop",
      subject: "Your order",
      message_id_header: "<1@shop.example>",
      tags: ["orders"],
      metadata: { order: "17" },
      ip_pool: "default",
      source: "api",
      test: false,
      created_at: new Date(at).toISOString(),
      send_at: null,
      recipients: [
        { email: "ann@a.test", type: "to", open_count: 0, opened_at: null, complained_at: null },
        { email: "bob@b.test", type: "to" },
      ],
    });
    if (!ann || !bob) throw new Error("not leased");
    await store.settle(settlementOf(ann, at + 10));
    expect((await ask("GET", path)).json["status"]).toBe("processing");
    await store.settle(settlementOf(bob, at + 20, { outcome: "bounced" }));
    const { json } = await ask("GET", path);
    expect(json).toMatchObject({
      status: "partially_delivered",
      updated_at: new Date(at + 20).toISOString(),
    });
    expect(json["recipients"]).toMatchObject([
      {
        status: "delivered",
        smtp_code: "250",
        receiving_mta: "mx.a.test",
        sending_ip: "192.0.2.7",
        tls: { version: "TLSv1.3", policy: "none" },
      },
      { status: "bounced", smtp_code: "550", smtp_status: "5.1.1", smtp_response: "as told", attempts: 1 },
    ]);
  });

  test("each attempt is shown with its dialogue", async () => {
    const message = newMessage({ accountKey, at: clock.now(), lease: true });
    const [job] = await accept(store, message);
    if (!job) throw new Error("not leased");
    await store.settle(settlementOf(job, clock.now() + 30));
    const { json } = await ask("GET", `/v1/messages/${message.message.id}/attempts`);
    expect(json).toEqual({
      data: [
        {
          id: expect.stringMatching(/^att_/),
          recipient: "ann@a.test",
          attempt: 1,
          started_at: new Date(clock.now() + 10).toISOString(),
          ended_at: new Date(clock.now() + 30).toISOString(),
          sending_ip: "192.0.2.7",
          mx: [{ host: "mx.a.test", preference: 10 }],
          host: "mx.a.test",
          address: "198.51.100.1",
          tls: { version: "TLSv1.3", cipher: "TLS_AES_256_GCM_SHA384", verified: true, policy: "none" },
          outcome: "delivered",
          ambiguous: false,
          smtp_code: "250",
          smtp_status: "2.0.0",
          smtp_response: "as told",
          dialogue: [{ at_ms: 3, from: "them", text: "220 mx.a.test" }],
          next_attempt_at: null,
          decided_by: "final",
        },
      ],
    });
  });

  test("the content comes in parts, or as its bytes", async () => {
    const text = [
      "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=",
      "X-Order: 17",
      'Content-Type: multipart/mixed; boundary="b"',
      "",
      "--b",
      "Content-Type: text/plain; charset=utf-8",
      "",
      "Hello",
      "--b",
      "Content-Type: text/html",
      "",
      "<p>Hello</p>",
      "--b",
      'Content-Type: application/pdf; name="a.pdf"',
      'Content-Disposition: attachment; filename="a.pdf"',
      "Content-Transfer-Encoding: base64",
      "",
      "AAECAw==",
      "--b--",
      "",
    ].join("\r\n");
    const message = newMessage({ accountKey, at: clock.now(), text });
    await accept(store, message);
    const path = `/v1/messages/${message.message.id}/content`;
    const { json } = await ask("GET", path);
    expect(json).toMatchObject({
      attachments: [{ filename: "a.pdf", content_type: "application/pdf", size_bytes: 4 }],
    });
    expect(json["text"]).toContain("Hello");
    expect(json["html"]).toContain("<p>Hello</p>");
    expect(json["headers"]).toContainEqual({ name: "X-Order", value: "17" });
    const raw = await ask("GET", path, undefined, { headers: { accept: "text/html, message/rfc822" } });
    expect([raw.text, raw.headers["content-type"], raw.headers["content-length"]]).toEqual([
      text,
      "message/rfc822",
      String(text.length),
    ]);
    for (const [accept, type] of [
      ["message/rfc822;q=0.5", "message/rfc822"],
      ["application/json, MESSAGE/RFC822 ; Q=1.0", "message/rfc822"],
      ["*/*, message/rfc822;q=0.1", "message/rfc822"],
      ["message/rfc822;q=0", "application/json"],
      ["application/json, message/rfc822;q=0.5", "application/json"],
      ["application/json;q=0.2, message/rfc822;q=0.1", "application/json"],
      ["*/*", "application/json"],
    ] as const) {
      const { headers } = await ask("HEAD", path, undefined, { headers: { accept } });
      expect([accept, headers["content-type"]]).toEqual([accept, type]);
    }
    const head = await ask("HEAD", path, undefined, { headers: { accept: "message/rfc822" } });
    expect([head.status, head.text, head.headers["content-length"]]).toEqual([200, "", String(text.length)]);
  });

  test("a large message is streamed whole", async () => {
    const body = Buffer.from(`Subject: big\r\n\r\n${"0123456789abcdef\r\n".repeat(200_000)}`);
    const content = await store.putContent(
      (async function* () {
        for (let at = 0; at < body.length; at += 60_000) yield body.subarray(at, at + 60_000);
      })(),
    );
    const message = newMessage({ accountKey, at: clock.now(), content });
    await accept(store, message);
    const path = `/v1/messages/${message.message.id}/content`;
    const { text, status } = await ask("GET", path, undefined, {
      headers: { accept: "message/rfc822" },
      admin: true,
    });
    expect([status, text.length, text === body.toString()]).toEqual([200, body.length, true]);
  });

  test("content that retention removed is a 404 that says so, and the message is still there", async () => {
    const at = clock.now();
    const message = newMessage({ accountKey, at, lease: true });
    const [job] = await accept(store, message);
    if (!job) throw new Error("no job");
    await store.settle(settlementOf(job, at));
    await store.purge({
      now: at,
      contentBefore: at,
      messagesBefore: 0,
      eventsBefore: 0,
      auditBefore: 0,
      limit: 100_000,
    });
    const path = `/v1/messages/${message.message.id}`;
    for (const accept of ["application/json", "message/rfc822"]) {
      const gone = await ask("GET", `${path}/content`, undefined, { headers: { accept } });
      expect([gone.status, gone.json["code"], gone.json["detail"]]).toEqual([
        404,
        "resource_not_found",
        "The content of the message is no longer kept.",
      ]);
    }
    expect((await ask("GET", path)).json).toMatchObject({ status: "delivered", subject: "Your order" });
    expect((await ask("GET", `${path}/attempts`)).json["data"]).toMatchObject([
      { outcome: "delivered", dialogue: [] },
    ]);
  });

  test("what waits is canceled once; what is over is not", async () => {
    const message = newMessage({ accountKey, at: clock.now(), sendAt: clock.now() + 3_600_000 });
    await accept(store, message);
    const path = `/v1/messages/${message.message.id}/cancel`;
    const first = await ask("POST", path);
    expect([first.status, first.json["status"]]).toEqual([200, "canceled"]);
    const second = await ask("POST", path, {});
    expect([second.status, second.json["code"]]).toEqual([409, "message_not_cancelable"]);
    expect((await ask("POST", "/v1/messages/msg_none/cancel")).status).toBe(404);
  });

  test("a list is walked without skipping or repeating while messages are added", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 7; i++) {
      const message = newMessage({ accountKey, at: clock.now(), to: ["walk@w.test"] });
      await accept(store, message);
      ids.unshift(message.message.id);
    }
    const seen: unknown[] = [];
    let cursor: string | null = null;
    do {
      const query = `/v1/messages?to=WALK%40w.test&limit=3${cursor === null ? "" : `&cursor=${cursor}`}`;
      const { json } = await ask("GET", query);
      seen.push(...list(json["data"]).map((row) => row["id"]));
      cursor = json["next_cursor"] === null ? null : text(json["next_cursor"]);
      expect(json["has_more"]).toBe(cursor !== null);
      await accept(store, newMessage({ accountKey, at: clock.now() + 1, to: ["walk@w.test"] }));
    } while (cursor !== null);
    expect(seen).toEqual(ids);
  });

  test.each(["abc", "e30", ""])("%j is no cursor", async (cursor) => {
    for (const path of ["/v1/messages", "/v1/events", "/v1/suppressions"]) {
      const { status, json } = await ask("GET", `${path}?cursor=${cursor}`);
      expect([path, status, json["code"], json["field"]]).toEqual([path, 400, "invalid_request", "cursor"]);
    }
  });

  test("a message of another account is not there", async () => {
    const message = newMessage({ accountKey: accountKey + 1, at: clock.now() });
    await accept(store, message).catch(() => undefined);
    expect((await ask("GET", `/v1/messages/${message.message.id}`)).status).toBe(404);
  });
});

describe("events", () => {
  test("a record is the stored envelope byte for byte, with its deliveries", async () => {
    const made = newEvent({ accountKey, receivedAt: clock.now(), type: "message.delivered" });
    const body = made.body
      .replace('"subject":"Webhook test"', '"subject":"\\u00e9 } ]"')
      .replace('"delivery_time_ms":1200', '"delivery_time_ms":1.2e3');
    const event = { ...made, body };
    await store.recordEvent(event);
    const { text } = await ask("GET", `/v1/events?event_id=${event.id}`);
    expect(text).toContain(
      `{"data":[${body.slice(0, -1)},"deliveries":[]}],"has_more":false,"next_cursor":"`,
    );
  });

  test("polling the last cursor tails the stream, and types are chosen by a list or by repetition", async () => {
    const end = async () => text((await ask("GET", "/v1/events?limit=1000")).json["next_cursor"]);
    const cursor = await end();
    for (const type of ["message.bounced", "message.delivered", "message.deferred"]) {
      await store.recordEvent(newEvent({ accountKey, receivedAt: clock.now(), type }));
    }
    const types = async (query: string) =>
      list((await ask("GET", `/v1/events?cursor=${cursor}${query}`)).json["data"]).map((row) => row["event"]);
    expect(await types("")).toEqual(["message.bounced", "message.delivered", "message.deferred"]);
    expect(await types("&event=message.bounced,message.deferred")).toEqual([
      "message.bounced",
      "message.deferred",
    ]);
    expect(await types("&event=message.deferred&event=message.bounced")).toEqual([
      "message.bounced",
      "message.deferred",
    ]);
    expect((await ask("GET", `/v1/events?cursor=${await end()}`)).json).toMatchObject({
      data: [],
      has_more: false,
    });
  });
});

describe("the stream of events", () => {
  /** Lines of a stream as they come. */
  function tail(query: string) {
    const lines: string[] = [];
    let rest = "";
    let status = 0;
    let ended = false;
    const req = request({ socketPath: http.socket, path: `/v1/events/tail${query}` }, (res) => {
      status = res.statusCode ?? 0;
      res.on("data", (chunk: Buffer) => {
        const parts = (rest + chunk.toString()).split("\n");
        rest = parts.pop() ?? "";
        lines.push(...parts);
      });
      res.on("close", () => (ended = true));
    });
    req.on("error", () => (ended = true));
    req.end();
    const until = async (condition: () => boolean) => {
      const end = performance.now() + 100_000;
      while (!condition() && performance.now() < end) await new Promise((resolve) => setImmediate(resolve));
      expect(condition()).toBe(true);
    };
    return { lines, until, close: () => req.destroy(), status: () => status, ended: () => ended };
  }
  const record = async (type = "message.delivered") => {
    const event = newEvent({ accountKey, receivedAt: clock.now(), type });
    const body = event.body.replace(
      '"data"',
      `"occurred_at":"${new Date(clock.now()).toISOString()}","data"`,
    );
    await store.recordEvent({ ...event, body });
    return event.id;
  };
  const idOf = (line: string) => (JSON.parse(line) as { event_id: string }).event_id;

  test("begins now, brings what is committed, beats every 15 seconds", async () => {
    await record();
    const stream = tail("");
    await stream.until(() => stream.lines.length === 1);
    expect([stream.status(), stream.lines]).toEqual([200, [""]]);
    const id = await record();
    await stream.until(() => stream.lines.length === 2);
    expect(idOf(stream.lines[1] ?? "")).toBe(id);
    await clock.advance(15_000);
    await stream.until(() => stream.lines.length === 3);
    expect(stream.lines[2]).toBe("");
    stream.close();
  });

  test("resumes after an event or a cursor, and shows the types that are asked for", async () => {
    const first = await record();
    const bounced = await record("message.bounced");
    const last = await record();
    const all = tail(`?after=${first}`);
    await all.until(() => all.lines.length === 3);
    expect(all.lines.slice(1).map(idOf)).toEqual([bounced, last]);
    all.close();
    const some = tail(`?after=${first}&event=message.bounced`);
    await some.until(() => some.lines.length === 2);
    expect(some.lines.slice(1).map(idOf)).toEqual([bounced]);
    some.close();
    for (const query of [
      "?after=evt_01jd0000000000000000000000",
      "?after=nonsense",
      "?event=lost",
      "?colour=red",
    ]) {
      expect((await http.ask({ path: `/v1/events/tail${query}`, admin: true })).status).toBe(400);
    }
  });

  test("is told in its own words where it cannot begin: --after takes an event", async () => {
    for (const after of ["nonsense", "evt_x", ""]) {
      const { status, json } = await ask("GET", `/v1/events/tail?after=${after}`, undefined, { admin: true });
      expect([status, json["code"], json["field"], json["detail"]]).toEqual([
        400,
        "invalid_request",
        "after",
        "after is neither an event's id (evt_ and 26 characters) nor a cursor of this list.",
      ]);
    }
    const gone = await ask("GET", `/v1/events/tail?after=${mint("evt", clock.now())}`, undefined, {
      admin: true,
    });
    expect([gone.status, gone.json["detail"]]).toEqual([400, "There is no such event."]);
  });

  test("a long backlog comes whole and in order", async () => {
    const first = await record();
    const ids: string[] = [];
    for (let i = 0; i < 450; i++) ids.push(await record());
    const stream = tail(`?after=${first}`);
    await stream.until(() => stream.lines.length >= 451);
    expect(stream.lines.slice(1).map(idOf)).toEqual(ids);
    stream.close();
  });

  test("lets go of everything when its reader goes", async () => {
    const before = clock.pending;
    const stream = tail("");
    await stream.until(() => stream.lines.length === 1);
    expect(clock.pending).toBe(before + 1); // the heartbeat
    stream.close();
    await stream.until(() => clock.pending === before);
  });

  test("ends when the server stops", async () => {
    const own = await startHttp({
      store: {
        listEvents: () => Promise.resolve({ rows: [], next: "n", hasMore: false }),
        onCommit: () => () => undefined,
      },
    });
    const ended = own.ask({ path: "/v1/events/tail", admin: true });
    while (own.clock.pending === 0) await new Promise((resolve) => setImmediate(resolve));
    await own.stop();
    expect(await ended).toMatchObject({ status: 200, text: "\n" });
  });

  test("is not there for an API key", async () => {
    expect((await ask("GET", "/v1/events/tail")).status).toBe(404);
  });
});

describe("webhooks", () => {
  test("the secret is shown once: 64 printable ASCII characters", async () => {
    const made = await ask("POST", "/v1/webhooks", {
      url: "https://hooks.example/in",
      events: ["message.bounced", "message.bounced"],
    });
    expect(made.status).toBe(201);
    expect(made.json["secret"]).toMatch(/^[\x21-\x7e]{64}$/);
    const id = text(made.json["id"]);
    expect(made.headers["location"]).toBe(`/v1/webhooks/${id}`);
    const { json, text: shown } = await ask("GET", `/v1/webhooks/${id}`);
    expect(shown).not.toContain(made.json["secret"]);
    expect(json).toEqual({
      id,
      url: "https://hooks.example/in",
      events: ["message.bounced"],
      all_events: false,
      description: null,
      active: true,
      format: "svc",
      secret_hint: text(made.json["secret"]).slice(-4),
      created_at: new Date(clock.now()).toISOString(),
      updated_at: new Date(clock.now()).toISOString(),
      last_success_at: null,
      last_failure_at: null,
      consecutive_failures: 0,
    });
    const other = await ask("POST", "/v1/webhooks", { url: "https://hooks.example/in" });
    expect(list(other.json["events"])).toHaveLength(9);
    expect(other.json["secret"]).not.toBe(made.json["secret"]);
  });

  test("is changed, paused, resumed with a kick, tested and deleted", async () => {
    const { json } = await ask("POST", "/v1/webhooks", { url: "https://hooks.example/a", description: "x" });
    const path = `/v1/webhooks/${text(json["id"])}`;
    expect((await ask("PATCH", path, { active: false, description: null })).json).toMatchObject({
      active: false,
      description: null,
    });
    const before = kicks;
    expect((await ask("PATCH", path, { active: true, backlog: "discard" })).json).toMatchObject({
      active: true,
    });
    expect(kicks).toBe(before + 1);
    expect(
      (await ask("PATCH", path, { events: ["ip.delisted"], url: "https://b.example/" })).json,
    ).toMatchObject({
      events: ["ip.delisted"],
      url: "https://b.example/",
    });
    expect((await ask("PATCH", path, {})).status).toBe(200);
    expect((await ask("POST", `${path}/test`)).json).toMatchObject({
      delivered: false,
      status: 500,
      duration_ms: 12,
      error: null,
    });
    expect((await ask("POST", `${path}/test`, { event: "ip.delisted" })).json).toMatchObject({
      status: null,
      error: "b.example does not resolve",
    });
    expect(tested).toEqual([undefined, "ip.delisted"]);
    expect((await ask("DELETE", path)).status).toBe(204);
    expect((await ask("DELETE", path)).status).toBe(404);
    expect((await ask("POST", `${path}/test`)).status).toBe(404);
  });

  test.each([
    [{ url: "http://x.example/", events: [] }, ["events", "url"]],
    [{ url: "http://x.example/", evnts: [], events: ["lost"] }, ["events[0]", "evnts", "url"]],
    [{ url: "" }, ["url"]],
    [{ url: `https://x.example/${"a".repeat(2048)}`, description: "x".repeat(501) }, ["description", "url"]],
    [{ url: null, active: 1 }, ["active", "url"]],
    [{}, ["url"]],
  ])("%j is refused with every problem at once", async (body, expected) => {
    const answer = await ask("POST", "/v1/webhooks", body);
    expect([answer.status, fields(answer).toSorted(alphabetical)]).toEqual([422, expected]);
  });
});

describe("domains", () => {
  test("a domain is added, listed, verified and deleted, and its private keys stay inside", async () => {
    const made = await ask("POST", "/v1/domains", { name: "B\u00fccher.example" });
    expect([made.status, made.headers["location"]]).toEqual([201, "/v1/domains/xn--bcher-kva.example"]);
    expect(made.json).toMatchObject({
      name: "xn--bcher-kva.example",
      status: "pending",
      return_path_domain: "rp.xn--bcher-kva.example",
      records: [{ purpose: "spf", type: "TXT", required: true, status: "unchecked", found: [], issue: null }],
      verified_at: null,
    });
    const path = "/v1/domains/B%C3%BCCHER.example";
    const shown = await ask("GET", path);
    expect(shown.text).not.toMatch(/SECRET|private/i);
    expect((await ask("POST", "/v1/domains", { name: "xn--bcher-kva.example" })).status).toBe(409);
    expect((await ask("POST", `${path}/verify`)).json).toMatchObject({ status: "verified" });
    expect(list((await ask("GET", "/v1/domains")).json["data"]).map((row) => row["name"])).toContain(
      "xn--bcher-kva.example",
    );
    expect((await ask("DELETE", path)).status).toBe(204);
    expect((await ask("GET", path)).status).toBe(404);
  });

  test("the simulator's own domain is nobody's sender", async () => {
    const refused = await ask("POST", "/v1/domains", { name: "Simulator.SVC." });
    expect([refused.status, fields(refused)]).toEqual([422, ["name"]]);
  });

  test("a name that is none is 422 where it is given and 404 where it is asked for", async () => {
    expect(await ask("POST", "/v1/domains", { name: "no domain" })).toMatchObject({
      status: 422,
      json: { field: "name" },
    });
    expect((await ask("GET", "/v1/domains/no%20domain")).status).toBe(404);
  });

  test("a resolver that fails is 502, one that hangs 504 after ten seconds", async () => {
    const running = await startHttp({
      store: { domainByName: (account, name) => Promise.resolve({ ...newDomain(account, name), key: 1 }) },
      domains: {
        verify: ({ name }) =>
          name === "hang.example" ? new Promise(() => undefined) : Promise.reject(new Error("SERVFAIL")),
      },
    });
    expect(await running.ask({ method: "POST", path: "/v1/domains/fail.example/verify" })).toMatchObject({
      status: 502,
      json: { code: "upstream_error" },
    });
    const asked = running.ask({ method: "POST", path: "/v1/domains/hang.example/verify" });
    while (running.clock.pending === 0) await new Promise((resolve) => setImmediate(resolve));
    await running.clock.advance(10_000);
    expect((await asked).status).toBe(504);
    await running.stop();
  });
});

describe("suppressions", () => {
  test("are added in bulk, each address once, and found by any spelling", async () => {
    const emails = [
      "User+Tag@Example.Test",
      "user+tag@example.TEST",
      "a/b%25c@example.test",
      "x@b\u00fccher.example",
    ];
    const first = await ask("POST", "/v1/suppressions", {
      emails,
      reason: "complaint",
      description: "import",
    });
    expect([first.status, first.json]).toMatchObject([
      201,
      { added: 3, updated: 0, already_suppressed: 0, invalid: [] },
    ]);
    const again = await ask("POST", "/v1/suppressions", { emails: [emails[0]] });
    expect([again.status, again.json]).toMatchObject([200, { added: 0, updated: 0, already_suppressed: 1 }]);

    const found = await ask("GET", "/v1/suppressions/USER%2Btag%40example.test");
    expect(found.json).toEqual({
      email: "User+Tag@Example.Test",
      reason: "complaint",
      source: "api",
      message_id: null,
      event_id: null,
      smtp_code: null,
      smtp_status: null,
      description: "import",
      created_at: expect.any(String),
      updated_at: expect.any(String),
      expires_at: null,
    });
    expect((await ask("GET", "/v1/suppressions/user+tag@example.test")).status).toBe(200);
    expect((await ask("GET", "/v1/suppressions/a%2Fb%2525c@example.test")).status).toBe(200);
    expect((await ask("GET", "/v1/suppressions/a%2Fb%25c@example.test")).status).toBe(404);
    expect((await ask("GET", "/v1/suppressions/x@xn--bcher-kva.example")).status).toBe(200);
    expect((await ask("GET", "/v1/suppressions/nobody")).status).toBe(404);
    expect((await ask("DELETE", "/v1/suppressions/USER+TAG@EXAMPLE.TEST")).status).toBe(204);
    expect((await ask("DELETE", "/v1/suppressions/user+tag@example.test")).status).toBe(404);
  });

  test("with their own reasons, where a stronger one replaces a weaker", async () => {
    const entry = (reason: string) => ({
      suppressions: [{ email: "strong@s.test", reason, description: reason }],
    });
    expect((await ask("POST", "/v1/suppressions", entry("manual"))).json).toMatchObject({ added: 1 });
    expect(await ask("POST", "/v1/suppressions", entry("hard_bounce"))).toMatchObject({
      status: 201,
      json: { updated: 1 },
    });
    expect((await ask("POST", "/v1/suppressions", entry("unsubscribe"))).json).toMatchObject({
      updated: 0,
      already_suppressed: 1,
    });
    expect((await ask("GET", "/v1/suppressions/strong@s.test")).json["reason"]).toBe("hard_bounce");
  });

  test("keep their description where a stronger reason brings none", async () => {
    const add = (body: object) => ask("POST", "/v1/suppressions", { emails: ["told@s.test"], ...body });
    const described = async () => (await ask("GET", "/v1/suppressions/told@s.test")).json["description"];
    await add({ description: "asked on the phone" });
    await add({ reason: "unsubscribe" });
    expect(await described()).toBe("asked on the phone");
    await add({ reason: "complaint", description: "from the feedback loop" });
    expect(await described()).toBe("from the feedback loop");
  });

  test("that would have ended before they began are refused", async () => {
    const add = (at: number) =>
      ask("POST", "/v1/suppressions", {
        emails: ["late@s.test", "nobody"],
        expires_at: new Date(at).toISOString(),
      });
    for (const at of [0, clock.now()]) {
      const refused = await add(at);
      expect([refused.status, fields(refused)]).toEqual([422, ["emails[1]", "expires_at"]]);
    }
    expect(fields(await add(clock.now() + 60_000))).toEqual(["emails[1]"]);
    const wrong = await ask("POST", "/v1/suppressions", { emails: ["late@s.test"], expires_at: "soon" });
    expect(fields(wrong)).toEqual(["expires_at"]);
  });

  test("invalid addresses fail the whole, or are told apart where they may be skipped", async () => {
    const emails = ["ok@skip.test", "nobody", "a@skip.test>\r\nRCPT TO:<b@x.test", "also@@skip.test"];
    const failed = await ask("POST", "/v1/suppressions", { emails });
    expect([failed.status, failed.json["code"], fields(failed)]).toEqual([
      422,
      "invalid_email_address",
      ["emails[1]", "emails[2]", "emails[3]"],
    ]);
    expect((await ask("GET", "/v1/suppressions/ok@skip.test")).status).toBe(404);
    const skipped = await ask("POST", "/v1/suppressions", { emails, on_invalid: "skip" });
    expect([
      skipped.status,
      skipped.json["added"],
      list(skipped.json["invalid"]).map((row) => row["email"]),
    ]).toEqual([201, 1, emails.slice(1)]);
  });

  test.each<[string, object, string[]]>([
    ["neither form", {}, ["emails"]],
    ["both forms", { emails: ["a@x.test"], suppressions: [{ email: "b@x.test" }] }, ["emails"]],
    ["nobody", { emails: [] }, ["emails"]],
    ["1,001 addresses", { emails: Array.from({ length: 1001 }, (_, i) => `a${i}@x.test`) }, ["emails"]],
    [
      "wrong types",
      { emails: [1, null, "a@x.test"], reason: "spite", expires_at: 7 },
      ["emails[0]", "emails[1]", "expires_at", "reason"],
    ],
    [
      "a misspelt field",
      { suppressions: [{ email: "a@x.test", raeson: "manual" }] },
      ["suppressions[0].raeson"],
    ],
  ])("%s is refused", async (_name, body, expected) => {
    const answer = await ask("POST", "/v1/suppressions", body);
    expect([answer.status, fields(answer).toSorted(alphabetical)]).toEqual([422, expected]);
  });

  test("are filtered, and the operator's are marked as such", async () => {
    await http.ask({
      method: "POST",
      path: "/v1/suppressions",
      admin: true,
      body: { emails: ["op@filter.test"], reason: "unsubscribe" },
    });
    const emails = async (query: string) =>
      list((await ask("GET", `/v1/suppressions?${query}`)).json["data"]).map((row) => row["email"]);
    expect(await emails("source=cli&domain=FILTER.test")).toEqual(["op@filter.test"]);
    expect(await emails("email_prefix=OP%40filter&reason=unsubscribe")).toEqual(["op@filter.test"]);
    expect(await emails("domain=filter.test&reason=complaint")).toEqual([]);
  });
});

describe("what only the operator sees", () => {
  const admin = (method: string, path: string, body?: unknown) => ask(method, path, body, { admin: true });

  test("SMTP credentials are made, listed, rotated and revoked", async () => {
    const made = await admin("POST", "/v1/smtp_credentials", { name: "shop" });
    expect(made.json).toMatchObject({
      name: "shop",
      username: http.account.id.replace("acct_", "smtp_"),
      test: false,
      status: "active",
    });
    const [id, username, password] = [
      text(made.json["id"]),
      text(made.json["username"]),
      text(made.json["password"]),
    ];
    const login = (secret: string) => http.access.authenticateSmtp(username, secret, "192.0.2.1");
    expect(await login(password)).toMatchObject({ account: { key: accountKey }, test: false });
    await expect(
      http.access.authenticateSmtp(`${username}_test`, password, "192.0.2.1"),
    ).rejects.toMatchObject({ code: "invalid_api_key" });

    const rotated = await admin("POST", `/v1/smtp_credentials/${id}/rotate`);
    expect(rotated.status).toBe(201);
    await expect(login(password)).rejects.toMatchObject({ code: "invalid_api_key" });
    const next = { id: text(rotated.json["id"]), password: text(rotated.json["password"]) };
    await login(next.password);
    expect((await admin("POST", `/v1/smtp_credentials/${id}/rotate`)).status).toBe(409);
    expect((await admin("POST", `/v1/smtp_credentials/${next.id}/revoke`)).json).toMatchObject({
      status: "revoked",
    });
    await expect(login(next.password)).rejects.toMatchObject({ code: "invalid_api_key" });
    expect((await admin("POST", "/v1/smtp_credentials/cred_none/revoke")).status).toBe(404);

    const listed = await admin("GET", "/v1/smtp_credentials");
    expect(new Map(list(listed.json["data"]).map((row) => [row["id"], row["status"]]))).toEqual(
      new Map([
        [id, "revoked"],
        [next.id, "revoked"],
      ]),
    );
    expect(listed.text).not.toContain(password);
  });

  test("an API key is no SMTP password", async () => {
    const { value } = await http.key("admin");
    const name = http.account.id.replace("acct_", "smtp_");
    await expect(http.access.authenticateSmtp(name, value, "192.0.2.9")).rejects.toMatchObject({
      code: "invalid_api_key",
    });
  });

  test("the inbox shows what was caught, newest first, and is emptied", async () => {
    const message = newMessage({ accountKey, at: clock.now(), to: ["in@box.test"], lease: true });
    const [job] = await accept(store, message);
    if (!job) throw new Error("not leased");
    await store.settle(settlementOf(job, clock.now(), { catchInInbox: true }));
    const { json } = await admin("GET", "/v1/inbox");
    expect(list(json["data"])[0]).toMatchObject({
      message_id: message.message.id,
      to: "in@box.test",
      from: "info@shop.example",
      subject: "Your order",
    });
    expect((await admin("DELETE", "/v1/inbox")).json).toEqual({ cleared: 1 });
    expect((await admin("GET", "/v1/inbox")).json).toMatchObject({
      data: [],
      has_more: false,
      next_cursor: null,
    });
  });
});

describe("a key's life", () => {
  test("an expired one is 401, and a use is written down at most once a minute", async () => {
    const { value, key } = await http.key("admin", { expiresAt: clock.now() + 5_000 });
    const use = async () => (await ask("GET", "/v1/domains", undefined, { key: value })).status;
    expect(await use()).toBe(200);
    const firstUse = clock.now();
    await clock.advance(4_000);
    expect(await use()).toBe(200);
    await store.noteUse({ apiKeys: [], smtpCredentials: [], at: 0 }); // whatever was being written is on disk after this
    const row = await store.apiKey(accountKey, key.id);
    expect(row?.lastUsedAt).toBe(firstUse);
    await clock.advance(1_000);
    expect(await use()).toBe(401);
  });
});

describe("a value of the wrong shape", () => {
  const told = async (method: string, path: string, body?: unknown): Promise<string[]> => {
    const { status, json } = await ask(method, path, body);
    expect([400, 422]).toContain(status);
    return list(json["errors"]).map((row) => `${text(row["field"])} ${text(row["issue"])}`);
  };

  test("in a body is told in words: what was expected, and what was found", async () => {
    expect(await told("POST", "/v1/domains", {})).toEqual(["name is required: a string"]);
    expect(await told("POST", "/v1/webhooks", { url: 5, active: "no", events: ["message.lost"] })).toEqual([
      "url expected a string, found 5",
      expect.stringMatching(/^events\[0\] expected one of message\.delivered, .*; found "message\.lost"$/),
      'active expected true or false, found "no"',
    ]);
    expect(await told("POST", "/v1/suppressions", { emails: "a@x.test", on_invalid: "drop" })).toEqual([
      'emails expected an array, found "a@x.test"',
      'on_invalid expected one of fail, skip; found "drop"',
    ]);
  });

  test("in a query too, at the parameter's own name", async () => {
    expect(await told("GET", "/v1/messages?status=lost")).toEqual([
      'status expected one of scheduled, queued, sending, delivered, deferred, bounced, canceled, partially_delivered, processing; found "lost"',
    ]);
    expect(await told("GET", "/v1/events?event=message.delivered,foo&order=up")).toEqual([
      expect.stringMatching(/^event expected one of message\.delivered, .*; found "foo"$/),
      'order expected one of asc, desc; found "up"',
    ]);
    expect(await told("GET", `/v1/messages?tag=${"x".repeat(999)}`)).toEqual([
      expect.stringMatching(/^tag expected at most 998 characters, found "x{60}…"$/),
    ]);
  });
});

test("whatever the JSON, no route answers with a 5xx", async () => {
  const { json: hook } = await ask("POST", "/v1/webhooks", { url: "https://fuzz.example/" });
  const hookPath = `/v1/webhooks/${text(hook["id"])}`;
  const names = [
    "url",
    "events",
    "active",
    "description",
    "backlog",
    "event",
    "name",
    "scope",
    "emails",
    "suppressions",
    "reason",
    "expires_at",
    "on_invalid",
    "__proto__",
    "toString",
  ];
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.string({ unit: "binary" }),
    fc.constantFrom(
      "https://x.example/",
      "a@x.test",
      "message.bounced",
      "send",
      "skip",
      "\ud800",
      "a\r\nb",
      "\0",
      "2026-11-27T00:00:00Z",
      "+275760-09-13T00:00:00.001Z",
    ),
    fc.array(fc.oneof(fc.string(), fc.constant("a@x.test"), fc.record({ email: fc.string() })), {
      maxLength: 4,
    }),
  );
  const body = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 6 }),
  );
  const targets: [string, string, boolean][] = [
    ["POST", "/v1/webhooks", false],
    ["PATCH", hookPath, false],
    ["POST", `${hookPath}/test`, false],
    ["POST", "/v1/domains", false],
    ["POST", "/v1/suppressions", false],
    ["POST", "/v1/keys", true],
    ["POST", "/v1/smtp_credentials", true],
  ];
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...targets), body, async ([method, path, admin], content) => {
      const { status, text } = await ask(method, path, content, { admin });
      if (status >= 500) throw new Error(`${method} ${path}: ${status} ${text}`);
    }),
    { numRuns: 400 },
  );
});

test("whatever the path and query, no route answers with a 5xx", async () => {
  const paths = [
    "/v1/messages",
    "/v1/messages/{}",
    "/v1/messages/{}/attempts",
    "/v1/messages/{}/content",
    "/v1/events",
    "/v1/suppressions",
    "/v1/suppressions/{}",
    "/v1/domains/{}",
    "/v1/webhooks/{}",
  ];
  const parameters = [
    "limit",
    "cursor",
    "to",
    "status",
    "event",
    "created_after",
    "occurred_before",
    "email_prefix",
    "domain",
    "subject",
    "tag",
  ];
  const value = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom("\0", "%", "a@x.test", "..", "2026-11-27", "-1", "1e9", "\u202e"),
  );
  const encode = (text: string): string => encodeURIComponent(text.toWellFormed());
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...paths),
      value,
      fc.dictionary(fc.constantFrom(...parameters), value, { maxKeys: 3 }),
      async (path, part, query) => {
        const search = Object.entries(query).map(([name, text]) => `${name}=${encode(text)}`);
        const { status, text } = await ask("GET", `${path.replace("{}", encode(part))}?${search.join("&")}`);
        if (status >= 500) throw new Error(`${path}: ${status} ${text}`);
      },
    ),
    { numRuns: 400 },
  );
});
