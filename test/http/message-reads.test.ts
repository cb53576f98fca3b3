// Messages over a real store: what was accepted is shown with its attempts and content, listed, canceled,
// and caught in the inbox.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { accept, newMessage, settlementOf } from "../store/fixtures.ts";
import type { ManualClock } from "../support/clock.ts";
import { list, text } from "./harness.ts";
import { startStored, type Stored } from "./stored.ts";

let http: Stored;
let store: Store;
let clock: ManualClock;
let accountKey: number;
let ask: Stored["call"];

beforeAll(async () => {
  http = await startStored();
  ({ store, clock, call: ask } = http);
  accountKey = http.account.key;
});
afterAll(() => http.stop());
beforeEach(() => http.clock.advance(1000));

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

  test.each(["abc", "e30", ""])("%j is not a cursor", async (cursor) => {
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

describe("what only the operator sees", () => {
  const admin = (method: string, path: string) => ask(method, path, undefined, { admin: true });

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
