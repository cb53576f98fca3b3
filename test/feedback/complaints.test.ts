// What proves a complaint, what it then changes, and what forged ones do not.
import { afterAll, beforeAll, expect, test } from "vitest";
import { messageTokenField } from "../../src/mail/message-token.ts";
import type { Job } from "../../src/model/queued-recipient.ts";
import { accept, newMessage } from "../store/fixtures.ts";
import { arfMail, plainMail } from "../support/reports.ts";
import { feedbackRig, loopPeer, stranger, type FeedbackRig } from "./rig.ts";

let rig: FeedbackRig;
beforeAll(async () => {
  rig = await feedbackRig();
});
afterAll(() => rig.close());

async function one(): Promise<Job> {
  const [job] = await rig.delivered("ann");
  if (!job) throw new Error("no job");
  return job;
}
async function two(): Promise<[Job, Job]> {
  const [ann, bob] = await rig.delivered("ann", "bob");
  if (!ann || !bob) throw new Error("no jobs");
  return [ann, bob];
}
const fbl = "fbl@mail.test";
const messageIdOf = (job: Job): string => `Message-ID: <${rig.tokenOf(job)}@mail.test>`;
const complain = (wishes: { returned?: string[]; report?: string[] }, peer = stranger) =>
  rig.arrive(fbl, arfMail({ to: fbl, ...wishes }), peer);
/** [complained events, on the suppression list, counted by the guard since `before`] */
async function came(job: Job, before: number): Promise<[number, boolean, number]> {
  return [
    (await rig.eventsOf(job)).length,
    (await rig.suppressed(job)) !== null,
    (await rig.guarded()) - before,
  ];
}

test("a known loop's complaint by the Message-ID's token tells, suppresses and counts once", async () => {
  const job = await one();
  const before = await rig.guarded();
  const mail = arfMail({
    to: "fbl+yahoo@mail.test",
    returned: [messageIdOf(job).toUpperCase().replace("MESSAGE-ID", "Message-ID"), "Subject: Your order"],
    report: ["Arrival-Date: Fri, 27 Nov 2026 09:30:00 +0000"],
  });
  await rig.arrive("fbl+yahoo@mail.test", mail, loopPeer);
  await rig.arrive(fbl, mail, loopPeer);
  expect(await rig.eventsOf(job)).toMatchObject([
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
  expect(await rig.suppressed(job)).toMatchObject({ reason: "complaint", source: "system" });
  expect((await rig.guarded()) - before).toBe(1);
});

test("the relay's own field proves it as well, where the Message-ID is the client's", async () => {
  const job = await one();
  const before = await rig.guarded();
  await complain(
    { returned: ["Message-ID: <1@shop.example>", `${messageTokenField}: ${rig.tokenOf(job)}`] },
    loopPeer,
  );
  expect(await came(job, before)).toEqual([1, true, 1]);
});

test("a bare id of ours proves nothing: not as Message-ID, not in Received, not with a forged MAC", async () => {
  const job = await one();
  const before = await rig.guarded();
  const ulid = job.message.id.slice(4);
  const token = rig.tokenOf(job);
  const forged = `${token.slice(0, -1)}${token.endsWith("a") ? "b" : "a"}`;
  for (const line of [
    `Message-ID: <${ulid}@mail.test>`,
    `Received: by mail.test with ESMTPSA id ${job.message.id}; Fri, 27 Nov 2026 09:00:00 +0000`,
    `Message-ID: <${forged}@mail.test>`,
    `${messageTokenField}: ${ulid}.${"a".repeat(16)}`,
    `${messageTokenField}: ${token}a`,
  ])
    expect(await complain({ returned: [line], report: [`Original-Rcpt-To: ${job.to}`] }, loopPeer)).toBe(
      "taken",
    );
  expect(await came(job, before)).toEqual([0, false, 0]);
});

test("a token reported by anybody else is reported, and neither suppresses nor counts", async () => {
  const job = await one();
  const before = await rig.guarded();
  await complain({ returned: [messageIdOf(job)] });
  expect(await came(job, before)).toEqual([1, false, 0]);
});

test("a true complaint behind a forged one still suppresses and counts", async () => {
  const job = await one();
  const before = await rig.guarded();
  const returned = [messageIdOf(job)];
  await complain({ returned });
  await complain({ returned });
  expect(await came(job, before)).toEqual([1, false, 0]);
  await complain({ returned }, loopPeer);
  await complain({ returned }, loopPeer);
  await complain({ returned });
  expect(await came(job, before)).toEqual([2, true, 1]);
});

test("the token of a message with several recipients is reported for the one named, and does nothing to him", async () => {
  const [ann, bob] = await two();
  const before = await rig.guarded();
  for (const peer of [stranger, loopPeer])
    await complain({ returned: [messageIdOf(ann)], report: [`Original-Rcpt-To: ${bob.to}`] }, peer);
  expect(await rig.eventsOf(ann)).toMatchObject([{ event: "message.complained", to: bob.to }]);
  expect(await came(bob, before)).toEqual([1, false, 0]);
});

test("one that leaves open whose it is changes nothing", async () => {
  const [ann] = await two();
  await complain({ returned: [messageIdOf(ann)] }, loopPeer);
  await complain({ returned: [messageIdOf(ann)], report: ["Original-Rcpt-To: someone@x.test"] }, loopPeer);
  expect(await rig.eventsOf(ann)).toEqual([]);
});

test("a return path suppresses its own recipient whoever sends it, with the address hidden, in any form", async () => {
  const [ann, bob] = await two();
  const before = await rig.guarded();
  const report = [`original-mail-from: <${rig.pathOf(bob)}>`, `original-rcpt-to: <${ann.to}>`];
  await rig.arrive(fbl, arfMail({ to: fbl, report, date: false, encode: true, type: "opt-out" }));
  expect(await rig.eventsOf(ann)).toMatchObject([
    {
      to: bob.to,
      complaint_source: "generic_arf",
      complaint_type: "opt_out",
      reported_at: new Date(rig.clock.now()).toISOString(),
    },
  ]);
  expect(await rig.suppressed(ann)).toBeNull();
  expect(await came(bob, before)).toEqual([1, true, 0]);
});

test("a return path counts for the abuse guard where a known loop reports it", async () => {
  const job = await one();
  const before = await rig.guarded();
  await complain({ report: [`Original-Mail-From: <${rig.pathOf(job)}>`] }, loopPeer);
  expect(await came(job, before)).toEqual([1, true, 1]);
});

test("Microsoft's form without fields is a complaint", async () => {
  const job = await one();
  const mail = plainMail(
    {
      From: "staff@hotmail.com",
      To: fbl,
      Subject: "complaint about message from 192.0.2.7",
      "MIME-Version": "1.0",
      "Content-Type": 'multipart/mixed; boundary="m1"',
    },
    `--m1\nContent-Type: message/rfc822\n\nX-HmXmrOriginalRecipient: ${job.to}\n${messageIdOf(job)}\nSubject: x\n\nHello\n--m1--`,
  );
  await rig.arrive(fbl, mail);
  expect(await rig.eventsOf(job)).toMatchObject([
    { complaint_source: "microsoft_jmrp", feedback_type: "abuse" },
  ]);
});

test.each(["not-spam", "auth-failure", "dkim"])(
  "a %s report raises nothing and lifts nothing",
  async (type) => {
    const job = await one();
    await rig.arrive(fbl, arfMail({ to: fbl, type, returned: [messageIdOf(job)] }), loopPeer);
    expect(await rig.eventsOf(job)).toEqual([]);
  },
);

test("who was not written to yet cannot have complained", async () => {
  const domain = rig.newDomain();
  const bob = `bob@${domain}`;
  const waiting = newMessage({ accountKey: rig.account, to: [`ann@${domain}`, bob], at: rig.clock.now() });
  await accept(rig.store, waiting);
  const returned = [`Message-ID: <${rig.tokens.of(waiting.message.id)}@mail.test>`];
  await complain({ returned, report: [`Original-Rcpt-To: ${bob}`] }, loopPeer);
  expect(await rig.store.suppression(rig.account, bob, rig.clock.now())).toBeNull();
  const page = await rig.store.listEvents(
    rig.account,
    { messageId: waiting.message.id },
    { limit: 50, cursor: null },
  );
  expect(page.rows).toEqual([]);
});

test("nothing is looked up for a report that proves nothing", async () => {
  const job = await one();
  rig.asked.length = 0;
  await complain({ returned: [`Message-ID: <${job.message.id.slice(4)}@mail.test>`] });
  const [ann, bob] = await two();
  await complain({ returned: [messageIdOf(ann)], report: [`Original-Rcpt-To: ${bob.to}`] });
  expect(rig.asked).toEqual([]);
});

test("while a listed domain's key cannot be looked up, a token's complaint is asked for again", async () => {
  const job = await one();
  const busy = rig.feedbackWith({
    readReturned: async () => ({
      kind: "complaint",
      complaint: {
        feedbackType: "abuse",
        type: "abuse",
        source: null,
        recipients: [],
        reportedAt: null,
        sendingIp: null,
      },
      original: { returnPaths: [], tokens: [rig.tokenOf(job)] },
      sender: {
        from: "fbl@loop.test",
        signatures: [
          {
            domain: "loop.test",
            selector: "s",
            algorithm: "rsa-sha256",
            signed: "",
            signature: "AA==",
            expiresAt: null,
          },
        ],
      },
    }),
  });
  rig.zone.set("txt s._domainkey.loop.test", "failed");
  expect(await rig.arrive(fbl, "x", stranger, busy)).toBe("later");
  expect(await rig.eventsOf(job)).toEqual([]);
  rig.zone.delete("txt s._domainkey.loop.test");
  expect(await rig.arrive(fbl, "x", stranger, busy)).toBe("taken");
  expect(await rig.suppressed(job)).toBeNull();
});
