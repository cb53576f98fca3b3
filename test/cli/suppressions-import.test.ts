// `svc suppressions import`: files as each service writes them, and what is said of those that are not.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { fakeDaemon, svc } from "./world.ts";
import { removeFolder } from "../support/folders.ts";

const home = mkdtempSync(join(tmpdir(), "svc-import-"));
afterAll(() => removeFolder(home));

const fileOf = (content: string): string => {
  const path = join(home, `list-${Math.random().toString(36).slice(2)}`);
  writeFileSync(path, content);
  return path;
};

interface Posted {
  suppressions: { email: string; reason: string; description?: string }[];
  source: string;
}

/** Imports a file into a daemon that takes everything; answers what was posted, as `email reason`. */
async function imported(content: string, ...flags: string[]) {
  const posted: Posted[] = [];
  const { socket } = await fakeDaemon({
    "POST /v1/suppressions": ({ body }) => {
      const sent = body as unknown as Posted;
      posted.push(sent);
      return { status: 201, json: { added: sent.suppressions.length, updated: 0, already_suppressed: 0 } };
    },
  });
  const ran = await svc(["suppressions", "import", fileOf(content), "--json", ...flags], { socket });
  const entries = posted.flatMap(({ suppressions }) => suppressions);
  return {
    ...ran,
    posted,
    entries,
    list: entries.map(({ email, reason }) => `${email} ${reason}`),
    report: ran.code === 0 ? JSON.parse(ran.out) : null,
  };
}

const lists: [service: string, content: string, expected: string[], skipped: number][] = [
  [
    "SES, as its API lists them",
    JSON.stringify({
      SuppressedDestinationSummaries: [
        { EmailAddress: "a@x.example", Reason: "BOUNCE", LastUpdateTime: "2026-01-01T00:00:00Z" },
        { EmailAddress: "b@x.example", Reason: "COMPLAINT" },
      ],
    }),
    ["a@x.example hard_bounce", "b@x.example complaint"],
    0,
  ],
  [
    "SES, as its bulk file",
    "a@x.example,BOUNCE\nb@x.example,COMPLAINT\n",
    ["a@x.example hard_bounce", "b@x.example complaint"],
    0,
  ],
  [
    "Postmark",
    JSON.stringify({
      Suppressions: [
        { EmailAddress: "a@x.example", SuppressionReason: "HardBounce", Origin: "Recipient" },
        { EmailAddress: "b@x.example", SuppressionReason: "SpamComplaint" },
        { EmailAddress: "c@x.example", SuppressionReason: "ManualSuppression" },
      ],
    }),
    ["a@x.example hard_bounce", "b@x.example complaint", "c@x.example manual"],
    0,
  ],
  [
    "SendGrid's bounces, without temporary refusals",
    'status,reason,email,created\r\n5.1.1,"550 5.1.1 no such user, sorry",a@x.example,1700000000\r\n4.2.2,full,b@x.example,1700000000\r\n',
    ["a@x.example hard_bounce"],
    1,
  ],
  [
    "SendGrid's spam reports",
    "email,created,ip\na@x.example,1700000000,192.0.2.1\n",
    ["a@x.example complaint"],
    0,
  ],
  [
    "Mailgun's bounces",
    "address,code,error,created_at\na@x.example,550,no such user,x\nb@x.example,452,full,x\n",
    ["a@x.example hard_bounce"],
    1,
  ],
  [
    "Mailgun's unsubscribes",
    JSON.stringify({ items: [{ address: "a@x.example", tags: ["*"] }] }),
    ["a@x.example unsubscribe"],
    0,
  ],
  [
    "Resend's contacts",
    "id,email,first_name,last_name,unsubscribed\n1,a@x.example,A,B,true\n2,b@x.example,A,B,false\n",
    ["a@x.example unsubscribe"],
    1,
  ],
  [
    "Postal's",
    "id,type,address,reason,timestamp\n1,recipient,a@x.example,too many soft fails,1\n2,sender,s@x.example,x,1\n",
    ["a@x.example hard_bounce"],
    1,
  ],
  [
    "plain CSV with reasons",
    "Email Address,Reason\na@x.example,Unsubscribed\n",
    ["a@x.example unsubscribe"],
    0,
  ],
];

test.each(lists)("%s", async (_service, content, expected, skipped) => {
  const { list, posted, report } = await imported(content);
  expect(list).toEqual(expected);
  expect(posted.every(({ source }) => source === "import")).toBe(true);
  expect(report).toMatchObject({ added: expected.length, skipped, invalid: 0 });
});

test("our own export is taken back, with reasons and descriptions", async () => {
  const content = 'email,reason,source,description\r\na@x.example,complaint,system,"told us, twice"\r\n';
  expect((await imported(content)).entries).toEqual([
    { email: "a@x.example", reason: "complaint", description: "told us, twice" },
  ]);
});

test("a bare list of addresses needs a reason, and says so; what is no address is named with its line", async () => {
  const bare = "a@x.example\nnot an address@\nb@x.example\n";
  const refused = await imported(bare);
  expect([refused.code, refused.err]).toEqual([
    2,
    expect.stringContaining("line 1: found no reason why a@x.example"),
  ]);
  const taken = await imported(bare, "--reason", "manual");
  expect(taken.list).toEqual(["a@x.example manual", "b@x.example manual"]);
  expect(taken.report).toMatchObject({ read: 3, invalid: 1, examples: [{ line: 2 }] });
});

test("a dry run counts and changes nothing", async () => {
  const { posted, report } = await imported("a@x.example,BOUNCE\nb@x.example,COMPLAINT\n", "--dry-run");
  expect(posted).toEqual([]);
  expect(report).toMatchObject({ dry_run: true, read: 2, reasons: { hard_bounce: 1, complaint: 1 } });
});

test("a thousand go in one request, in the order of the list, and an address twice in the order of the file", async () => {
  const rows = Array.from({ length: 2_498 }, (_, i) => `r${2_497 - i}@x.example,BOUNCE`);
  const { posted, entries } = await imported(
    ["A@x.example,BOUNCE", ...rows, "a@X.example,BOUNCE"].join("\n"),
  );
  expect(posted.map(({ suppressions }) => suppressions.length)).toEqual([1_000, 1_000, 500]);
  const emails = entries.map(({ email }) => email);
  expect(emails.slice(0, 4)).toEqual(["A@x.example", "a@X.example", "r0@x.example", "r1000@x.example"]);
  expect(emails.slice(2)).toEqual(emails.slice(2).toSorted());
  expect(new Set(emails).size).toBe(2_500);
});

test("a row of an address that the file has before counts as already there", async () => {
  const { socket } = await fakeDaemon({
    "POST /v1/suppressions": ({ body }) => {
      const { suppressions } = body as unknown as Posted;
      const different = new Set(suppressions.map(({ email }) => email.toLowerCase()));
      return { status: 201, json: { added: different.size - 1, updated: 1, already_suppressed: 0 } };
    },
  });
  const file = fileOf("a@x.example,BOUNCE\nb@x.example,BOUNCE\nA@x.example,BOUNCE\n");
  const { out } = await svc(["suppressions", "import", file, "--json"], { socket });
  expect(JSON.parse(out)).toMatchObject({ read: 3, added: 1, updated: 1, already_suppressed: 1 });
});

test("a list of more than one piece comes whole", async () => {
  const rows = Array.from({ length: 50_001 }, (_, i) => `r${i}@x.example,BOUNCE`);
  const { posted, entries, report } = await imported(rows.join("\n"));
  expect(posted).toHaveLength(51);
  expect(new Set(entries.map(({ email }) => email)).size).toBe(50_001);
  expect(report).toMatchObject({ read: 50_001, added: 50_001 });
});

test("a row without a reason ends the import with what was sent by then, and nothing is sent behind it", async () => {
  const rows = Array.from({ length: 50_000 }, (_, i) => `r${i}@x.example,BOUNCE`);
  const { code, err, entries } = await imported([...rows, "last@x.example,"].join("\n"));
  expect([code, err]).toEqual([2, expect.stringContaining("line 50001: found no reason why last@x.example")]);
  expect(entries.length).toBeLessThan(50_000);
  expect(err).toContain(`The addresses of ${entries.length} rows are on the list by now`);
});

test.each([
  ["a file of something else", "name,phone\nAnn,123\n", "found the columns name phone, expected"],
  ["a quote in the middle", 'email,reason\n"a"b"c@x.example\n', "found no valid CSV up to line 2:"],
  [
    "a quote that is never closed",
    'email,reason\n"b@x.example\nc@x.example',
    "found no valid CSV up to line 3:",
  ],
  ["a quote that swallows the rest", `email\n"${"b@x.example\n".repeat(20_000)}`, "exceed the maximum"],
  ["bytes that are no text", Buffer.from([0xff, 0x22, 0, 0x22, 1, 0x22]).toString("latin1"), "found"],
  ["broken JSON", '{"Suppressions": [', "found no valid JSON"],
  ["JSON without a list", '{"a": 1}', "found JSON without a list of addresses"],
])("%s is refused with what was found", async (_what, content, words) => {
  const { code, err } = await imported(content);
  expect([code, err]).toEqual([2, expect.stringContaining(words)]);
});

test("a file that cannot be read is a wrong command line, not a bug", async () => {
  const { socket } = await fakeDaemon({});
  const ran = await svc(["suppressions", "import", "/proc/self/mem"], { socket }); // its first byte is not mapped
  expect([ran.code, ran.err]).toEqual([2, expect.stringContaining("/proc/self/mem, but it cannot be read")]);
});

test("a file that is not there, and a service that is none, are a wrong command line", async () => {
  const { socket } = await fakeDaemon({});
  const missing = await svc(["suppressions", "import", join(home, "none.csv")], { socket });
  expect([missing.code, missing.err]).toEqual([2, expect.stringContaining("the file does not exist")]);
  const service = await svc(["suppressions", "import", fileOf(""), "--from", "mailchimp"], { socket });
  expect([service.code, service.err]).toEqual([2, expect.stringContaining("expected auto, ses")]);
});
