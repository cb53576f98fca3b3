// The fields of a send in the specification of the API: what each takes, and what it refuses.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { delivered, sound, startAsking, type Answer, type Asking } from "./asking.ts";

let api: Asking;
beforeAll(async () => {
  api = await startAsking();
  await api.ask("POST", "/v1/suppressions", { body: { emails: ["gone@one.test"] } });
});
afterAll(() => api?.stop());

const send = (more: Record<string, unknown>): Promise<Answer> =>
  api.ask("POST", "/v1/messages", { body: sound(more) });
const inHours = (hours: number): string => new Date(Date.now() + hours * 3_600_000).toISOString();

describe("a field of a send is taken", () => {
  const box = (n: number) => Array.from({ length: n }, (_, i) => `r${i}@one.test`);
  const file = { filename: "a.txt", content: "aGk=" };
  const rows: [string, Record<string, unknown>][] = [
    ["from, an address", { from: "a@ok.test" }],
    ["from, with a name", { from: "Shop <a@ok.test>" }],
    ["from, an object", { from: { email: "a@ok.test", name: "Sh, op" } }],
    ["from, a local part beyond ASCII", { from: "jürgen@ok.test" }],
    ["from, a subdomain of a verified domain", { from: "a@news.ok.test" }],
    ["to, one", { to: "r@one.test" }],
    ["to, several of every kind", { to: ["r@one.test", "R <s@one.test>", { email: "t@one.test" }] }],
    ["to, an IDN", { to: "r@bücher.test" }],
    ["50 recipients over to, cc and bcc", { to: box(48), cc: "c@one.test", bcc: ["d@one.test"] }],
    ["60 recipients that fold to one", { to: Array.from({ length: 60 }, () => "r@one.test") }],
    ["reply_to", { reply_to: "Help <help@one.test>" }],
    ["subject of 998 characters", { subject: "x".repeat(998) }],
    ["subject beyond ASCII", { subject: "Grüße 🎉" }],
    ["text alone", { html: undefined, text: "Hi" }],
    ["html alone", { html: "<p>Hi</p>" }],
    ["html without a text part", { html: "<p>Hi</p>", auto_text: false }],
    ["both", { html: "<p>Hi</p>", text: "Hi" }],
    ["headers", { headers: { "X-Campaign": "spring", "List-Unsubscribe": "<https://x.test/u>" } }],
    ["50 headers", { headers: Object.fromEntries(box(50).map((_, i) => [`X-H${i}`, "v"])) }],
    ["attachments", { attachments: [file, { ...file, content_type: "text/plain", content_id: "c1" }] }],
    ["base64 with the line breaks of RFC 2045", { attachments: [{ ...file, content: "aGVs\r\nbG8=\n" }] }],
    ["report.exe.pdf", { attachments: [{ ...file, filename: "report.exe.pdf" }] }],
    ["acme.com.pdf", { attachments: [{ ...file, filename: "acme.com.pdf" }] }],
    ["50 attachments", { attachments: Array.from({ length: 50 }, () => file) }],
    ["ip_pool", { ip_pool: "default" }],
    ["10 tags of 128 characters", { tags: Array.from({ length: 10 }, (_, i) => `${i}`.padEnd(128, "t")) }],
    ["20 of metadata", { metadata: Object.fromEntries(box(20).map((_, i) => [`k${i}`, "v"])) }],
    ["send_at in 72 hours", { send_at: inHours(71.99) }],
    ["send_at with another zone", { send_at: "2026-01-01T00:00:00+02:00" }],
    ["tracking that is not asked for", { track_opens: false, track_clicks: false }],
    ["tracking as an object", { tracking: { opens: false, clicks: false } }],
  ];
  test.each(rows)("%s", async (_name, more) => {
    const answer = await send(more);
    expect(answer.status, answer.text).toBe(202);
  });

  test("send_at in the future is scheduled, and in the past at once", async () => {
    const [later, past] = [await send({ send_at: inHours(1) }), await send({ send_at: inHours(-1) })];
    expect([later.json.status, past.json.status]).toEqual(["scheduled", "queued"]);
    await delivered(api, past.json.id);
    expect((await api.ask("GET", `/v1/messages/${later.json.id}`)).json.status).toBe("scheduled");
  });

  test("the mail holds what was asked for, and no bcc", async () => {
    const { json } = await send({
      from: "Shop <a@ok.test>",
      cc: "c@one.test",
      bcc: "hidden@one.test",
      reply_to: "help@one.test",
      text: "Plain",
      headers: { "X-Campaign": "spring" },
      attachments: [{ filename: "a.txt", content: "aGk=", content_type: "text/plain" }],
    });
    const raw = await api.ask("GET", `/v1/messages/${json.id}/content`, {
      headers: { accept: "message/rfc822" },
    });
    for (const line of [
      "From: Shop <a@ok.test>",
      "Cc: c@one.test",
      "Reply-To: help@one.test",
      "X-Campaign: spring",
    ])
      expect(raw.text).toContain(`${line}\r\n`);
    expect(raw.text).not.toMatch(/hidden|^bcc/im);
    const { json: content } = await api.ask("GET", `/v1/messages/${json.id}/content`);
    expect(content).toMatchObject({
      text: expect.stringMatching(/^Plain\s*$/),
      html: expect.stringContaining("<p>Hi</p>"),
      attachments: [{ filename: "a.txt", content_type: "text/plain", size_bytes: 2 }],
    });
  });
});

describe("a field of a send is refused with 422", () => {
  const many = (n: number) => Array.from({ length: n }, (_, i) => `r${i}@one.test`);
  const file = (more: object) => ({ attachments: [{ filename: "a.txt", content: "aGk=", ...more }] });
  const rows: [string, Record<string, unknown>, code: string, field: string][] = [
    ["no from", { from: undefined }, "validation_failed", "from"],
    ["from, no address", { from: "shop" }, "invalid_email_address", "from"],
    ["from, a stranger's domain", { from: "a@stranger.test" }, "sender_not_verified", "from"],
    ["no to", { to: undefined }, "validation_failed", "to"],
    ["to, none", { to: [] }, "validation_failed", "to"],
    ["to, no address", { to: ["r@one.test", "r@"] }, "invalid_email_address", "to[1]"],
    ["cc, no address", { cc: "c@@one.test" }, "invalid_email_address", "cc"],
    ["to, suppressed", { to: "Gone@ONE.test" }, "recipient_suppressed", "to"],
    ["51 recipients", { to: many(51) }, "validation_failed", "to"],
    ["no subject", { subject: undefined }, "validation_failed", "subject"],
    ["subject of 999 characters", { subject: "x".repeat(999) }, "validation_failed", "subject"],
    ["subject with LF", { subject: "a\nBcc: x@one.test" }, "validation_failed", "subject"],
    ["subject with NUL", { subject: "a\0b" }, "validation_failed", "subject"],
    ["from with CR", { from: { email: "a@ok.test", name: "a\rb" } }, "validation_failed", "from.name"],
    ["neither html nor text", { html: undefined }, "validation_failed", "html"],
    ["a header with CRLF", { headers: { "X-A": "a\r\nb" } }, "validation_failed", "headers.X-A"],
    [
      "51 headers",
      { headers: Object.fromEntries(many(51).map((_, i) => [`X-${i}`, "v"])) },
      "validation_failed",
      "headers",
    ],
    ["8 KB of headers", { headers: { "X-A": "x".repeat(8193) } }, "validation_failed", "headers"],
    ...[
      "From",
      "To",
      "Cc",
      "Bcc",
      "Subject",
      "Sender",
      "Reply-To",
      "Date",
      "Message-ID",
      "Return-Path",
      "Received",
      "MIME-Version",
      "Content-Type",
      "Resent-From",
      "DKIM-Signature",
      "ARC-Seal",
      "Authentication-Results",
      "X-Svc-Tags",
      "mime-version",
      "CONTENT-ID",
    ].map((name): [string, Record<string, unknown>, string, string] => [
      `header ${name}`,
      { headers: { [name]: "x" } },
      "validation_failed",
      `headers.${name}`,
    ]),
    [
      "51 attachments",
      { attachments: Array.from({ length: 51 }, () => ({ filename: "a.txt", content: "aGk=" })) },
      "validation_failed",
      "attachments",
    ],
    ...[
      "a.exe",
      "A.EXE",
      "invoice.pdf.exe.",
      "a.js",
      "a.ps1",
      "a.scr",
      "a.hta ",
      "a\u202efdp.exe",
      "a.e\u200bxe",
    ].map((filename): [string, Record<string, unknown>, string, string] => [
      `attachment ${JSON.stringify(filename)}`,
      file({ filename }),
      "invalid_attachment",
      "attachments[0].filename",
    ]),
    ["base64 that is none", file({ content: "aGk*" }), "invalid_attachment", "attachments[0].content"],
    ["base64 that is cut", file({ content: "aGk" }), "invalid_attachment", "attachments[0].content"],
    [
      "a content type that is none",
      file({ content_type: "text" }),
      "invalid_attachment",
      "attachments[0].content_type",
    ],
    ["an unknown pool", { ip_pool: "nowhere" }, "ip_pool_not_found", "ip_pool"],
    ["tracking where it is off", { track_opens: true }, "tracking_disabled", "track_opens"],
    [
      "click tracking where it is off",
      { tracking: { clicks: true } },
      "tracking_disabled",
      "tracking.clicks",
    ],
    ["11 tags", { tags: many(11) }, "validation_failed", "tags"],
    ["a tag of 129 characters", { tags: ["t".repeat(129)] }, "validation_failed", "tags[0]"],
    [
      "21 of metadata",
      { metadata: Object.fromEntries(many(21).map((_, i) => [`k${i}`, "v"])) },
      "validation_failed",
      "metadata",
    ],
    ["metadata that is no string", { metadata: { a: 1 } }, "validation_failed", "metadata.a"],
    ["send_at past 72 hours", { send_at: inHours(72.01) }, "scheduling_window_exceeded", "send_at"],
    ["send_at that is no time", { send_at: "tomorrow" }, "validation_failed", "send_at"],
    ["a field that there is none of", { attachements: [] }, "validation_failed", "attachements"],
  ];
  test.each(rows)("%s", async (_name, more, code, field) => {
    const { status, json } = await send(more);
    expect([status, json.code, json.field]).toEqual([422, code, field]);
    expect(json.errors).toContainEqual(expect.objectContaining({ field, issue: expect.any(String), code }));
    const validated = await api.ask("POST", "/v1/messages/validate", { body: sound(more) });
    expect([validated.status, validated.json.code, validated.json.errors]).toEqual([422, code, json.errors]);
  });
});
