// The mails to the operator: what identifies each, so that it is sent once an hour, and that its text says what to do.
import { expect, test } from "vitest";
import { notifyCertificate } from "../../src/notifications/certificate-notice.ts";
import { notifyDeadLetter } from "../../src/notifications/dead-letter-notice.ts";
import { notifyForwardedMail } from "../../src/notifications/forwarded-mail.ts";
import type { Notices } from "../../src/notifications/notices.ts";
import { notifyAccountPaused } from "../../src/notifications/pause-notice.ts";
import { notifyListings } from "../../src/notifications/listing-notice.ts";
import type { ListingChange } from "../../src/dnsbl/changes.ts";
import { zonesOf } from "../../src/dnsbl/zones.ts";
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

/** Of an address at Spamhaus ZEN; `delistedAt` where it is off again. */
function listingChange(address: string, delistedAt: number | null = null): ListingChange {
  const zone = zonesOf([], []).find((one) => one.zone === "zen.spamhaus.org");
  if (!zone) throw new Error("no zone");
  return {
    zone,
    watched: { address, pools: [{ accountKey: 1, name: "news" }], usable: true },
    listing: {
      address,
      zone: zone.zone,
      answer: "listed",
      detail: null,
      lookedAt: 0,
      codes: ["127.0.0.2", "127.0.0.4"],
      reason: "https://example.net/q",
      listedAt: 0,
      changedAt: null,
    },
    listedAt: 0,
    delistedAt,
  };
}

test("a listing names codes and their meaning, the list's reason, the page for the removal and what mail does", async () => {
  const send = (drains: boolean) =>
    mailOf((notices) => notifyListings(notices, [listingChange("11.22.33.44")], drains));
  const { subject, text } = await send(true);
  expect(subject).toBe("11.22.33.44 is on the blocklist Spamhaus ZEN");
  expect(text).toContain("pools: news\n");
  expect(text).toContain("127.0.0.2 (SBL: sends or supports spam), 127.0.0.4 (XBL:");
  expect(text).toContain("reason: https://example.net/q\n");
  expect(text).toContain("ask for the removal: https://check.spamhaus.org/\n");
  expect(text).toContain("New mail leaves from the pool's other addresses");
  expect((await send(false)).text).toContain("Mail leaves from the address as before");
});

test("all listings of a run are one mail of bounded length, and other ones another cause", async () => {
  const many = Array.from({ length: 200 }, (_, i) => listingChange(`11.22.33.${i}`));
  const mail = await mailOf((notices) => notifyListings(notices, many, false));
  expect(mail.subject).toBe("11.22.33.0 is on the blocklist Spamhaus ZEN (and 199 more)");
  expect(mail.text.length).toBeLessThan(30_000);
  expect(mail.text).toContain("150 more.\n");
  const again = await mailOf((notices) => notifyListings(notices, many.toReversed(), false));
  const off = await mailOf((notices) => notifyListings(notices, [listingChange("11.22.33.0", 5)], false));
  expect([again.cause === mail.cause, off.cause === mail.cause]).toEqual([true, false]);
  expect(off.subject).toBe("11.22.33.0 is no longer on the blocklist Spamhaus ZEN");
  expect(off.text).not.toContain("Mail leaves");
});

test.each([
  [
    5,
    9,
    "served on; it expires at 1970-01-01T00:00:00.009Z. It is tried again at 1970-01-01T00:00:00.005Z.",
    "svc cert renew mail.a.test\n",
  ],
  [5, null, "A self-signed certificate is served meanwhile", "svc cert renew mail.a.test\n"],
  [null, 9, "It is used as soon as the files are right", "svc cert show\n"],
])(
  "a certificate that does not come: the reason, what is served, when it is tried again (%s, %s)",
  async (nextAt, until, words, mend) => {
    const trouble = { name: "mail.a.test", isHost: true, error: "connection: refused", nextAt, until };
    const { cause, subject, text } = await mailOf((notices) => notifyCertificate(notices, trouble));
    expect([cause, subject]).toEqual(["certificate:mail.a.test", "no new certificate for mail.a.test"]);
    expect(text).toMatch(/^connection: refused\n/);
    expect(text).toContain(words);
    expect(text).toContain(mend);
  },
);
