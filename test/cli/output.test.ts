import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { cell, fitted, neutralised, sizeText, widthOf } from "../../src/cli/text.ts";
import { escapedJson } from "../../src/unsafe-text.ts";
import { moment } from "../../src/cli/times.ts";
import { recordsIn } from "../../src/cli/records.ts";
import { fakeDaemon, page, svc } from "./world.ts";

const key = {
  id: "key_1",
  name: "shop",
  scope: "send",
  test: false,
  hint: "abcd",
  allow_ips: [],
  status: "active",
  created_at: "2026-11-27T09:00:00.000Z",
  expires_at: null,
  last_used_at: null,
  revoked_at: null,
};

test.each([
  ["\u001b[31mred\u0007", "\\x1b[31mred\\x07"],
  ["a\r\nb\tc", "a\\r\\nb\\tc"],
  ["\u009b31m", "\\x9b31m"],
  ["invoice\u202Efdp.exe", "invoice\\u202efdp.exe"],
  ["line\u2028end", "line\\u2028end"],
  ["Grüße 漢字 👩‍🚀", "Grüße 漢字 👩‍🚀"],
])("shows %j as %j", (from, to) => expect(neutralised(from)).toBe(to));

test.each([
  [0, "0 bytes"],
  [1, "1 byte"],
  [999, "999 bytes"],
  [1000, "1 KB"],
  [1536, "1.5 KB"],
  [26_214_400, "25 MB"],
  [104_857_599, "100 MB"],
  [1_073_741_823, "1 GB"],
  [12_345_678_901, "11.5 GB"],
])("%d bytes are shown as %s", (bytes, shown) => expect(sizeText(bytes)).toBe(shown));

test("sizes are shown in units in records and tables, and as they are under --json", async () => {
  const message = { id: "msg_1", size_bytes: 26_214_400, recipients: [] };
  const { socket } = await fakeDaemon({
    "GET /v1/messages/msg_1": { json: message },
    "GET /v1/inbox": page([message]),
    "GET /v1/status": { json: { memory_bytes: 104_857_600, queue: {}, store: { free_bytes: 2 ** 41 } } },
  });
  const shown = async (...args: string[]) => (await svc(args, { socket })).out;
  expect(await shown("messages", "show", "msg_1")).toMatch(/^size +25 MB$/m);
  expect(await shown("inbox", "list")).toMatch(/\bSIZE\b.*\n.*\b25 MB\b/);
  expect(await shown("status")).toMatch(/^memory +100 MB$/m);
  expect(await shown("status")).toMatch(/^free +2 TB$/m);
  expect(await shown("--json", "messages", "show", "msg_1")).toContain("26214400");
});

test("JSON stays the same JSON without anything that a terminal would obey", () => {
  const value = { a: "x\u009b31m\u202e\u007f\u2028\u001b\t", b: 1 };
  for (const json of [JSON.stringify(value), JSON.stringify(value, null, "\t").replaceAll("\n", "\r\n")]) {
    const safe = escapedJson(json);
    expect(safe).toMatch(/^[\x20-\x7e\n]+$/);
    expect(JSON.parse(safe)).toEqual(value);
  }
  expect(escapedJson('{"a":"Grüße 漢字 👩‍🚀"}\n')).toBe('{"a":"Grüße 漢字 👩‍🚀"}\n');
});

const hostile = "\u001b[2J\u009b31m\u202efdp.exe\u2028x\u0007";
const shownHostile = String.raw`\x1b[2J\x9b31m\u202efdp.exe\u2028x\x07`;
/** Nothing but printable characters, tabs and line ends. */
const harmless = /^[\t\n\x20-\x7e]*$/;

test.each([false, true])("what others wrote is harmless in every output, on a terminal: %s", async (tty) => {
  const { socket } = await fakeDaemon({
    "GET /v1/messages/msg_1/content": {
      json: {
        text: `hi\n\tthere ${hostile}\r\n`,
        html: null,
        headers: [{ name: "Subject", value: hostile }],
        attachments: [{ filename: hostile, content_type: "a/b", size_bytes: 1 }],
      },
    },
    "GET /v1/messages/msg_1/attempts": page([
      {
        attempt: 1,
        recipient: "a@x.example",
        outcome: "bounced",
        dialogue: [{ at_ms: 1, from: "them", text: hostile }],
      },
    ]),
    "GET /v1/messages/msg_2": { status: 404, json: { code: "resource_not_found", detail: hostile } },
  });
  const world = { socket, tty, env: { NO_COLOR: "1" } };
  const shown = await svc(["inbox", "show", "msg_1"], world);
  expect(shown.out.split(shownHostile)).toHaveLength(4);
  expect(shown.out).toContain("hi\n\tthere");
  const trace = await svc(["messages", "trace", "msg_1"], world);
  expect(trace.out).toContain(shownHostile);
  const failed = await svc(["messages", "show", "msg_2"], world);
  const failedJson = await svc(["--json", "messages", "show", "msg_2"], world);
  const json = await svc(["--json", "inbox", "show", "msg_1"], world);
  expect(JSON.parse(json.out)).toMatchObject({ headers: [{ value: hostile }] });
  expect(JSON.parse(failedJson.err)).toMatchObject({ detail: hostile });
  for (const { out, err } of [shown, trace, failed, failedJson, json]) {
    expect(out).toMatch(harmless);
    expect(err).toMatch(harmless);
  }
});

test("counts wide characters as two columns and combining ones as none", () => {
  expect(["abc", "漢字", "e\u0301"].map(widthOf)).toEqual([3, 4, 1]);
  expect(fitted("漢字漢字", 5)).toBe("漢字…");
});

test.each([
  [null, ""],
  [true, "yes"],
  [["a", "b"], "a, b"],
  ["2026-11-27T09:15:22.123Z", "2026-11-27 09:15:22Z"],
  [{ version: "TLSv1.3" }, '{"version":"TLSv1.3"}'],
])("shows the value %j as %j", (value, shown) => expect(cell(value)).toBe(shown));

test("a table that is piped is whole, without colour and padding: a tab between columns", async () => {
  const { socket } = await fakeDaemon({ "GET /v1/keys": page([{ ...key, name: "n".repeat(200) }]) });
  const ran = await svc(["keys", "list"], { socket });
  expect(ran.out).toContain("n".repeat(200));
  expect(ran.out).not.toContain("\u001b");
  expect(ran.out.split("\n")).toEqual([
    "ID\tNAME\tSCOPE\tTEST\tSTATUS\tHINT\tLAST USED AT\tEXPIRES AT",
    `key_1\t${"n".repeat(200)}\tsend\tno\tactive\tabcd\t\t`,
    "",
  ]);
});

test("a table on a terminal fits its width, in colour unless NO_COLOR or a dumb terminal says no", async () => {
  const { socket } = await fakeDaemon({ "GET /v1/keys": page([{ ...key, name: "n".repeat(200) }]) });
  const ran = await svc(["keys", "list"], { socket, tty: true, columns: 100 });
  const plain = stripVTControlCharacters(ran.out);
  for (const line of plain.split("\n")) expect(widthOf(line)).toBeLessThanOrEqual(100);
  expect(plain).toContain("nnn…");
  expect(ran.out).toContain("\u001b[32mactive\u001b[0m");
  for (const env of [{ NO_COLOR: "1" }, { TERM: "dumb" }, { FORCE_COLOR: "0" }])
    expect((await svc(["keys", "list"], { socket, tty: true, env })).out).not.toContain("\u001b");
  expect((await svc(["keys", "list"], { socket, env: { FORCE_COLOR: "1" } })).out).toContain("\u001b[32m");
});

test("ids and times are never cut: on a narrow terminal the last columns are left out", async () => {
  const id = "key_01jd0000000000000000000000";
  const { socket } = await fakeDaemon({
    "GET /v1/keys": page([{ ...key, id, name: "n".repeat(50), last_used_at: "2026-11-27T09:00:00.000Z" }]),
  });
  for (const columns of [40, 60, 80]) {
    const { out } = await svc(["keys", "list"], { socket, tty: true, columns, env: { NO_COLOR: "1" } });
    expect(out).toContain(id);
    for (const line of out.split("\n")) expect(widthOf(line)).toBeLessThanOrEqual(columns);
  }
});

test("a subject with escape sequences cannot move the cursor", async () => {
  const mail = {
    message_id: "msg_1",
    to: "a@x.example",
    from: "b@x.example",
    subject: "\u001b]0;owned\u0007\u001b[2J",
    caught_at: "2026-11-27T09:00:00.000Z",
    size_bytes: 1,
  };
  const { socket } = await fakeDaemon({ "GET /v1/inbox": page([mail]) });
  const ran = await svc(["inbox", "list"], { socket });
  expect(ran.out).toContain("\\x1b]0;owned\\x07\\x1b[2J");
  expect(ran.out).not.toContain("\u001b");
});

test("raw bytes pass unchanged through a pipe and harmless to a terminal", async () => {
  const { socket } = await fakeDaemon({
    "GET /v1/messages/msg_1/content": { text: "Subject: \u001b[2Jx\r\n\r\nhi\r\n", type: "message/rfc822" },
  });
  expect((await svc(["inbox", "raw", "msg_1"], { socket })).out).toBe("Subject: \u001b[2Jx\r\n\r\nhi\r\n");
  expect((await svc(["messages", "raw", "msg_1"], { socket, tty: true })).out).toContain(
    "Subject: \\x1b[2Jx\n\nhi",
  );
});

const now = Date.parse("2026-11-27T09:00:00.000Z");
test.each([
  ["15m", "past", "2026-11-27T08:45:00.000Z"],
  ["90d", "future", "2027-02-25T09:00:00.000Z"],
  ["now", "past", "2026-11-27T09:00:00.000Z"],
  ["2026-12-01T08:00:00Z", "future", "2026-12-01T08:00:00.000Z"],
  ["2026-12-01 08:00:00+02:00", "future", "2026-12-01T06:00:00.000Z"],
] as const)("reads the time %s (%s) as %s", (text, direction, iso) =>
  expect(moment(text, "--at", direction, now)).toBe(iso),
);

test("a day and yesterday begin at local midnight", () => {
  expect(new Date(moment("2026-12-01", "--at", "past", now)).getHours()).toBe(0);
  const yesterday = new Date(moment("yesterday", "--since", "past", now));
  expect([yesterday.getHours(), yesterday.getDate()]).toEqual([0, new Date(now).getDate() - 1]);
});

test.each(["", "soon", "2026-13-01T00:00:00Z", "2026-12-01T08:00:00", "-5m"])("refuses the time %j", (text) =>
  expect(() => moment(text, "--at", "past", now)).toThrow("--at: found"),
);

test("records become lines of a zone file, long TXT values in several strings", () => {
  const value = `v=DKIM1; k=rsa; p=${"A".repeat(392)}`;
  const lines = recordsIn("bind", [
    { type: "TXT", name: "s1._domainkey.acme.example", value },
    { type: "MX", name: "bounce.acme.example", value: "10 mail.acme.example" },
    { type: "TXT", name: "acme.example", value: 'a "quoted" \\ value' },
  ]).split("\n");
  expect(lines[0]?.startsWith('s1._domainkey.acme.example.\t3600\tIN\tTXT\t"v=DKIM1; k=rsa; p=A')).toBe(true);
  const strings = [...(lines[0] ?? "").matchAll(/"([^"]*)"/g)].map((match) => match[1] ?? "");
  expect(strings.join("")).toBe(value);
  expect(Math.max(...strings.map((part) => part.length))).toBeLessThanOrEqual(255);
  expect(lines[1]).toBe("bounce.acme.example.\t3600\tIN\tMX\t10 mail.acme.example.");
  expect(lines[2]).toContain(String.raw`"a \"quoted\" \\ value"`);
});

const published = [
  { type: "TXT", name: "svc1._domainkey.acme.example", value: `v=DKIM1; p=${"A".repeat(300)}` },
  { type: "MX", name: "bounce.acme.example", value: "10 mail.svc.example" },
  { type: "TXT", name: "bounce.acme.example", value: "v=spf1 mx -all" },
  { type: "CNAME", name: "track.acme.example", value: "mail.svc.example" },
];

test("for Cloudflare records are the body of its batch: MX apart from its preference, no proxy before the tracking name", () => {
  const { posts } = JSON.parse(recordsIn("cloudflare", published)) as { posts: Record<string, unknown>[] };
  expect(posts.map(({ type, content, priority, proxied }) => [type, content, priority, proxied])).toEqual([
    ["TXT", expect.stringMatching(/^"v=DKIM1; p=A{109}"( "A+")+$/), undefined, undefined],
    ["MX", "mail.svc.example", 10, undefined],
    ["TXT", '"v=spf1 mx -all"', undefined, undefined],
    ["CNAME", "mail.svc.example", undefined, false],
  ]);
});

test("for Route 53 records are a change batch that replaces nothing, one set for a name and a type", () => {
  const twice = [...published, { type: "TXT", name: "bounce.acme.example", value: "another" }];
  const { Changes } = JSON.parse(recordsIn("route53", twice)) as {
    Changes: { Action: string; ResourceRecordSet: { ResourceRecords: { Value: string }[] } }[];
  };
  expect(Changes.map(({ Action }) => Action)).toEqual(Array(4).fill("CREATE"));
  expect(Changes[1]?.ResourceRecordSet.ResourceRecords).toEqual([{ Value: "10 mail.svc.example." }]);
  expect(Changes[2]?.ResourceRecordSet.ResourceRecords).toEqual([
    { Value: '"v=spf1 mx -all"' },
    { Value: '"another"' },
  ]);
});

test("for Terraform records are a list for any provider; what would begin a template is text", () => {
  const text = recordsIn("terraform", [
    ...published,
    { type: "TXT", name: "a.example", value: "${x} %{y} $5" },
  ]);
  expect(text).toContain(
    '{ type = "MX", name = "bounce.acme.example", value = "mail.svc.example", priority = 10, ttl = 3600 },',
  );
  expect(text).toContain('value = "$${x} %%{y} $5", priority = null');
});
