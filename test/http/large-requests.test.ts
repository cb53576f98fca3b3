// Large bodies are read and composed in a thread. What becomes of them is what becomes of small ones: over real submission
// and a real store. That the loop stays free is shown by where the work is done: submission gets no JSON of a large body.
import { afterAll, beforeAll, expect, test } from "vitest";
import { largeBytes } from "../../src/http/large-bodies.ts";
import type { Store } from "../../src/store/store.ts";
import { LargeRequest } from "../../src/submission/large-request.ts";
import { good } from "../submission/rig.ts";
import { list, text, type Answer, type Ask } from "./harness.ts";
import { startStored, submissionOver, type Stored } from "./stored.ts";

let store: Store;
let http: Stored;
/** What submission was given. */
const given: unknown[] = [];

beforeAll(async () => {
  http = await startStored((opened) => {
    const real = submissionOver(opened, "ok.test");
    return {
      submission: {
        ...real,
        send: (sender, request, ...rest) => (given.push(request), real.send(sender, request, ...rest)),
        sendBatch: (sender, requests, ...rest) => (
          given.push(...requests),
          real.sendBatch(sender, requests, ...rest)
        ),
      },
    };
  });
  ({ store } = http);
});
afterAll(() => http.stop());

const path = "/v1/messages";
function post(rest: string, raw: string | Buffer, more: Partial<Ask> = {}): Promise<Answer> {
  given.length = 0;
  return http.ask({ method: "POST", path: `${path}${rest}`, raw, ...more });
}

async function contentOf(id: string): Promise<string> {
  const message = await store.message(http.account.key, id);
  if (!message?.content) throw new Error("the message has no content");
  const parts: Buffer[] = [];
  for await (const chunk of store.openContent(message.content)) parts.push(chunk);
  return Buffer.concat(parts).toString("latin1");
}

/** White space makes a body large and changes nothing. */
const padded = (json: unknown): string => JSON.stringify(json) + " ".repeat(largeBytes);

/** What differs from send to send. */
const neutral = (mail: string): string =>
  mail
    .replaceAll(/=_[0-9a-f]{32}/g, "=_b")
    .replace(/^Received:.*\r\n(?:[ \t].*\r\n)*/, "")
    .replace(/Message-ID: .*\r\n/, "");

test("a body up to the threshold is read on the loop, a larger one in the thread", async () => {
  const filled = (bytes: number): string => {
    const json = JSON.stringify(good());
    return json + " ".repeat(bytes - json.length);
  };
  expect((await post("", filled(largeBytes))).status).toBe(202);
  expect(given[0]).not.toBeInstanceOf(LargeRequest);
  expect((await post("", filled(largeBytes + 1))).status).toBe(202);
  expect(given[0]).toBeInstanceOf(LargeRequest);
});

test.each([
  ["text", good({ text: "hello\r\n" })],
  ["html, of which the text is made", good({ text: undefined, html: "<p>Grüße</p><ul><li>x" })],
  [
    "a file",
    good({ attachments: [{ filename: "a.bin", content: Buffer.alloc(999, "ab").toString("base64") }] }),
  ],
  ["tags, fields and a name", good({ tags: ["a"], headers: { "X-A": "b" }, from: "Ä <a@ok.test>" })],
])("a message with %s is the same, whichever way its body was read", async (_, json) => {
  const small = await post("", JSON.stringify(json));
  const large = await post("", padded(json));
  expect([small.status, large.status]).toEqual([202, 202]);
  expect({ ...large.json, id: 0, message_id_header: 0 }).toEqual({
    ...small.json,
    id: 0,
    message_id_header: 0,
  });
  const [a, b] = [await contentOf(text(small.json["id"])), await contentOf(text(large.json["id"]))];
  expect(neutral(b)).toBe(neutral(a));
});

test("files of several megabytes arrive whole", async () => {
  const bytes = Buffer.alloc(6_000_001, "0123456789abcde");
  const json = good({ attachments: [{ filename: "a.bin", content: bytes.toString("base64") }] });
  const answer = await post("", JSON.stringify(json));
  expect(answer.status).toBe(202);
  const mail = await contentOf(text(answer.json["id"]));
  const encoded = mail.slice(mail.indexOf("\r\n\r\n", mail.indexOf("a.bin")) + 4, mail.lastIndexOf("\r\n--"));
  expect(Buffer.from(encoded, "base64").equals(bytes)).toBe(true);
});

test.each([
  ["no JSON", `{"a":${" ".repeat(largeBytes)}`, "invalid_request"],
  [
    "no UTF-8",
    Buffer.concat([Buffer.from('{"a":"\xff"}', "latin1"), Buffer.alloc(largeBytes, " ")]),
    "invalid_request",
  ],
  ["too many values", `[${"1,".repeat(largeBytes)}1]`, "validation_failed"],
  ["no object", `[${" ".repeat(largeBytes)}]`, "validation_failed"],
  ["fields that are unknown", padded({ ...good(), attachements: 1 }), "validation_failed"],
  ["a sender that is not verified", padded(good({ from: "a@bad.test" })), "sender_not_verified"],
  [
    "html of 26 MB for a sender that is not verified",
    JSON.stringify(good({ from: "a@bad.test", text: undefined, html: "x".repeat(26_000_000) })),
    "sender_not_verified",
  ],
  ["a text of 27 MB", JSON.stringify(good({ text: "x".repeat(27_000_000) })), "message_too_large"],
])("a large body with %s is refused as a small one is", async (_, raw, code) => {
  const answer = await post("", raw);
  expect(answer.json["code"]).toBe(code);
});

test("each of a large batch is judged by itself, in its order", async () => {
  const answer = await post(
    "/batch",
    padded({ messages: [good(), 5, good({ from: "a@bad.test" }), good()] }),
  );
  expect(given).toHaveLength(4);
  expect(given.every((one) => one instanceof LargeRequest)).toBe(true);
  expect(list(answer.json["data"]).map((one) => one["status"])).toEqual([202, 422, 422, 202]);
});

test.each([
  ["no messages", { messages: [] }],
  ["more than a hundred", { messages: Array.from({ length: 101 }, () => good()) }],
  ["something else in their place", { messages: "x" }],
  ["a field beside them", { messages: [good()], more: 1 }],
])("a large batch with %s is refused whole", async (_, json) => {
  const answer = await post("/batch", padded(json));
  expect(answer.status).toBe(422);
  expect(given).toEqual([]);
});

test("an Idempotency-Key with a large body replays the same body and refuses another", async () => {
  const key = { headers: { "idempotency-key": "large-1" } };
  const first = await post("", padded(good()), key);
  const again = await post("", padded(good()), key);
  expect([again.status, again.json["id"]]).toEqual([202, first.json["id"]]);
  expect(again.headers["idempotency-replayed"]).toBe("true");
  expect((await post("", `${padded(good())} `, key)).json).toMatchObject({
    code: "duplicate_idempotency_key",
  });
});

test("a large body for another resource is read in the thread too, and what it says comes whole", async () => {
  const answer = await http.ask({ method: "POST", path: `${path}/validate`, raw: padded(good()) });
  expect([answer.status, answer.json]).toEqual([200, { valid: true }]);
});
