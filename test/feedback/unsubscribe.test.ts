// The mailto form of List-Unsubscribe (RFC 2369 §3.2): a mail to an address of one recipient's own.
import { afterAll, beforeAll, expect, test } from "vitest";
import { returnPathLocal, unsubscribeLocal } from "../../src/mail/return-path.ts";
import type { Job } from "../../src/model/queued-recipient.ts";
import { accept, newMessage, settlementOf } from "../store/fixtures.ts";
import { feedbackRig, stranger, type FeedbackRig } from "./rig.ts";

let rig: FeedbackRig;
beforeAll(async () => void (rig = await feedbackRig()));
afterAll(() => rig.close());

const mail = "From: someone@else.test\r\nSubject: unsubscribe\r\n\r\n";
const localOf = (job: Job): string => unsubscribeLocal(rig.secret, job.message.key, job.key);
const write = async (to: string, nullSender = false): Promise<string | null> => {
  const mailbox = await rig.feedback.mailboxOf(to);
  return mailbox && rig.feedback.take(Buffer.from(mail), [mailbox], { peer: stranger, nullSender });
};

test("a mail to it unsubscribes its recipient, whatever it says, with the event once", async () => {
  const [job, other] = await rig.delivered("ann", "bob");
  if (!job || !other) throw new Error("no job");
  expect(localOf(job).length).toBeLessThanOrEqual(64);
  for (const to of [`${localOf(job)}@mail.test`, `${localOf(job).toUpperCase()}@MAIL.test`])
    expect(await write(to)).toBe("taken");
  expect(await rig.eventsOf(job)).toEqual([
    expect.objectContaining({ event: "message.unsubscribed", to: job.to, method: "mailto" }),
  ]);
  expect(await rig.suppressed(job)).toMatchObject({ reason: "unsubscribe", source: "recipient" });
  expect(await rig.suppressed(other)).toBeNull();
});

test("a changed address, a return path's token and one at another domain have no mailbox", async () => {
  const [job] = await rig.delivered("ann");
  if (!job) throw new Error("no job");
  const local = localOf(job);
  for (let i = 2; i < local.length; i++) {
    const changed = `${local.slice(0, i)}${local[i] === "a" ? "b" : "a"}${local.slice(i + 1)}`;
    expect(await write(`${changed}@mail.test`)).toBeNull();
  }
  const path = returnPathLocal(rig.secret, job.message.key, job.key);
  for (const to of [
    `u+${path.slice(2)}@mail.test`,
    `${local}@other.test`,
    `${local}@rp.shop.example`,
    "u+@mail.test",
  ])
    expect(await write(to)).toBeNull();
  expect(await write(`b+${local.slice(2)}@rp.shop.example`)).toBeNull();
  expect(await rig.suppressed(job)).toBeNull();
});

test("a bounce or an automatic reply without a sender unsubscribes nobody", async () => {
  const [job] = await rig.delivered("ann");
  if (!job) throw new Error("no job");
  expect(await write(`${localOf(job)}@mail.test`, true)).toBe("taken");
  expect(await rig.suppressed(job)).toBeNull();
});

test("mail of a test key has no such address", async () => {
  const wanted = newMessage({
    accountKey: rig.account,
    to: [`t@${rig.newDomain()}`],
    at: rig.clock.now(),
    lease: true,
  });
  const [job] = await accept(rig.store, { ...wanted, message: { ...wanted.message, test: true } });
  if (!job) throw new Error("no job");
  await rig.store.settle(settlementOf(job, rig.clock.now()));
  expect(await write(`${localOf(job)}@mail.test`)).toBeNull();
});
