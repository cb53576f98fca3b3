// A message that is sent again, in the whole program: what of it is new, what stays, and what stands against it.
import { afterAll, beforeAll, expect, test } from "vitest";
import { maxMessageBytes } from "../../src/mail/intake.ts";
import { bearer, eventually, sound, startAsking, type Answer, type Asking } from "../specification/asking.ts";
import { connectSmtp } from "../support/smtp-client.ts";
import { TravelClock } from "../support/travel-clock.ts";

const clock = new TravelClock();
let api: Asking;
beforeAll(async () => {
  api = await startAsking({ clock, tls: true, config: { retention: { content: "1h" } } });
});
afterAll(() => api.stop());

const admin = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  api.program.ask({
    method,
    target: path,
    listener: "admin",
    headers: { "content-type": "application/json", "x-svc-operator": "ann", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
const resend = (id: string, body?: unknown) => admin("POST", `/v1/messages/${id}/resend`, body);

async function sent(more: Record<string, unknown> = {}): Promise<string> {
  const { json } = await api.ask("POST", "/v1/messages", { body: sound(more) });
  return String(json.id);
}
const record = async (id: string) => (await api.ask("GET", `/v1/messages/${id}`)).json;
const source = async (id: string): Promise<string> => {
  const headers = { ...bearer(api.keys.admin), accept: "message/rfc822" };
  return (await api.program.ask({ method: "GET", target: `/v1/messages/${id}/content`, headers })).text;
};
const fieldOf = (text: string, name: string): string[] =>
  [...(text.split("\r\n\r\n")[0] ?? "").matchAll(new RegExp(`^${name}: *(.*(?:\r\n[ \t].*)*)`, "gim"))].map(
    ([, value = ""]) => value,
  );

test("a request that comes again with its Idempotency-Key sends nothing, and has the first answer", async () => {
  const first = await sent({ to: "delivered@simulator.svc" });
  const ask = (body: unknown) =>
    admin("POST", `/v1/messages/${first}/resend`, body, { "idempotency-key": "again-1" });
  const answer = await ask({});
  const repeated = await ask({});
  expect([repeated.status, repeated.text, repeated.headers["idempotency-replayed"]]).toEqual([
    202,
    answer.text,
    "true",
  ]);
  const both = await Promise.all([ask({}), ask({})]);
  expect(both.map(({ text }) => text)).toEqual([answer.text, answer.text]);
  const other = await ask({ to: ["delivered@simulator.svc"] });
  expect([other.status, JSON.parse(other.text).code]).toEqual([409, "duplicate_idempotency_key"]);
  const { json } = await api.ask("GET", "/v1/messages?limit=100");
  const made = (json.data as { id: string; resend_of: string | null }[]).filter(
    ({ resend_of }) => resend_of === first,
  );
  expect(made).toHaveLength(1);
});

test("a new message has the stored content, and ids, Message-ID and date of its own", async () => {
  const first = await sent({
    to: ["delivered@simulator.svc", "open@simulator.svc"],
    bcc: "click@simulator.svc",
    subject: "Grüße",
    tags: ["a"],
    metadata: { order: "1" },
    headers: { "X-Own": "kept" },
    attachments: [{ filename: "a.txt", content: Buffer.from("file").toString("base64") }],
  });
  clock.skip(5_000);
  const answer = await resend(first);
  expect(answer.status).toBe(202);
  const made = JSON.parse(answer.text);
  expect(answer.headers["location"]).toBe(`/v1/messages/${made.id}`);
  const [old, renewed] = [await record(first), await record(made.id)];
  expect(renewed).toMatchObject({
    resend_of: first,
    from: "a@ok.test",
    subject: "Grüße",
    tags: ["a"],
    metadata: { order: "1" },
    ip_pool: "default",
    test: true,
    message_id_header: made.message_id_header,
  });
  expect(old.resend_of).toBeNull();
  expect(made.id).not.toBe(first);
  expect(made.message_id_header).not.toBe(old.message_id_header);
  const typesOf = ({ recipients }: { recipients: { email: string; type: string }[] }) =>
    recipients.map(({ email, type }) => [email, type]);
  expect(typesOf(renewed)).toEqual(typesOf(old));

  const [before, after] = [await source(first), await source(made.id)];
  const bodyOf = (text: string): string => text.slice(text.indexOf("\r\n\r\n"));
  expect(bodyOf(after)).toBe(bodyOf(before));
  for (const name of ["From", "To", "Subject", "X-Own", "MIME-Version", "Content-Type"])
    expect(fieldOf(after, name)).toEqual(fieldOf(before, name));
  for (const name of ["Message-ID", "Date", "Received", "X-Feedback-Token"]) {
    expect(fieldOf(after, name), name).toHaveLength(1);
    expect(fieldOf(after, name), name).not.toEqual(fieldOf(before, name));
  }
  expect(fieldOf(after, "Received")[0]).toContain(made.id);
  expect(after).not.toContain(first);
});

test("it goes to those of its recipients that are named, and to nobody else", async () => {
  const first = await sent({ to: ["delivered@simulator.svc", "open@simulator.svc"] });
  const one = JSON.parse((await resend(first, { to: ["OPEN@simulator.svc"] })).text);
  expect(one.recipients).toEqual([{ email: "open@simulator.svc", type: "to" }]);
  const other = await resend(first, { to: ["click@simulator.svc", "nonsense"] });
  expect(other.status).toBe(422);
  expect(JSON.parse(other.text).errors).toMatchObject([
    { field: "to[0]", code: "validation_failed", issue: "is not a recipient of the message" },
    { field: "to[1]", code: "invalid_email_address" },
  ]);
});

test("mail of a test key stays here, and that of a live key that is sent again counts as live", async () => {
  const { key } = await api.newKey({ name: "live", scope: "admin", test: false });
  const live = await api.ask("POST", "/v1/messages", { key, body: sound({ to: "x@dead.test" }) });
  const again = JSON.parse((await resend(live.json.id)).text);
  expect((await record(again.id)).test).toBe(false);
  await admin("POST", `/v1/messages/${again.id}/cancel`, {});
  const inbox = await sent({ to: "ann@one.test" });
  const caught = JSON.parse((await resend(inbox)).text);
  await eventually(async () => (await record(caught.id)).status === "delivered");
  expect((await record(caught.id)).test).toBe(true);
});

test("a recipient that is suppressed by now and a sender that may no longer send are refused", async () => {
  const first = await sent({ to: ["ann@one.test", "bob@one.test"] });
  await admin("POST", "/v1/suppressions", { emails: ["ann@one.test"] });
  const refused = await resend(first);
  expect(JSON.parse(refused.text)).toMatchObject({
    code: "recipient_suppressed",
    errors: [{ field: "recipients[0]" }],
  });
  expect((await resend(first, { to: ["bob@one.test"] })).status).toBe(202);
  await admin("POST", "/v1/domains/ok.test/suspend", {});
  expect(JSON.parse((await resend(first, { to: ["bob@one.test"] })).text)).toMatchObject({
    code: "sender_not_verified",
  });
  await admin("POST", "/v1/domains/ok.test/resume", {});
  await admin("POST", "/v1/domains/ok.test/verify", {});
});

test("the audit log has who sent it again", async () => {
  const first = await sent();
  await resend(first);
  const audit = JSON.parse((await admin("GET", `/v1/audit?action=messages.resend&target=${first}`)).text);
  expect(audit.data[0]).toMatchObject({
    actor: { kind: "operator", name: "ann" },
    action: "messages.resend",
    target: first,
  });
});

test("large content is streamed again, byte for byte", async () => {
  const content = Buffer.alloc(300_000, "large ").toString("base64");
  const first = await sent({ attachments: [{ filename: "a.bin", content }] });
  const made = JSON.parse((await resend(first)).text);
  const [before, after] = [await source(first), await source(made.id)];
  expect(after.slice(after.indexOf("\r\n\r\n")) === before.slice(before.indexOf("\r\n\r\n"))).toBe(true);
});

/** The id of a mail to one recipient, sent by SMTP. */
async function sentBySmtp(mail: string): Promise<string> {
  const login = await api.program.admin("POST", "/v1/smtp_credentials", { name: "shop", test: true });
  const client = await connectSmtp({ port: api.program.mailPorts("smtps")[0] ?? 0, tls: true });
  await client.answer();
  await client.command("EHLO client.test");
  const plain = Buffer.from(`\0${login.username}\0${login.password}`).toString("base64");
  expect((await client.command(`AUTH PLAIN ${plain}`)).code).toBe(235);
  const { text } = await client.submit("bounce@elsewhere.test", ["delivered@simulator.svc"], `${mail}.\r\n`);
  client.end();
  return /msg_[0-9a-z]{26}/.exec(text)?.[0] ?? text;
}

test("a mail that came by SMTP keeps its fields, other hops and options, in a new message by the API", async () => {
  const mail = [
    "Received: from shop.example by relay.shop.example; Fri, 27 Nov 2026 09:00:00 +0000",
    "From: Shop <a@ok.test>",
    "To: Ann <delivered@simulator.svc>",
    "Subject: Your order",
    "Message-ID: <own-1@ok.test>",
    "Date: Fri, 27 Nov 2026 09:00:00 +0000",
    "X-Own:  as\tit was",
    "X-Svc-Tags: orders, shop",
    "X-Svc-Unsubscribe: true",
    "",
    "Hello.",
    "",
  ].join("\r\n");
  const first = await sentBySmtp(mail);
  const made = JSON.parse((await resend(first)).text);
  expect(await record(made.id)).toMatchObject({
    resend_of: first,
    source: "api",
    tags: ["orders", "shop"],
    from_name: "Shop",
  });
  expect(made.message_id_header).not.toBe("<own-1@ok.test>");
  const after = await source(made.id);
  expect(after).toContain("\r\nX-Own:  as\tit was\r\n");
  expect(after).not.toContain("own-1@ok.test");
  expect(fieldOf(after, "Received")).toHaveLength(2);
  expect(fieldOf(after, "Received")[1]).toContain("relay.shop.example");
  expect(after.endsWith("\r\n\r\nHello.\r\n")).toBe(true);
});

test("the largest mail that is taken is sent again, and one that what was added made too large is 409", async () => {
  const ofSize = (header: string): string => {
    const start = `From: a@ok.test\r\nTo: delivered@simulator.svc\r\n${header}\r\n`;
    const line = `${"x".repeat(98)}\r\n`;
    const text = start + line.repeat(Math.floor((maxMessageBytes - start.length - 102) / 100));
    return `${text}${"y".repeat(maxMessageBytes - text.length - 2)}\r\n`;
  };
  expect((await resend(await sentBySmtp(ofSize("Subject: x\r\n")))).status).toBe(202);
  const grown = await sentBySmtp(ofSize('X-Svc-Unsubscribe: {"url":"https://ok.test/u"}\r\n'));
  const refused = await resend(grown);
  expect([refused.status, JSON.parse(refused.text).code]).toEqual([409, "conflict"]);
  expect(JSON.parse(refused.text).detail).toContain("larger than 26,214,400 bytes");
});

test("what is not there is 404, and a message whose content is gone 409", async () => {
  expect((await resend("msg_none")).status).toBe(404);
  const first = await sent();
  await eventually(async () => (await record(first)).status === "delivered");
  const gone = async (): Promise<Answer["status"]> =>
    (await api.ask("GET", `/v1/messages/${first}/content`)).status;
  clock.skip(2 * 3_600_000);
  await eventually(async () => (await gone()) === 404);
  const refused = await resend(first);
  expect([refused.status, JSON.parse(refused.text).code]).toEqual([409, "conflict"]);
  expect(JSON.parse(refused.text).detail).toContain("no longer kept");
});
