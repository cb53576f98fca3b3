// Over the real store: what a mail that comes back changes, and what none may change. Complaints: complaints.test.ts.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Feedback } from "../../src/feedback/feedback.ts";
import { returnPathLocal } from "../../src/mail/return-path.ts";
import type { Job } from "../../src/model/queued-recipient.ts";
import { accept, newMessage, settlementOf } from "../store/fixtures.ts";
import { dsnMail, plainMail, qmailBounce } from "../support/reports.ts";
import { feedbackRig, stranger, type FeedbackRig } from "./rig.ts";

const notices: { cause: string; subject: string; text: string }[] = [];
let rig: FeedbackRig;
let feedback: Feedback;
let noticesFail = false;
const feedbackWith = (email: string | null): Feedback =>
  rig.feedbackWith({
    email,
    notices: {
      async notify(cause, subject, text) {
        if (noticesFail) return false;
        notices.push({ cause, subject, text });
        return true;
      },
    },
  });

beforeAll(async () => {
  rig = await feedbackRig();
  feedback = feedbackWith("ops@acme.test");
});
afterAll(() => rig.close());

const delivered = (...locals: string[]): Promise<Job[]> => rig.delivered(...locals);
async function one(): Promise<Job> {
  const [job] = await delivered("ann");
  if (!job) throw new Error("no job");
  return job;
}
const pathOf = (job: Job): string => rig.pathOf(job);
const arrive = (to: string, mail: string): Promise<string> => rig.arrive(to, mail, stranger, feedback);
const eventsOf = (job: Job) => rig.eventsOf(job);
const suppressed = (job: Job) => rig.suppressed(job);

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
    await rig.store.listEvents(
      rig.account,
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

test("a report without status and reply is undetermined and does not suppress", async () => {
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

/** A report with more groups than the one of `recipient`. */
function dsnOfSeveral(job: Job, recipient: string, others: [string, string][]): string {
  const groups = others.map(
    ([address, status]) =>
      `\r\nFinal-Recipient: rfc822; ${address}\r\nAction: failed\r\nStatus: ${status}\r\nDiagnostic-Code: smtp; 550 ${status} no\r\n`,
  );
  return dsnMail({ to: pathOf(job), recipient }).replace(
    "\r\n\r\n--=_b1\r\nContent-Type: text/rfc822-headers",
    `\r\n${groups.join("")}\r\n--=_b1\r\nContent-Type: text/rfc822-headers`,
  );
}

test("a return path speaks for its own recipient: a report that names others too bounces none of them", async () => {
  const [ann, bob, cid] = await delivered("ann", "bob", "cid");
  if (!ann || !bob || !cid) throw new Error("no jobs");
  const other = await one();
  const names: [string, string][] = [bob, other].map(({ to }) => [to, "5.1.1"]);
  await arrive(pathOf(ann), dsnOfSeveral(ann, ann.to, [...names, ["victim@x.test", "5.1.1"]]));
  expect((await eventsOf(ann)).map(({ to }) => to)).toEqual([ann.to]);
  expect(await eventsOf(other)).toEqual([]);
  const listed = await Promise.all(
    [ann, bob, cid, other].map(async (job) => (await suppressed(job)) !== null),
  );
  expect(listed).toEqual([true, false, false, false]);
});

test("of a report on several the entry that names the own recipient is reported, wherever it stands", async () => {
  const [ann, bob] = await delivered("ann", "bob");
  if (!ann || !bob) throw new Error("no jobs");
  await arrive(pathOf(ann), dsnOfSeveral(ann, bob.to, [[ann.to, "5.2.2"]]));
  expect(await eventsOf(ann)).toMatchObject([
    { to: ann.to, smtp_status: "5.2.2", bounce_classification: "mailbox_full", suppressed: false },
  ]);
});

test("a co-recipient cannot be bounced with the own return path: the report is then on the own mail", async () => {
  const [ann, bob] = await delivered("ann", "bob");
  if (!ann || !bob) throw new Error("no jobs");
  await arrive(pathOf(ann), dsnMail({ to: pathOf(ann), recipient: bob.to }));
  expect(await eventsOf(ann)).toMatchObject([{ to: ann.to, suppressed: false }]);
  expect([await suppressed(ann), await suppressed(bob)]).toEqual([null, null]);
});

test("the target of a forward that failed is a bounce of its classification and does not suppress", async () => {
  const job = await one();
  await arrive(pathOf(job), dsnMail({ to: pathOf(job), recipient: "target@elsewhere.test" }));
  expect(await eventsOf(job)).toMatchObject([
    {
      event: "message.bounced",
      to: job.to,
      bounce_type: "hard",
      bounce_classification: "invalid_recipient",
      source: "dsn",
      suppressed: false,
    },
  ]);
  expect(await suppressed(job)).toBeNull();
});

test("a report whose failed address is a return path of ours changes nothing", async () => {
  const [job, other] = [await one(), await one()];
  for (const recipient of [pathOf(job), pathOf(other), pathOf(other).toUpperCase()])
    expect(await arrive(pathOf(job), dsnMail({ to: pathOf(job), recipient }))).toBe("taken");
  expect(await eventsOf(job)).toEqual([]);
});

test("a report of the size of the kept part, cut off in the returned message, is still read", async () => {
  const job = await one();
  const whole = dsnMail({ to: pathOf(job), recipient: job.to });
  const cut = whole.slice(0, whole.lastIndexOf("--=_b1--")) + "x".repeat(300_000);
  await arrive(pathOf(job), cut.slice(0, 262_144));
  expect(await eventsOf(job)).toMatchObject([{ to: job.to, suppressed: true }]);
});

test("what cannot be read now is asked for again, a report and a mail to the operator", async () => {
  const job = await one();
  const full = () => Promise.reject(new Error("the reader is full"));
  const busy = rig.feedbackWith({ readReturned: full, readNotice: full });
  const mail = dsnMail({ to: pathOf(job), recipient: job.to });
  expect(await rig.arrive(pathOf(job), mail, stranger, busy)).toBe("later");
  expect(await rig.arrive("postmaster@mail.test", mail, stranger, busy)).toBe("later");
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

test.each(["delayed", "relayed", "expanded", "delivered"])("Action %s is not a bounce", async (action) => {
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
  expect(await feedback.mailboxOf(`${returnPathLocal(rig.secret, 999_999, 1)}@rp.shop.example`)).toBeNull();
  expect(await feedback.mailboxOf(pathOf(job))).not.toBeNull();
});

test.each([
  "info@mail.test",
  "fbl@other.test",
  "fbl+@mail.test",
  "postmaster@shop.example",
  "b+@mail.test",
  "x",
  "",
])("%j is not an address here", async (address) => {
  expect(await feedback.mailboxOf(address)).toBeNull();
});

test("while the attempt is under way a bounce is asked to come again", async () => {
  const [job] = await accept(
    rig.store,
    newMessage({ accountKey: rig.account, to: [`now@${rig.newDomain()}`], at: rig.clock.now(), lease: true }),
  );
  if (!job) throw new Error("no job");
  expect(await arrive(pathOf(job), dsnMail({ to: pathOf(job), recipient: job.to }))).toBe("later");
  await rig.store.settle(settlementOf(job, rig.clock.now()));
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
  await rig.clock.advance(3_600_000);
  expect(await arrive("abuse@mail.test", mail(31))).toBe("taken");
});

test.each([
  [
    "a notice of ours that the operator's server sends on",
    { "Message-ID": "<01kb3x5n8e7qv2w4y6z8a0b2c4@Mail.Test>" },
  ],
  ["what answers by itself", { "Auto-Submitted": "auto-replied" }],
])("%s is taken and makes no new notice", async (_, fields) => {
  await rig.clock.advance(3_600_000);
  notices.length = 0;
  const mail = plainMail({ From: "ops@acme.test", Subject: "[svc] x", ...fields }, "Hello");
  expect(await arrive("postmaster@mail.test", mail)).toBe("taken");
  expect(notices).toEqual([]);
});

test("mail to postmaster that cannot be queued is not taken: its sender tries again", async () => {
  await rig.clock.advance(2 * 3_600_000);
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

test.each([null, "ops@mail.test"])("postmaster is not an address where the operator is %j", async (email) => {
  expect(await feedbackWith(email).mailboxOf("postmaster@mail.test")).toBeNull();
});
