// Over the real store: what a mail that comes back changes, and what none may change.
import { rmSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRecorder } from "../../src/events/record.ts";
import { createFeedback, type Feedback } from "../../src/feedback/feedback.ts";
import { silentLog } from "../../src/log.ts";
import type { Job } from "../../src/mail/envelope.ts";
import { returnPathLocal } from "../../src/mail/return-path.ts";
import type { Store } from "../../src/store/store.ts";
import { accept, mint, newDirectory, newMessage, openSqlite, settlementOf } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { arfMail, dsnMail, plainMail, qmailBounce } from "../support/reports.ts";

const dataDir = newDirectory();
const clock = new ManualClock();
const notices: { cause: string; subject: string; text: string }[] = [];
let store: Store;
let feedback: Feedback;
let secret: Uint8Array;
let account = 0;
let count = 0;

let noticesFail = false;
const feedbackWith = (email: string | null): Feedback =>
  createFeedback({
    store,
    recorder: createRecorder({ clock, mint }),
    verpSecret: secret,
    config: { hostname: "mail.test", operations: { email, from: null } },
    notices: {
      async notify(cause, subject, text) {
        if (noticesFail) return false;
        notices.push({ cause, subject, text });
        return true;
      },
    },
    clock,
    log: silentLog,
  });

beforeAll(async () => {
  store = await openSqlite(dataDir, clock);
  secret = await store.secret("verp");
  account = (await store.accountByName("default"))?.key ?? 0;
  feedback = feedbackWith("ops@acme.test");
});
afterAll(async () => {
  await store.close();
  rmSync(dataDir, { recursive: true });
});

/** A message delivered to each of these local parts at a domain of its own. */
async function delivered(...locals: string[]): Promise<Job[]> {
  const domain = `d${++count}.test`;
  const jobs = await accept(
    store,
    newMessage({
      accountKey: account,
      to: locals.map((local) => `${local}@${domain}`),
      at: clock.now(),
      lease: true,
    }),
  );
  for (const job of jobs) await store.settle(settlementOf(job, clock.now()));
  return jobs;
}
async function one(): Promise<Job> {
  const [job] = await delivered("ann");
  if (!job) throw new Error("no job");
  return job;
}
const pathOf = (job: Job): string =>
  `${returnPathLocal(secret, job.message.key, job.key)}@${job.message.returnPathDomain}`;
async function arrive(to: string, mail: string): Promise<string> {
  const mailbox = await feedback.mailboxOf(to);
  if (!mailbox) throw new Error(`no mailbox for ${to}`);
  return feedback.take(Buffer.from(mail), [mailbox]);
}
async function eventsOf(job: Job): Promise<Record<string, unknown>[]> {
  const page = await store.listEvents(account, { messageId: job.message.id }, { limit: 50, cursor: null });
  return page.rows
    .map(({ body }) => JSON.parse(body) as { event: string; data: Record<string, unknown> })
    .map(({ event, data }) => ({ event, ...data }))
    .filter(({ event }) => event !== "message.delivered");
}
const suppressed = async (job: Job) => store.suppression(account, job.canonical, clock.now());

test("a DSN at a return path bounces a delivered recipient once and suppresses it", async () => {
  const job = await one();
  const mail = dsnMail({ to: pathOf(job), recipient: job.to });
  expect(await arrive(pathOf(job), mail)).toBe("taken");
  expect(await eventsOf(job)).toEqual([
    {
      event: "message.bounced",
      message_id: job.message.id,
      to: job.to,
      from: "info@shop.example",
      subject: "Your order",
      tags: ["orders"],
      metadata: { order: "17" },
      bounce_type: "hard",
      bounce_classification: "invalid_recipient",
      bounce_category: "recipient",
      smtp_code: "550",
      smtp_status: "5.1.1",
      smtp_response: "550 5.1.1 no such user here",
      receiving_mta: "mx.far.test",
      sending_ip: "192.0.2.7",
      attempt: 1,
      source: "dsn",
      suppressed: true,
      reported_at: "2026-11-27T09:15:00.000Z",
    },
  ]);
  const [event] = (
    await store.listEvents(
      account,
      { messageId: job.message.id, types: ["message.bounced"] },
      { limit: 5, cursor: null },
    )
  ).rows;
  expect(await suppressed(job)).toMatchObject({
    reason: "hard_bounce",
    source: "system",
    messageId: job.message.id,
    eventId: event?.id,
    smtpStatus: "5.1.1",
  });
  await arrive(pathOf(job), mail);
  await arrive(pathOf(job).toUpperCase(), mail);
  expect(await eventsOf(job)).toHaveLength(1);
});

test.each([
  ["qmail", "550 5.1.1 unknown user", "hard", "invalid_recipient", true],
  ["a full mailbox", "552 5.2.2 mailbox full", "hard", "mailbox_full", false],
  ["an expiry elsewhere", "451 4.3.0 local error", "soft", "receiver_error", false],
])("a bounce in words alone is one too: %s", async (_, reply, type, classification, suppresses) => {
  const job = await one();
  await arrive(pathOf(job), qmailBounce(pathOf(job), job.to, reply));
  expect(await eventsOf(job)).toMatchObject([
    { bounce_type: type, bounce_classification: classification, suppressed: suppresses, source: "dsn" },
  ]);
  expect((await suppressed(job)) !== null).toBe(suppresses);
});

test("a report without status and reply is undetermined and suppresses nobody by that", async () => {
  const job = await one();
  const mail = dsnMail({ to: pathOf(job), recipient: job.to }).replace(
    /^(Status|Diagnostic-Code):.*\r\n/gm,
    "",
  );
  await arrive(pathOf(job), mail);
  expect(await eventsOf(job)).toMatchObject([
    {
      bounce_type: "undetermined",
      bounce_classification: "unclassified",
      smtp_code: "550",
      suppressed: false,
    },
  ]);
  expect(await suppressed(job)).toBeNull();
});

test("a report on several recipients is one event each, and only for those of the message", async () => {
  const [ann, bob, cid] = await delivered("ann", "bob", "cid");
  if (!ann || !bob || !cid) throw new Error("no jobs");
  const stranger = await one();
  const group = (address: string): string =>
    `\r\nFinal-Recipient: rfc822; ${address}\r\nAction: failed\r\nStatus: 5.1.1\r\nDiagnostic-Code: smtp; 550 5.1.1 no\r\n`;
  const mail = dsnMail({ to: pathOf(ann), recipient: ann.to }).replace(
    "\r\n\r\n--=_b1\r\nContent-Type: text/rfc822-headers",
    `\r\n${group(bob.to)}${group(stranger.to)}${group("victim@x.test")}\r\n--=_b1\r\nContent-Type: text/rfc822-headers`,
  );
  await arrive(pathOf(ann), mail);
  expect(
    await Promise.all(
      [ann, bob, cid, stranger].map(async (job) => (await eventsOf(job)).map(({ to }) => to)),
    ),
  ).toEqual([[ann.to, bob.to], [ann.to, bob.to], [ann.to, bob.to], []]);
  expect([await suppressed(ann), await suppressed(bob)].every((entry) => entry !== null)).toBe(true);
  expect([await suppressed(cid), await suppressed(stranger)]).toEqual([null, null]);
});

test("a report on strangers alone changes nothing", async () => {
  const job = await one();
  await arrive(pathOf(job), dsnMail({ to: pathOf(job), recipient: "victim@x.test" }));
  expect(await eventsOf(job)).toEqual([]);
});

test("who forwarded our mail is known by Original-Recipient", async () => {
  const job = await one();
  await arrive(
    pathOf(job),
    dsnMail({ to: pathOf(job), recipient: "forwarded@elsewhere.test", original: job.to }),
  );
  expect(await eventsOf(job)).toMatchObject([{ to: job.to, bounce_type: "hard" }]);
});

test.each(["delayed", "relayed", "expanded", "delivered"])("Action %s is no bounce", async (action) => {
  const job = await one();
  await arrive(pathOf(job), dsnMail({ to: pathOf(job), recipient: job.to, action, status: "4.4.1" }));
  expect(await eventsOf(job)).toEqual([]);
});

test.each([
  ["vacation", { "Auto-Submitted": "auto-replied", Subject: "Re: Your order" }, "I am away until Monday."],
  [
    "out of office by subject",
    { Subject: "Out of office: Your order" },
    "I am away. For urgent matters write to bob@x.test",
  ],
  [
    "a human",
    { Subject: "Re: Your order" },
    "Where is my parcel? Your mail could not be delivered to me twice!",
  ],
  ["a challenge", { Subject: "Please confirm your message" }, "Click here to have your mail delivered."],
])("%s at a return path is ignored", async (_, fields, body) => {
  const job = await one();
  const mail = plainMail({ From: `Ann <${job.to}>`, To: pathOf(job), ...fields }, body);
  expect(await arrive(pathOf(job), mail)).toBe("taken");
  expect(await eventsOf(job)).toEqual([]);
  expect(await suppressed(job)).toBeNull();
});

test("10,000 forged return paths are none of ours", async () => {
  const job = await one();
  const [local = ""] = pathOf(job).split("@");
  const alphabet = "abcdefghijklmnopqrstuvwxyz234567";
  let taken = 0;
  for (let i = 0; i < 10_000; i++) {
    const at = 2 + (i % (local.length - 2));
    const letter = alphabet[(alphabet.indexOf(local[at] ?? "a") + 1 + (i % 31)) % 32] ?? "a";
    const forged = `${local.slice(0, at)}${letter}${local.slice(at + 1)}`;
    if (await feedback.mailboxOf(`${forged}@${job.message.returnPathDomain}`)) taken += 1;
  }
  expect(taken).toBe(0);
  expect(await feedback.mailboxOf(`${local}@other.test`)).toBeNull();
  expect(await feedback.mailboxOf(`${returnPathLocal(secret, 999_999, 1)}@rp.shop.example`)).toBeNull();
  expect(await feedback.mailboxOf(pathOf(job))).not.toBeNull();
});

test.each([
  "info@mail.test",
  "fbl@other.test",
  "fbl+@mail.test",
  "postmaster@shop.example",
  "b-@mail.test",
  "x",
  "",
])("%j is no address here", async (address) => {
  expect(await feedback.mailboxOf(address)).toBeNull();
});

test("a complaint by the message's id tells, suppresses and counts once", async () => {
  const job = await one();
  const returned = [
    `Message-ID: <${job.message.id.slice(4).toUpperCase()}@mail.test>`,
    "Subject: Your order",
  ];
  const mail = arfMail({
    to: "fbl+yahoo@mail.test",
    returned,
    report: ["Arrival-Date: Fri, 27 Nov 2026 09:30:00 +0000"],
  });
  await arrive("fbl+yahoo@mail.test", mail);
  await arrive("fbl@mail.test", mail);
  expect(await eventsOf(job)).toMatchObject([
    {
      event: "message.complained",
      to: job.to,
      complaint_source: "yahoo",
      complaint_type: "abuse",
      feedback_type: "abuse",
      reported_at: "2026-11-27T09:30:00.000Z",
      sending_ip: "192.0.2.7",
    },
  ]);
  expect(await suppressed(job)).toMatchObject({ reason: "complaint", source: "system" });
});

test("a complaint finds its recipient by the return path, in any form, with the address hidden", async () => {
  const [ann, bob] = await delivered("ann", "bob");
  if (!ann || !bob) throw new Error("no jobs");
  const report = [`original-mail-from: <${pathOf(bob)}>`, "original-rcpt-to: <redacted@x.test>"];
  await arrive(
    "fbl@mail.test",
    arfMail({ to: "fbl@mail.test", report, date: false, encode: true, type: "opt-out" }),
  );
  expect(await eventsOf(ann)).toMatchObject([
    {
      to: bob.to,
      complaint_source: "generic_arf",
      complaint_type: "opt_out",
      reported_at: new Date(clock.now()).toISOString(),
    },
  ]);
  expect(await suppressed(ann)).toBeNull();
});

test("Microsoft's form without fields is a complaint", async () => {
  const job = await one();
  const mail = plainMail(
    {
      From: "staff@hotmail.com",
      To: "fbl@mail.test",
      Subject: "complaint about message from 192.0.2.7",
      "MIME-Version": "1.0",
      "Content-Type": 'multipart/mixed; boundary="m1"',
    },
    `--m1\nContent-Type: message/rfc822\n\nX-HmXmrOriginalRecipient: ${job.to}\nReceived: by mail.test with ESMTPSA\n id ${job.message.id}; Fri, 27 Nov 2026 09:00:00 +0000\nSubject: x\n\nHello\n--m1--`,
  );
  await arrive("fbl@mail.test", mail);
  expect(await eventsOf(job)).toMatchObject([{ complaint_source: "microsoft_jmrp", feedback_type: "abuse" }]);
});

test.each(["not-spam", "auth-failure", "dkim"])(
  "a %s report raises nothing and lifts nothing",
  async (type) => {
    const job = await one();
    const returned = [`Message-ID: <${job.message.id.slice(4)}@mail.test>`];
    await arrive("fbl@mail.test", arfMail({ to: "fbl@mail.test", type, returned }));
    expect(await eventsOf(job)).toEqual([]);
  },
);

test("a complaint that leaves open whose it is changes nothing", async () => {
  const [ann] = await delivered("ann", "bob");
  if (!ann) throw new Error("no job");
  const returned = [`Message-ID: <${ann.message.id.slice(4)}@mail.test>`];
  await arrive("fbl@mail.test", arfMail({ to: "fbl@mail.test", returned }));
  expect(await eventsOf(ann)).toEqual([]);
});

test("who was not written to yet cannot have complained", async () => {
  const bob = `bob@d${++count}.test`;
  const waiting = newMessage({ accountKey: account, to: [`ann@d${count}.test`, bob], at: clock.now() });
  await accept(store, waiting);
  const returned = [`Message-ID: <${waiting.message.id.slice(4)}@mail.test>`];
  const report = [`Original-Rcpt-To: ${bob}`];
  await arrive("fbl@mail.test", arfMail({ to: "fbl@mail.test", returned, report }));
  expect(await store.suppression(account, bob, clock.now())).toBeNull();
  const page = await store.listEvents(
    account,
    { messageId: waiting.message.id },
    { limit: 50, cursor: null },
  );
  expect(page.rows).toEqual([]);
});

test("while the attempt is under way a bounce is asked to come again", async () => {
  const [job] = await accept(
    store,
    newMessage({ accountKey: account, to: [`now@d${++count}.test`], at: clock.now(), lease: true }),
  );
  if (!job) throw new Error("no job");
  expect(await arrive(pathOf(job), dsnMail({ to: pathOf(job), recipient: job.to }))).toBe("later");
  await store.settle(settlementOf(job, clock.now()));
  expect(await arrive(pathOf(job), dsnMail({ to: pathOf(job), recipient: job.to }))).toBe("taken");
  expect(await eventsOf(job)).toHaveLength(1);
});

test("mail to postmaster goes to the operator as a notice, so many an hour", async () => {
  const mail = (n: number): string =>
    plainMail({ From: "Eve <eve@far.test>", Subject: `your server ${n}` }, `It is broken ${n}.`);
  notices.length = 0;
  for (let n = 0; n < 30; n++) expect(await arrive("Postmaster@mail.test", mail(n))).toBe("taken");
  expect(await arrive("abuse@mail.test", mail(31))).toBe("later");
  expect(notices).toHaveLength(30);
  expect(notices[0]).toMatchObject({ subject: "mail to postmaster@mail.test" });
  expect(notices[0]?.text).toContain("From: Eve <eve@far.test>");
  expect(notices[0]?.text).toContain("It is broken 0.");
  expect(new Set(notices.map(({ cause }) => cause)).size).toBe(30);
  await clock.advance(3_600_000);
  expect(await arrive("abuse@mail.test", mail(31))).toBe("taken");
});

test.each([
  [
    "a notice of ours that the operator's server sends on",
    { "Message-ID": "<01kb3x5n8e7qv2w4y6z8a0b2c4@Mail.Test>" },
  ],
  ["what answers by itself", { "Auto-Submitted": "auto-replied" }],
])("%s is taken and makes no new notice", async (_, fields) => {
  await clock.advance(3_600_000);
  notices.length = 0;
  const mail = plainMail({ From: "ops@acme.test", Subject: "[svc] x", ...fields }, "Hello");
  expect(await arrive("postmaster@mail.test", mail)).toBe("taken");
  expect(notices).toEqual([]);
});

test("mail to postmaster that cannot be queued is not taken: its sender tries again", async () => {
  await clock.advance(2 * 3_600_000);
  noticesFail = true;
  const before = notices.length;
  const mail = "From: a@far.test\r\nSubject: hello\r\n\r\nAre you there?\r\n";
  expect(await arrive("postmaster@mail.test", mail)).toBe("later");
  noticesFail = false;
  expect(await arrive("postmaster@mail.test", mail)).toBe("taken");
  expect(notices.length).toBe(before + 1);
});

test("postmaster needs no domain", async () => {
  expect(await feedback.mailboxOf("Postmaster")).toEqual({ kind: "operator", name: "postmaster" });
});

test.each([null, "ops@mail.test"])("postmaster is no address where the operator is %j", async (email) => {
  expect(await feedbackWith(email).mailboxOf("postmaster@mail.test")).toBeNull();
});
