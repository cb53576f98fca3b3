// The mails to the operator: what identifies each, so that it is sent once an hour, and that its text says what to do.
import { expect, test } from "vitest";
import { notifyDeadLetter } from "../../src/notifications/dead-letter-notice.ts";
import { notifyForwardedMail } from "../../src/notifications/forwarded-mail.ts";
import type { Notices } from "../../src/notifications/notices.ts";
import { notifyAccountPaused } from "../../src/notifications/pause-notice.ts";
import { notifyPoolProblem } from "../../src/notifications/pool-notice.ts";
import { newEndpoint } from "../store/fixtures.ts";

interface Mail {
  cause: string;
  subject: string;
  text: string;
}

/** The one mail that `send` makes. */
async function mailOf(send: (notices: Pick<Notices, "notify">) => Promise<unknown>): Promise<Mail> {
  const mails: Mail[] = [];
  await send({
    async notify(cause, subject, text) {
      mails.push({ cause, subject, text });
      return true;
    },
  });
  expect(mails).toHaveLength(1);
  return mails[0] ?? { cause: "", subject: "", text: "" };
}

test.each([
  [503, "its last answer was 503."],
  [null, "its last answer was none."],
])("a dead letter names the endpoint, the event and the last answer: %s", async (lastStatus, words) => {
  const endpoint = {
    key: 1,
    ...newEndpoint(1, 0, { id: "whk_1", url: "https://hooks.acme.example/mail?token=1" }),
  };
  const letter = { endpoint, eventId: "evt_1", attempts: 10, lastStatus };
  const { cause, subject, text } = await mailOf((notices) => notifyDeadLetter(notices, letter));
  expect([cause, subject]).toEqual([
    "dead_letter:whk_1",
    "events for hooks.acme.example could not be delivered",
  ]);
  expect(text).toContain("refused event evt_1 in all 10 attempts");
  expect(text).toContain(words);
  expect(text).toContain("svc events list --webhook whk_1\n");
});

test("a pause names the reason and the command that ends it; each pause is a mail of its own", async () => {
  const account = { id: "acct_1", name: "shop" };
  const { cause, subject, text } = await mailOf((notices) =>
    notifyAccountPaused(notices, account, "too many", 7),
  );
  expect([cause, subject]).toEqual(["account_paused:acct_1:7", "sending of the account shop is paused"]);
  expect(text).toContain("Sending of the account shop is paused: too many.\n");
  expect(text).toMatch(/svc accounts resume shop\n$/);
});

test("a pool problem is another cause where the addresses or their faults are others", async () => {
  const problem = (fault: "paused" | "unbindable") => ({
    accountKey: 3,
    pool: "bulk",
    waits: "all" as const,
    addresses: [{ address: "192.0.2.1", fault }],
  });
  const store = { accountByKey: async () => null };
  const paused = await mailOf((notices) => notifyPoolProblem(notices, store, problem("paused")));
  const lost = await mailOf((notices) => notifyPoolProblem(notices, store, problem("unbindable")));
  expect([paused.cause, lost.cause]).toEqual([
    "pool:3.bulk 192.0.2.1:paused",
    "pool:3.bulk 192.0.2.1:unbindable",
  ]);
  expect(paused.text).toContain("What to do:\n  resume it: svc ips resume 192.0.2.1\n");
});

test("forwarded mail carries its header and its text; the same mail twice is one cause", async () => {
  const read = {
    messageId: "<1@x.test>",
    automatic: false,
    head: ["From: a@x.test", "Subject: Hi"],
    text: "Hello",
  };
  const send = (mail: string) =>
    mailOf((notices) => notifyForwardedMail(notices, "abuse@mail.a.test", Buffer.from(mail), read));
  const [first, again, other] = [await send("one"), await send("one"), await send("two")];
  expect(first.subject).toBe("mail to abuse@mail.a.test");
  expect(first.text).toBe("From: a@x.test\nSubject: Hi\n\nHello\n");
  expect([again.cause === first.cause, other.cause === first.cause]).toEqual([true, false]);
});
