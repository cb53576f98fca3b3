// Every field of a send request: what is taken, what is refused, and where the refusal points.
import { describe, expect, test } from "vitest";
import type { Problem } from "../../src/errors.ts";
import { inFieldOrder, readRequest } from "../../src/submission/request.ts";
import { good, startMs } from "./rig.ts";

const megabyte = "x".repeat(1_048_576);
const read = (over: Record<string, unknown>) => readRequest(good(over), startMs);
const problemsOf = (over: Record<string, unknown>): Problem[] => inFieldOrder(read(over).problems);
const rows = (over: Record<string, unknown>): string[] =>
  problemsOf(over).map(({ field, code }) => `${field} ${code}`);
/** As it arrives: own `__proto__` keys and all. */
const parsed = (json: string): Record<string, unknown> => JSON.parse(json) as Record<string, unknown>;

const bad = "validation_failed";
const badAddress = "invalid_email_address";

test("takes the smallest request that makes a message", () => {
  const { request, problems } = readRequest(
    { from: "shop@ok.test", to: "a@x.test", subject: "", text: "" },
    startMs,
  );
  expect(problems).toEqual([]);
  expect(request).toMatchObject({
    subject: "",
    text: "",
    html: null,
    autoText: true,
    headers: [],
    attachments: [],
    ipPool: null,
    tags: [],
    metadata: {},
    sendAt: null,
    replyTo: [],
  });
});

test("names everything that an empty request lacks", () => {
  const { problems } = readRequest({}, startMs);
  expect(inFieldOrder(problems).map(({ field }) => field)).toEqual(["from", "to", "subject", "html"]);
});

describe("a value of the wrong type", () => {
  const wrong: [string, unknown][] = [
    ["null", null],
    ["an array", [[]]],
    ["an object", { a: {} }],
    ["a number", 1e9],
    ["a boolean", true],
  ];
  const rightTypes: Record<string, string[]> = {
    auto_text: ["a boolean"],
    track_opens: ["a boolean"],
    track_clicks: ["a boolean"],
  };
  const fields = [
    "from",
    "to",
    "cc",
    "bcc",
    "reply_to",
    "subject",
    "html",
    "text",
    "auto_text",
    "headers",
    "attachments",
    "ip_pool",
    "tags",
    "metadata",
    "send_at",
    "track_opens",
    "track_clicks",
    "tracking",
  ];
  for (const field of fields) {
    for (const [name, value] of wrong) {
      if (rightTypes[field]?.includes(name)) continue;
      test(`${field} refuses ${name}`, () => {
        const problems = problemsOf({ [field]: value });
        expect(problems.length).toBeGreaterThan(0);
        for (const problem of problems) {
          expect(problem.field).toMatch(new RegExp(`^${field}(?:$|[.[])`));
          expect(problem.code).toBe(bad);
          expect(problem.issue).not.toBe("");
        }
      });
    }
  }

  test("is reported at the entry that has it, not of the whole list", () => {
    expect(rows({ to: ["a@x.test", 5, { email: 6 }, { name: "n" }] })).toEqual([
      `to[1] ${bad}`,
      `to[2].email ${bad}`,
      `to[3].email ${bad}`,
    ]);
    expect(rows({ cc: { email: "a@x.test", name: 1 } })).toEqual([`cc.name ${bad}`]);
    expect(rows({ tags: ["a", null] })).toEqual([`tags[1] ${bad}`]);
    expect(rows({ headers: { "X-A": 1 }, metadata: { k: [] } })).toEqual([
      `headers.X-A ${bad}`,
      `metadata.k ${bad}`,
    ]);
    expect(
      rows({
        attachments: [
          { filename: "a", content: "" },
          { filename: 1, disposition: "x" },
        ],
      }),
    ).toEqual([
      `attachments[1].filename ${bad}`,
      `attachments[1].content ${bad}`,
      `attachments[1].disposition ${bad}`,
    ]);
    expect(rows({ tracking: { opens: "yes" } })).toEqual([`tracking.opens ${bad}`]);
  });

  test("hides nothing else of its field", () => {
    expect(rows({ to: ["nope", 5, "b@x.test", { email: 6, name: "\n" }, { email: "no", nome: 1 }] })).toEqual(
      [
        `to[1] ${bad}`,
        `to[3].email ${bad}`,
        `to[4].nome ${bad}`,
        `to[0] ${badAddress}`,
        `to[3].name ${bad}`,
        `to[4].email ${badAddress}`,
      ],
    );
    expect(rows({ from: { email: "no", name: 5 } })).toEqual([
      `from.name ${bad}`,
      `from.email ${badAddress}`,
    ]);
    expect(rows({ headers: { From: "x", "X Y": "1", "X-Num": 5, "X-Good": "v" } })).toEqual([
      `headers.X-Num ${bad}`,
      `headers.From ${bad}`,
      `headers.X Y ${bad}`,
    ]);
    expect(rows({ headers: { References: "<a@x.test> <é@x.test>", "in-reply-to": "<a@x.test>" } })).toEqual([
      `headers.References ${bad}`,
    ]);
    expect(
      rows({
        attachments: [
          { filename: "a.exe", content: "" },
          { content: "?", disposition: "x" },
          7,
          { filename: "b.js" },
        ],
      }),
    ).toEqual([
      `attachments[1].filename ${bad}`,
      `attachments[1].disposition ${bad}`,
      `attachments[2] ${bad}`,
      `attachments[3].content ${bad}`,
      "attachments[0].filename invalid_attachment",
      "attachments[1].content invalid_attachment",
      "attachments[3].filename invalid_attachment",
    ]);
    expect(rows({ tags: ["x".repeat(129), 5] })).toEqual([`tags[1] ${bad}`, `tags[0] ${bad}`]);
    expect(rows({ metadata: { "": "v", k: 5 } })).toEqual([`metadata.k ${bad}`, `metadata. ${bad}`]);
    expect(rows({ tracking: { opens: "yes", clicks: true } })).toEqual([`tracking.opens ${bad}`]);
  });

  test("is described in words: what was expected, and what was found", () => {
    const issues = (over: Record<string, unknown>) => problemsOf(over).map(({ issue }) => issue);
    expect(issues({ subject: 5 })).toEqual(["expected a string, found 5"]);
    expect(issues({ html: null })).toEqual(["expected a string, found null"]);
    expect(issues({ auto_text: "yes" })).toEqual(['expected true or false, found "yes"']);
    expect(issues({ tags: ["a", {}] })).toEqual(["expected a string, found an object"]);
    expect(issues({ bcc: [{ name: "n" }] })).toEqual(["is required: a string"]);
    expect(issues({ headers: [] })).toEqual(["expected an object, found an array"]);
    expect(issues({ attachments: [{ filename: "a", content: "", disposition: "x" }] })).toEqual([
      'expected one of attachment, inline; found "x"',
    ]);
    expect(issues({ send_at: [megabyte] })[0]?.length).toBeLessThan(100);
  });

  test("of which there are very many makes one problem, not as many rows", () => {
    const many = Array.from({ length: 300_000 }, () => 1);
    for (const field of ["to", "reply_to", "attachments", "tags"])
      expect(rows({ [field]: many })).toEqual([`${field} ${bad}`]);
    const object = Object.fromEntries(many.map((one, i) => [`k${i}`, one]));
    for (const field of ["headers", "metadata", "from", "tracking"])
      expect(rows({ [field]: object })).toEqual([`${field} ${bad}`]);
    expect(rows(object).length).toBeLessThan(300);
  });
});

describe("an empty or enormous string", () => {
  test("is not an address, pool or time", () => {
    for (const value of ["", megabyte]) {
      expect(rows({ from: value })).toEqual([`from ${badAddress}`]);
      expect(rows({ to: value })).toEqual([`to ${badAddress}`]);
      expect(rows({ bcc: [value] })).toEqual([`bcc[0] ${badAddress}`]);
      expect(rows({ reply_to: { email: value } })).toEqual([`reply_to.email ${badAddress}`]);
      expect(rows({ send_at: value })).toEqual([`send_at ${bad}`]);
    }
  });

  test("is quoted in short, whatever its place", () => {
    const all = problemsOf({
      [megabyte]: 1,
      subject: megabyte,
      from: { email: "a@ok.test", name: megabyte, [megabyte]: 1 },
      headers: { [megabyte]: "v" },
      metadata: { [megabyte]: "v" },
      tags: [megabyte],
      attachments: [{ filename: megabyte, content: megabyte, content_type: megabyte, [megabyte]: 1 }],
    });
    expect(all.map(({ field }) => field.replace(/x{50,}/, "x"))).toEqual([
      "from.x…",
      "from.name",
      "subject",
      "headers",
      "headers.x…",
      "attachments[0].x…",
      "attachments[0].filename",
      "attachments[0].content_type",
      "tags[0]",
      "metadata.x…",
      "x…",
    ]);
    expect(JSON.stringify(all).length).toBeLessThan(3000);
  });

  test("is a body", () => {
    expect(rows({ html: "", text: megabyte })).toEqual([]);
  });
});

describe("unknown fields", () => {
  test("are a row each, after the known ones", () => {
    expect(rows({ attachements: [], Subject: "", send_at: 1 })).toEqual([
      `send_at ${bad}`,
      `attachements ${bad}`,
      `Subject ${bad}`,
    ]);
    expect(rows({ from: { email: "a@ok.test", nome: "x" } })).toEqual([`from.nome ${bad}`]);
    expect(rows({ to: ["a@x.test", { email: "b@x.test", a: 1, b: 2 }] })).toEqual([
      `to[1].a ${bad}`,
      `to[1].b ${bad}`,
    ]);
    expect(rows({ attachments: [{ filename: "a", content: "", contents: "" }] })).toEqual([
      `attachments[0].contents ${bad}`,
    ]);
  });

  test("named after what every object has do no harm", () => {
    const json = parsed(
      `{"__proto__":{"to":"b@x.test"},"constructor":1,"toString":2,"from":"a@ok.test","to":"a@x.test","subject":"s","text":"t"}`,
    );
    const { problems, request } = readRequest(json, startMs);
    expect(problems.map(({ field }) => field)).toEqual(["__proto__", "constructor", "toString"]);
    expect(request.recipients).toHaveLength(1);
    expect(
      readRequest(parsed(`{"__proto__":{"from":"a@ok.test"}}`), startMs).problems.map((p) => p.field),
    ).toEqual(["from", "to", "subject", "html", "__proto__"]);
  });

  test("__proto__ within headers, metadata, an address or an attachment is refused, not lost", () => {
    expect(rows({ metadata: parsed(`{"__proto__":"x"}`) })).toEqual([`metadata.__proto__ ${bad}`]);
    expect(rows({ headers: parsed(`{"__proto__":7}`) })).toEqual([`headers.__proto__ ${bad}`]);
    expect(rows({ to: [parsed(`{"email":"a@x.test","__proto__":1}`)] })).toEqual([`to[0].__proto__ ${bad}`]);
    expect(rows({ metadata: parsed(`{"constructor":"x","hasOwnProperty":"y"}`) })).toEqual([]);
    expect(rows({ attachments: [parsed(`{"filename":"a","content":"","__proto__":{}}`)] })).toEqual([
      `attachments[0].__proto__ ${bad}`,
    ]);
  });
});

test("deep nesting is refused like any other wrong type", () => {
  const deep = parsed(`{"v":${"[".repeat(50_000)}${"]".repeat(50_000)}}`)["v"];
  for (const field of ["from", "to", "headers", "attachments", "tags", "metadata", "tracking", "subject"])
    expect(problemsOf({ [field]: deep }).length).toBeGreaterThan(0);
});

describe("addresses", () => {
  test("are strings, objects or arrays of both", () => {
    const { request, problems } = read({
      from: { email: "shop@ok.test", name: "Shop, Ltd" },
      to: ["a@x.test", "Bee <b@x.test>", { email: "c@x.test" }, { email: "d@x.test", name: null }],
      cc: '"Doe, J" <e@x.test>',
      bcc: [],
      reply_to: ["r@x.test"],
    });
    expect(problems).toEqual([]);
    expect(request.from?.name).toBe("Shop, Ltd");
    expect(
      request.recipients.map(({ type, field, canonical, mailbox }) => [type, field, canonical, mailbox.name]),
    ).toEqual([
      ["to", "to[0]", "a@x.test", null],
      ["to", "to[1]", "b@x.test", "Bee"],
      ["to", "to[2]", "c@x.test", null],
      ["to", "to[3]", "d@x.test", null],
      ["cc", "cc", "e@x.test", "Doe, J"],
    ]);
    expect(request.replyTo.map(({ address }) => address.email)).toEqual(["r@x.test"]);
  });

  test("from is one, and to names at least one", () => {
    expect(rows({ from: ["shop@ok.test"] })).toEqual([`from ${bad}`]);
    expect(rows({ to: [] })).toEqual([`to ${bad}`]);
  });

  test("are folded across to, cc and bcc by what they mean, the first spelling stays", () => {
    const { request } = read({
      to: ["User@Bücher.test", "a@x.test"],
      cc: ["user@xn--bcher-kva.test", "A@X.TEST"],
      bcc: ['"user"@BÜCHER.test', "b@x.test"],
    });
    expect(request.recipients.map(({ type, mailbox }) => `${type} ${mailbox.address.email}`)).toEqual([
      "to User@Bücher.test",
      "to a@x.test",
      "bcc b@x.test",
    ]);
  });

  test("are at most 50, duplicates not counted", () => {
    const many = (n: number) => Array.from({ length: n }, (_, i) => `r${i}@x.test`);
    expect(rows({ to: [...many(50), "R1@x.test"] })).toEqual([]);
    expect(rows({ to: many(51) })).toEqual([`to ${bad}`]);
    expect(rows({ to: "a@x.test", cc: many(25), bcc: many(50).slice(25) })).toEqual([`to ${bad}`]);
    expect(rows({ to: many(10_000) })).toEqual([`to ${bad}`]);
    expect(rows({ reply_to: many(51) })).toEqual([`reply_to ${bad}`]);
  });

  test("that are none are each named", () => {
    expect(rows({ to: ["a@x.test", "nobody", "a@b@c", { email: "x@" }], cc: "a b@x.test" })).toEqual([
      `to[1] ${badAddress}`,
      `to[2] ${badAddress}`,
      `to[3].email ${badAddress}`,
      `cc ${badAddress}`,
    ]);
  });
});

describe("what would break a header", () => {
  const broken = ["a\r\nBcc: v@x.test", "a\nb", "a\rb", "a\0b", "half \ud83d", "\udc00 half"];
  for (const text of broken) {
    test(`is refused in every string: ${JSON.stringify(text)}`, () => {
      expect(rows({ subject: text })).toEqual([`subject ${bad}`]);
      expect(rows({ from: { email: "a@ok.test", name: text } })).toEqual([`from.name ${bad}`]);
      expect(rows({ from: `"${text}" <a@ok.test>` })).toEqual([`from ${badAddress}`]);
      expect(rows({ to: [`${text} <a@x.test>`] })).toEqual([`to[0] ${badAddress}`]);
      expect(rows({ cc: `${text}@x.test` })).toEqual([`cc ${badAddress}`]);
      expect(rows({ reply_to: { email: `a@${text}.test` } })).toEqual([`reply_to.email ${badAddress}`]);
      expect(rows({ headers: { "X-A": text } })).toEqual([`headers.X-A ${bad}`]);
      expect(problemsOf({ headers: { [`X-${text}`]: "v" } })).toHaveLength(1);
      expect(rows({ tags: [text] })).toEqual([`tags[0] ${bad}`]);
      expect(rows({ attachments: [{ filename: `${text}.txt`, content: "" }] })).toEqual([
        `attachments[0].filename ${bad}`,
      ]);
      expect(rows({ attachments: [{ filename: "a.txt", content: "", content_id: text }] })).toEqual([
        `attachments[0].content_id ${bad}`,
      ]);
      expect(
        rows({ attachments: [{ filename: "a.txt", content: "", content_type: `text/plain${text}` }] }),
      ).toEqual(["attachments[0].content_type invalid_attachment"]);
    });
  }

  test("may stand in metadata and bodies where it is text", () => {
    expect(rows({ metadata: { k: "a\r\nb\0" }, text: "a\rb", html: "\0" })).toEqual([]);
    expect(rows({ metadata: { "\ud83d": "v", k: "\udc00" }, text: "\ud83d", html: "\udc00" })).toEqual([
      `html ${bad}`,
      `text ${bad}`,
      `metadata.\ud83d ${bad}`,
      `metadata.k ${bad}`,
    ]);
  });
});

test("line ends of bodies become CRLF", () => {
  const { request } = read({ html: "a\nb\r\nc\rd\n\n", text: "\r" });
  expect([request.html, request.text]).toEqual(["a\r\nb\r\nc\r\nd\r\n\r\n", "\r\n"]);
});

test("a subject has at most 998 characters, not code units", () => {
  expect(rows({ subject: "é".repeat(998) })).toEqual([]);
  expect(rows({ subject: "😊".repeat(998) })).toEqual([]);
  expect(rows({ subject: "x".repeat(999) })).toEqual([`subject ${bad}`]);
  expect(rows({ subject: "😊".repeat(999) })).toEqual([`subject ${bad}`]);
});

describe("tracking", () => {
  const tracking = (over: Record<string, unknown>) => read(over).request.tracking;

  test("is asked for in either spelling, and in both where they agree", () => {
    const [opens, clicks] = [
      { on: true, field: "track_opens" },
      { on: false, field: "tracking.clicks" },
    ];
    expect(tracking({})).toEqual({ opens: null, clicks: null, unsubscribe: null });
    expect(tracking({ track_opens: true, tracking: { clicks: false } })).toMatchObject({ opens, clicks });
    expect(rows({ track_opens: true, tracking: { opens: true } })).toEqual([]);
    expect(rows({ track_opens: true, tracking: { opens: false } })).toEqual([`tracking.opens ${bad}`]);
  });

  test("a way to unsubscribe is a page of ours, or an https URL, an address, or both", () => {
    const unsubscribe = (value: unknown) => tracking({ unsubscribe: value }).unsubscribe;
    expect([unsubscribe(true), unsubscribe(false)]).toEqual(["hosted", null]);
    expect(unsubscribe({ url: "https://x.test/u?a=b&c" })).toEqual({
      url: "https://x.test/u?a=b&c",
      mailto: null,
    });
    expect(unsubscribe({ mailto: "List+u&x@Ok.test" })).toEqual({
      url: null,
      mailto: "mailto:List+u%26x@ok.test",
    });
    expect(unsubscribe({ mailto: "mailto:u@ok.test?subject=stop" })).toEqual({
      url: null,
      mailto: "mailto:u@ok.test?subject=stop",
    });
  });

  test.each([
    ["unsubscribe", "yes"],
    ["unsubscribe", null],
    ["unsubscribe", {}],
    ["unsubscribe.more", { url: "https://x.test/", more: 1 }],
    ["unsubscribe.url", { url: "http://x.test/" }],
    ["unsubscribe.url", { url: "https://x.test/ü" }],
    ["unsubscribe.url", { url: "https://x.test/>\r\nBcc: a@x.test" }],
    ["unsubscribe.url", { url: "https://x.test/a,b" }],
    ["unsubscribe.url", { url: `https://x.test/${"x".repeat(900)}` }],
    ["unsubscribe.mailto", { mailto: "ünder@ok.test" }],
    ["unsubscribe.mailto", { mailto: "mailto:a@b.test>, <https://x.test/" }],
  ])("%s is wrong in %j", (field, unsubscribe) => {
    expect(rows({ unsubscribe })).toEqual([`${field} ${bad}`]);
  });

  test("List-Unsubscribe of one's own beside it is refused, in any case", () => {
    const headers = {
      "list-unsubscribe": "<https://x.test/>",
      "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    };
    expect(rows({ headers })).toEqual([]);
    expect(rows({ headers, unsubscribe: true })).toEqual([
      `headers.list-unsubscribe ${bad}`,
      `headers.List-Unsubscribe-Post ${bad}`,
    ]);
  });
});

test("all problems are listed at once, in the order of the fields", () => {
  expect(
    rows({
      send_at: "never",
      metadata: { "": "" },
      tags: [""],
      unsubscribe: { mailto: "x" },
      attachments: [{ filename: "a.exe", content: "" }],
      headers: { From: "x" },
      html: 1,
      subject: "\n",
      reply_to: 1,
      bcc: "x",
      cc: 1,
      to: ["x"],
      from: "x",
      nonsense: 1,
    }),
  ).toEqual([
    `from ${badAddress}`,
    `to[0] ${badAddress}`,
    `cc ${bad}`,
    `bcc ${badAddress}`,
    `reply_to ${bad}`,
    `subject ${bad}`,
    `html ${bad}`,
    `headers.From ${bad}`,
    "attachments[0].filename invalid_attachment",
    `tags[0] ${bad}`,
    `metadata. ${bad}`,
    `send_at ${bad}`,
    `unsubscribe.mailto ${bad}`,
    `nonsense ${bad}`,
  ]);
});
