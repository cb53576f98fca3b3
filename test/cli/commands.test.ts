import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fakeDaemon, page, scratch, svc, type Reply } from "./world.ts";

const created: Reply = {
  status: 201,
  json: { id: "key_1", name: "shop", scope: "send", key: "svc_live_secret" },
};

test("a new key stands alone on stdout, so that it can be piped", async () => {
  const { socket, seen } = await fakeDaemon({ "POST /v1/keys": created });
  const args = [
    "keys",
    "create",
    "--name",
    "shop",
    "--scope",
    "send",
    "--test",
    "--allow-ip",
    "10.0.0.0/8,::1",
    "--allow-ip",
    "192.0.2.1",
    "--expires",
    "90d",
  ];
  const ran = await svc(args, { socket });
  expect(ran).toMatchObject({ code: 0, out: "svc_live_secret\n" });
  expect(ran.err).toContain("shown only once");
  expect(seen[0]?.body).toEqual({
    name: "shop",
    scope: "send",
    test: true,
    allow_ips: ["10.0.0.0/8", "::1", "192.0.2.1"],
    expires_at: "2027-02-25T09:00:00.000Z",
  });
});

test("--json prints the API's own body and nothing else", async () => {
  const text = '{"id":"key_1", "name":"shop","scope":"send","key":"svc_live_secret"}';
  const { socket } = await fakeDaemon({ "POST /v1/keys": { status: 201, text } });
  expect(await svc(["--json", "key", "create", "--name", "shop", "--scope", "send"], { socket })).toEqual({
    code: 0,
    out: `${text}\n`,
    err: "",
  });
});

test("one page of a list says how to go on, all pages come as one table or as NDJSON", async () => {
  const { socket, seen } = await fakeDaemon({
    "GET /v1/keys": ({ query }) =>
      query["cursor"] === undefined
        ? page([{ id: "key_1" }, { id: "key_2" }], "c2")
        : page([{ id: "key_3" }]),
  });
  const first = await svc(["keys", "list", "--limit", "2"], { socket });
  expect(first.err.trimEnd()).toBe("More rows: add --all, or --cursor c2");
  expect(seen[0]?.query).toEqual({ limit: "2" });
  expect((await svc(["keys", "list", "--all"], { socket })).out.match(/key_\d/g)).toEqual([
    "key_1",
    "key_2",
    "key_3",
  ]);
  expect((await svc(["keys", "list", "--all", "--json"], { socket })).out).toBe(
    '{"id":"key_1"}\n{"id":"key_2"}\n{"id":"key_3"}\n',
  );
  expect((await svc(["keys", "list", "--json"], { socket })).out).toBe(
    '{"data":[{"id":"key_1"},{"id":"key_2"}],"has_more":true,"next_cursor":"c2"}\n',
  );
});

test("a server whose cursor never moves does not hold --all for ever", async () => {
  const { socket } = await fakeDaemon({ "GET /v1/keys": page([{ id: "key_1" }], "same") });
  expect((await svc(["keys", "list", "--all"], { socket })).code).toBe(0);
});

test("keys unused for a span are found over all pages", async () => {
  const at = (last: string | null, made: string) => ({
    id: `key_${made.slice(0, 4)}`,
    created_at: made,
    last_used_at: last,
  });
  const { socket } = await fakeDaemon({
    "GET /v1/keys": ({ query }) =>
      query["cursor"] === undefined
        ? page(
            [
              at(null, "2025-01-01T00:00:00.000Z"),
              at("2026-11-26T00:00:00.000Z", "2024-01-01T00:00:00.000Z"),
            ],
            "c",
          )
        : page([at("2026-01-01T00:00:00.000Z", "2023-01-01T00:00:00.000Z")]),
  });
  expect((await svc(["keys", "list", "--unused", "90d"], { socket })).out.match(/key_\d+/g)).toEqual([
    "key_2025",
    "key_2023",
  ]);
});

test("a key is shown by its id; one that is not there is exit 3", async () => {
  const { socket } = await fakeDaemon({ "GET /v1/keys/key_1": { json: { id: "key_1", name: "shop" } } });
  expect((await svc(["keys", "show", "key_1"], { socket })).out).toContain("shop");
  expect((await svc(["keys", "show", "key_2"], { socket })).code).toBe(3);
});

test.each([
  [["keys", "revoke", "key_1"], "POST /v1/keys/key_1/revoke", "--yes"],
  [["smtp-credentials", "rotate", "cred_1"], "POST /v1/smtp_credentials/cred_1/rotate", "--yes"],
  [["smtp-credentials", "revoke", "cred_1"], "POST /v1/smtp_credentials/cred_1/revoke", "--yes"],
  [["webhooks", "delete", "whk_1"], "DELETE /v1/webhooks/whk_1", "--yes"],
  [["inbox", "clear"], "DELETE /v1/inbox", "--yes"],
])("%j asks first; without a terminal it names the flag and does nothing", async (args, route, flag) => {
  const { socket, seen } = await fakeDaemon({
    [route]: { json: { status: "revoked", cleared: 3, password: "p" } },
  });
  const alone = await svc(args, { socket });
  expect([alone.code, seen.length]).toEqual([2, 0]);
  expect(alone.err).toContain(`Add ${flag}`);
  const declined = await svc(args, { socket, tty: true, stdin: "n\n" });
  expect([declined.code, seen.length]).toEqual([1, 0]);
  const closed = await svc(args, { socket, tty: true, stdin: "" });
  expect([closed.code, seen.length]).toEqual([1, 0]);
  expect((await svc(args, { socket, tty: true, stdin: "y\n" })).code).toBe(0);
  expect((await svc([...args, flag], { socket })).code).toBe(0);
  expect(seen).toHaveLength(2);
});

test("a domain is deleted only once its name was typed or confirmed", async () => {
  const { socket, seen } = await fakeDaemon({ "DELETE /v1/domains/acme.example": { status: 204 } });
  const args = ["domains", "delete", "acme.example"];
  expect((await svc(args, { socket })).err).toContain("Add --confirm acme.example");
  expect((await svc([...args, "--confirm", "other.example"], { socket })).code).toBe(2);
  expect((await svc(args, { socket, tty: true, stdin: "y\n" })).code).toBe(2);
  expect(seen).toHaveLength(0);
  expect((await svc(args, { socket, tty: true, stdin: "acme.example\n" })).code).toBe(0);
  expect((await svc([...args, "--confirm", "acme.example"], { socket })).code).toBe(0);
});

const record = {
  purpose: "spf",
  type: "TXT",
  name: "acme.example",
  value: "v=spf1 -all",
  required: true,
  status: "missing",
  found: [],
  issue: "is not there",
};

test("verifying a domain is exit 7 while a record is missing, naming it, and 0 once verified", async () => {
  let status = "pending";
  const { socket } = await fakeDaemon({
    "POST /v1/domains/acme.example/verify": () => ({
      json: { name: "acme.example", status, records: [record] },
    }),
  });
  const ran = await svc(["domains", "verify", "acme.example"], { socket });
  expect(ran.code).toBe(7);
  expect(ran.out).toBe("TXT  acme.example  (spf, required, missing)\n     v=spf1 -all\n     is not there\n");
  expect(ran.err).toContain("acme.example is pending: 1 of its records are missing or wrong");
  status = "verified";
  expect((await svc(["domains", "verify", "acme.example"], { socket })).code).toBe(0);
});

test("verify --wait asks again until the time is over, where the resolver fails too", async () => {
  const { ManualClock } = await import("../support/clock.ts");
  const clock = new ManualClock();
  let asked = 0;
  const { socket } = await fakeDaemon({
    "POST /v1/domains/acme.example/verify": () => {
      asked += 1;
      if (asked === 2)
        return { status: 502, json: { code: "upstream_error", detail: "The resolver failed." } };
      return { json: { status: asked > 2 ? "verified" : "pending", records: [] } };
    },
  });
  const done = svc(["domains", "verify", "acme.example", "--wait", "1m"], { socket, clock });
  while (asked < 3) {
    await clock.advance(0);
    if (clock.pending > 0) await clock.advance(10_000);
  }
  expect((await done).code).toBe(0);
});

test("records come as a table, as a zone file and as JSON", async () => {
  const { socket } = await fakeDaemon({
    "GET /v1/domains/acme.example": { json: { name: "acme.example", records: [record] } },
  });
  const records = (format: string) =>
    svc(["domains", "records", "acme.example", "--format", format], { socket });
  expect((await records("bind")).out).toBe('acme.example.\t3600\tIN\tTXT\t"v=spf1 -all"\n');
  expect(JSON.parse((await records("json")).out)).toEqual({ records: [record] });
  expect((await records("table")).out).toContain("v=spf1 -all");
  expect((await records("xml")).code).toBe(2);
});

test("an address with a slash reaches the daemon as one part of the path", async () => {
  const { socket, seen } = await fakeDaemon({ "DELETE /v1/suppressions/a%2Fb%40x.example": { status: 204 } });
  expect((await svc(["suppressions", "remove", "a/b@x.example"], { socket })).code).toBe(0);
  expect(seen[0]?.path).toBe("/v1/suppressions/a%2Fb%40x.example");
});

test.each([
  ["messages", "No messages.\n"],
  ["events", "No events.\n"],
])("a list of %s that is empty says so", async (noun, err) => {
  const { socket } = await fakeDaemon({ [`GET /v1/${noun}`]: page([]) });
  expect(await svc([noun, "list"], { socket })).toMatchObject({ code: 0, out: "", err });
});

test("an end in the future is asked for in words of the future", async () => {
  const ran = await svc(["suppressions", "add", "a@x.example", "--expires", "foo"]);
  expect(ran.code).toBe(2);
  expect(ran.err).toContain(
    'svc: --expires: found "foo", expected a time (2026-12-01T08:00:00Z, 2026-12-01) or a span from now (15m, 24h, 90d)',
  );
});

test("filters of lists become the API's parameters", async () => {
  const { socket, seen } = await fakeDaemon({
    "GET /v1/messages": page([]),
    "GET /v1/events": page([]),
    "GET /v1/suppressions": page([]),
  });
  await svc(
    [
      "messages",
      "list",
      "--to",
      "a@x.example",
      "--domain",
      "x.example",
      "--since",
      "1h",
      "--until",
      "2026-11-27T09:00:00Z",
    ],
    { socket },
  );
  await svc(
    ["events", "list", "--event", "message.bounced", "--event", "message.delivered", "--message", "msg_1"],
    { socket },
  );
  await svc(["suppressions", "list", "--prefix", "a", "--since", "24h"], { socket });
  expect(seen.map(({ query }) => query)).toEqual([
    {
      to: "a@x.example",
      to_domain: "x.example",
      created_after: "2026-11-27T08:00:00.000Z",
      created_before: "2026-11-27T09:00:00.000Z",
    },
    { event: "message.bounced,message.delivered", message_id: "msg_1", order: "desc" },
    { email_prefix: "a", created_after: "2026-11-26T09:00:00.000Z" },
  ]);
});

test("send takes its text from standard input, files for the rest, and prints the id", async () => {
  const { socket, seen } = await fakeDaemon({
    "POST /v1/messages": { status: 202, json: { id: "msg_1", status: "queued" } },
  });
  const directory = scratch();
  writeFileSync(join(directory, "page.html"), "<p>hi");
  writeFileSync(join(directory, "a.pdf"), "PDF");
  const base = ["send", "--from", "h@x.example", "--subject", "Grüße"];
  const piped = await svc([...base, "--to", '"Na, me" <a@x.example>, b@x.example', "--to", "c@x.example"], {
    socket,
    stdin: "Hello\n",
  });
  expect(piped.out).toBe("msg_1\n");
  await svc(
    [
      ...base,
      "--to",
      "a@x.example",
      "--html",
      join(directory, "page.html"),
      "--attach",
      join(directory, "a.pdf"),
      "--tag",
      "one,two",
      "--at",
      "2h",
    ],
    { socket },
  );
  expect(seen.map(({ body }) => body)).toEqual([
    {
      from: "h@x.example",
      to: ['"Na, me" <a@x.example>', "b@x.example", "c@x.example"],
      subject: "Grüße",
      text: "Hello\n",
    },
    {
      from: "h@x.example",
      to: ["a@x.example"],
      subject: "Grüße",
      html: "<p>hi",
      tags: ["one", "two"],
      send_at: "2026-11-27T11:00:00.000Z",
      attachments: [{ filename: "a.pdf", content: "UERG" }],
    },
  ]);
  expect(await svc([...base, "--to", "a@x.example"], { socket, tty: true })).toMatchObject({ code: 2 });
  expect(
    await svc([...base, "--to", "a@x.example", "--attach", "/none", "--text", "x"], { socket }),
  ).toMatchObject({ code: 2 });
});

test.each([
  ["delivered", 0],
  ["bounced", 1],
])("send --wait ends once the message is %s, with exit %i", async (status, code) => {
  const recipients = [{ email: "a@x.example", status, smtp_response: "250 2.0.0 OK" }];
  const { socket } = await fakeDaemon({
    "POST /v1/messages": { status: 202, json: { id: "msg_1" } },
    "GET /v1/messages/msg_1": { json: { id: "msg_1", recipients } },
  });
  const ran = await svc(
    ["send", "--from", "h@x.example", "--to", "a@x.example", "--subject", "s", "--text", "t", "--wait"],
    { socket },
  );
  expect(ran).toMatchObject({ code, out: `msg_1  a@x.example  ${status}  250 2.0.0 OK\n` });
});

test("a trace shows every line of the dialogue and what comes next", async () => {
  const attempt = {
    recipient: "a@x.example",
    attempt: 2,
    started_at: "2026-11-27T09:00:00.000Z",
    host: "mx.x.example",
    address: "192.0.2.1",
    tls: { version: "TLSv1.3" },
    outcome: "deferred",
    ambiguous: true,
    dialogue: [
      { at_ms: 3, from: "them", text: "220 hi\u001b[2J" },
      { at_ms: 4, from: "us", text: "EHLO mail.acme.example" },
    ],
    next_attempt_at: "2026-11-27T09:05:00.000Z",
  };
  const { socket } = await fakeDaemon({ "GET /v1/messages/msg_1/attempts": { json: { data: [attempt] } } });
  expect((await svc(["messages", "trace", "msg_1"], { socket })).out.trimEnd().split("\n")).toEqual([
    "2026-11-27 09:00:00Z  a@x.example  attempt 2: deferred  mx.x.example 192.0.2.1, TLSv1.3",
    "       3 ms  < 220 hi\\x1b[2J",
    "       4 ms  > EHLO mail.acme.example",
    "  The reply to the final dot was lost: the receiver may have a copy.",
    "  next attempt 2026-11-27 09:05:00Z",
  ]);
});

test.each([
  [null, "mx.x.example 192.0.2.1, in clear"],
  [{ version: "TLSv1.3", policy: "none" }, "mx.x.example 192.0.2.1, TLSv1.3"],
  [{ version: "TLSv1.3", policy: "dane" }, "mx.x.example 192.0.2.1, TLSv1.3, policy dane"],
  [{ version: null, policy: "mta-sts" }, "mx.x.example 192.0.2.1, no TLS, policy mta-sts"],
])("a trace shows the TLS of an attempt and what asked for it: %j", async (tls, shown) => {
  const attempt = {
    recipient: "a@x.example",
    attempt: 1,
    started_at: "2026-11-27T09:00:00.000Z",
    host: "mx.x.example",
    address: "192.0.2.1",
    tls,
    outcome: "deferred",
    dialogue: [],
  };
  const { socket } = await fakeDaemon({ "GET /v1/messages/msg_1/attempts": { json: { data: [attempt] } } });
  const { out } = await svc(["messages", "trace", "msg_1"], { socket });
  expect(out.split("\n")[0]).toMatch(new RegExp(`deferred  ${shown.replaceAll(".", "[.]")}$`));
});

test("the status of the service fits one screen, and says when new mail is refused", async () => {
  const { socket } = await fakeDaemon({
    "GET /v1/status": {
      json: {
        version: "0.1.0",
        hostname: "mail.acme.example",
        dev: false,
        started_at: "2026-11-27T08:00:00.000Z",
        uptime_seconds: 93_784,
        ready: false,
        queue: { scheduled: 1, queued: 2, deferred: 3, sending: 4, oldest_due_at: null },
        store: {
          journal_mode: "wal",
          synchronous: 2,
          schema_version: 1,
          free_bytes: 2 ** 30,
          wal_bytes: 0,
          writable: true,
          full: true,
        },
        listeners: [{ name: "http", address: "[::]:443" }],
        jobs: [
          { name: "domains", cron: "0 * * * *", last_run_at: null, next_run_at: "2026-11-27T10:00:00.000Z" },
        ],
        memory_bytes: 100 * 2 ** 20,
      },
    },
  });
  const ran = await svc(["status"], { socket });
  expect(ran.out).toContain("1 scheduled, 2 queued, 3 deferred, 4 sending");
  expect(ran.out).toContain("1d 2h");
  expect(ran.out).toContain("[::]:443");
  expect(ran.out.split("\n").length).toBeLessThan(24);
  expect(ran.err).toContain("New mail is refused");
});

test("keys of a domain are rotated with a key of one's own, and what is new is shown to publish", async () => {
  const file = join(scratch(), "own.pem");
  writeFileSync(file, "-----BEGIN PRIVATE KEY-----");
  const dkim = (name: string, status: string) => ({
    purpose: "dkim",
    type: "TXT",
    name,
    value: "v=DKIM1",
    required: status === "ok",
    status,
    issue: null,
  });
  const { socket, seen } = await fakeDaemon({
    "POST /v1/domains/acme.example/dkim/rotate": {
      json: { records: [dkim("old.acme.example", "ok"), dkim("new.acme.example", "unchecked")] },
    },
  });
  const args = ["domains", "dkim", "import", "acme.example", file, "--selector", "y2027"];
  const ran = await svc(args, { socket });
  expect(ran.code).toBe(0);
  expect(ran.out).toContain("new.acme.example");
  expect(ran.out).not.toContain("old.acme.example");
  expect(seen[0]?.body).toEqual({ selector: "y2027", private_key: "-----BEGIN PRIVATE KEY-----" });
});

test("a domain is updated, suspended and resumed", async () => {
  const json = { records: [], status: "suspended" };
  const { socket, seen } = await fakeDaemon({
    "PATCH /v1/domains/acme.example": { json },
    "POST /v1/domains/acme.example/suspend": { json },
  });
  const update = (...flags: string[]) => svc(["domains", "update", "acme.example", ...flags], { socket });
  await update("--return-path", "none", "--subdomains", "off");
  expect(seen[0]?.body).toEqual({ return_path_domain: null, allow_subdomains: false });
  expect((await update()).code).toBe(2);
  expect((await update("--subdomains", "maybe")).err).toContain("--subdomains");
  expect((await svc(["domains", "suspend", "acme.example"], { socket })).err).toContain("suspended");
});

test("tracking of a domain is set, shown with its record, and turned off", async () => {
  const tracking = { enabled: true, opens: true, clicks: false };
  const cname = { purpose: "tracking", type: "CNAME", name: "t.acme.example", value: "mail.acme.example" };
  const json = {
    tracking,
    tracking_domain: "t.acme.example",
    records: [record, { ...cname, required: false, status: "ok", issue: null }],
  };
  const path = "/v1/domains/acme.example";
  const { socket, seen } = await fakeDaemon({ [`PATCH ${path}`]: { json }, [`GET ${path}`]: { json } });
  const act = (...words: string[]) => svc(["domains", "tracking", ...words], { socket });
  const set = await act(
    "set",
    "acme.example",
    "--host",
    "t.acme.example",
    "--opens",
    "on",
    "--clicks",
    "off",
  );
  await act("off", "acme.example");
  expect(seen.map(({ body }) => body)).toEqual([
    { tracking_domain: "t.acme.example", tracking: { enabled: true, opens: true, clicks: false } },
    { tracking: { enabled: false } },
  ]);
  expect(set.out).toContain("CNAME  t.acme.example");
  expect(set.out).not.toContain("v=spf1");
  expect(set.err).toContain("svc domains verify acme.example");
  expect((await act("show", "acme.example")).out).toMatch(/opens +yes/);
  expect((await act("set", "acme.example", "--opens", "maybe")).code).toBe(2);
});

test("the suppression list is exported as it comes, with what it was filtered by", async () => {
  const file = `email,reason\r\n${"a@x.test,manual\r\n".repeat(20_000)}`;
  const { socket, seen } = await fakeDaemon({ "GET /v1/suppressions": { text: file, type: "text/csv" } });
  const args = ["suppressions", "export", "--reason", "manual", "--since", "2026-11-01T00:00:00Z"];
  const ran = await svc(args, { socket });
  expect([ran.code, ran.out === file]).toEqual([0, true]);
  expect(seen[0]?.headers.accept).toBe("text/csv");
  expect(seen[0]?.query).toEqual({ reason: "manual", created_after: "2026-11-01T00:00:00.000Z" });
});

test("an export that breaks off is not a success", async () => {
  const { socket } = await fakeDaemon({
    "GET /v1/suppressions": { text: "email,reason\r\n", type: "text/csv", cut: true },
  });
  const ran = await svc(["suppressions", "export"], { socket });
  expect([ran.code, ran.err]).toEqual([6, expect.stringContaining("was interrupted")]);
});

test("a domain is shown with its keys by name", async () => {
  const { socket } = await fakeDaemon({
    "GET /v1/domains/acme.example": {
      json: {
        name: "acme.example",
        records: [],
        dkim: [{ selector: "svc2", algorithm: "rsa-sha256", status: "pending", retired_at: null }],
        tracking: { enabled: false, opens: true, clicks: false },
      },
    },
  });
  const { out } = await svc(["domains", "show", "acme.example"], { socket });
  expect(out).toContain("svc2 (rsa-sha256, pending)");
  expect(out).toMatch(/tracking opens +yes/);
});

test("a snippet has the server's name and port and the login, and no password", async () => {
  const { socket } = await fakeDaemon({
    "GET /v1/status": {
      json: { hostname: "mail.acme.example", listeners: [{ name: "smtp", address: "[::]:2525" }] },
    },
    "GET /v1/smtp_credentials": { json: { data: [{ id: "smtp_1", username: "smtp_acct_1" }] } },
  });
  for (const client of ["nodemailer", "django", "rails", "laravel", "wordpress", "msmtp", "swaks", "git"]) {
    const { code, out } = await svc(["smtp-credentials", "snippet", "smtp_1", "--for", client], { socket });
    expect([code, client]).toEqual([0, client]);
    for (const part of ["mail.acme.example", "2525", "smtp_acct_1"]) expect(out).toContain(part);
  }
  const wrong = await svc(["smtp-credentials", "snippet", "--for", "outlook"], { socket });
  expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("expected nodemailer, django")]);
  const nobody = await svc(["smtp-credentials", "snippet", "smtp_2", "--for", "git"], { socket });
  expect([nobody.code, nobody.err]).toEqual([3, expect.stringContaining("smtp-credentials list")]);
});
