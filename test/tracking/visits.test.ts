import { afterAll, beforeAll, expect, test } from "vitest";
import { silentLog } from "../../src/log.ts";
import { isMachine } from "../../src/tracking/machine.ts";
import { StoreUnavailable } from "../../src/store/store.ts";
import { mostWaiting, type Visit } from "../../src/tracking/visits.ts";
import type { TokenRecipient } from "../../src/model/tracking.ts";
import { trackingWorld, type TrackingWorld } from "./world.ts";

const person = {
  ip: "198.51.100.7",
  userAgent: "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/150.0",
  prefetch: false,
};
const gmail = {
  ...person,
  userAgent: "Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)",
};

let world: TrackingWorld;
let fails: Error | null = null;
/** Visits of this recipient make the store fail, as one that it cannot take would. */
let broken: number | null = null;
let unreadable: string | null = null;
let unread: Error = new TypeError("no JSON");
const batches: number[] = [];
const logged: object[] = [];
beforeAll(async () => {
  world = await trackingWorld(
    (store) => ({
      recordVisits(visits) {
        batches.push(visits.length);
        if (visits.some(({ recipientKey }) => recipientKey === broken))
          return Promise.reject(new TypeError("a value cannot be bound"));
        return fails ? Promise.reject(fails) : store.recordVisits(visits);
      },
      reactingRecipient(message, recipientKey) {
        if ("id" in message && message.id === unreadable) return Promise.reject(unread);
        return store.reactingRecipient(message, recipientKey);
      },
    }),
    { ...silentLog, error: (fields) => void logged.push(fields) },
  );
});
afterAll(async () => {
  await world.visits.stop();
  await world.store.close();
});

const visit = (recipient: TokenRecipient, over: Partial<Visit> = {}): Visit => ({
  kind: "opened",
  of: { ...recipient, target: over.kind === "clicked" ? "https://a.example/" : "" },
  link: `${over.kind ?? "opened"} ${recipient.messageId}`,
  ...person,
  ...over,
});
const click = (recipient: TokenRecipient, link: string, over: Partial<Visit> = {}): Visit =>
  visit(recipient, { kind: "clicked", link: `${link} ${recipient.messageId}`, ...over });

const seen = async (messageId: string) =>
  (await world.eventsOf(messageId)).map(({ type, data }) => [type.slice(8), data["first"], data["machine"]]);

test("loads of one pixel within a second are one open; later ones count, and only the first is the first", async () => {
  const { job, recipient } = await world.delivered();
  const began = world.clock.now();
  await Promise.all([1, 2, 3].map(() => world.visits.note(visit(recipient))));
  await world.clock.advance(999);
  await world.visits.note(visit(recipient));
  await world.clock.advance(1);
  await world.visits.note(visit(recipient));
  expect(await seen(job.message.id)).toEqual([
    ["opened", true, false],
    ["opened", false, false],
  ]);
  expect(await world.recipientOf(job.message.id)).toMatchObject({
    openedAt: began,
    openCount: 2,
    clickCount: 0,
  });
});

test("a machine's visit has its event, with a first of its own, and neither time nor count at the recipient", async () => {
  const { job, recipient } = await world.delivered();
  for (const who of [gmail, gmail, person, gmail]) {
    await world.visits.note(visit(recipient, who));
    await world.clock.advance(2_000);
  }
  expect(await seen(job.message.id)).toEqual([
    ["opened", true, true],
    ["opened", false, true],
    ["opened", true, false],
    ["opened", false, true],
  ]);
  expect(await world.recipientOf(job.message.id)).toMatchObject({ openCount: 1 });
});

test("in one batch too, each recipient has one first, and no event is earlier than the one before it", async () => {
  const { job, recipient } = await world.delivered();
  await Promise.all(
    ["a", "b"].map((link) => world.visits.note(visit(recipient, { link: `${link}${recipient.messageId}` }))),
  );
  expect(await seen(job.message.id)).toEqual([
    ["opened", true, false],
    ["opened", false, false],
  ]);
});

test("totals and uniques are counted, without machines among the uniques", async () => {
  const range = { from: world.clock.now() - 1, to: world.clock.now() + 86_400_000 };
  const { recipient } = await world.delivered("stats@count.test");
  const before = await totals(range);
  await world.visits.note(visit(recipient, gmail));
  await world.clock.advance(2_000);
  await world.visits.note(visit(recipient));
  await world.visits.note(click(recipient, "one"));
  await world.unsubscribes.ofToken({ ...recipient, target: "" }, "one_click");
  const after = await totals(range);
  const raised = Object.fromEntries(
    Object.entries(after).map(([name, n]) => [name, n - (before[name] ?? 0)]),
  );
  expect(raised).toMatchObject({ opened: 2, uniqueOpened: 1, clicked: 1, uniqueClicked: 1, unsubscribed: 1 });
});

async function totals(range: { from: number; to: number }): Promise<Record<string, number>> {
  return { ...(await world.store.statsTotals(world.account, { ...range, test: false })) };
}

test("of one link at most twenty visits a minute are recorded", async () => {
  const { job, recipient } = await world.delivered();
  for (let i = 0; i < 40; i++) {
    await world.visits.note(visit(recipient));
    await world.clock.advance(1_000);
  }
  expect(await seen(job.message.id)).toHaveLength(20);
  await world.clock.advance(21_000);
  await world.visits.note(visit(recipient));
  expect(await seen(job.message.id)).toHaveLength(21);
});

test("a scanner that follows every link is seen from its second on; a person who takes seconds is not", async () => {
  const [scanned, read] = [await world.delivered(), await world.delivered()];
  for (const link of ["a", "b", "c", "d"]) await world.visits.note(click(scanned.recipient, link));
  expect((await seen(scanned.job.message.id)).map(([, , machine]) => machine)).toEqual([
    false,
    true,
    true,
    true,
  ]);
  for (const link of ["a", "b", "a", "c"]) {
    await world.visits.note(click(read.recipient, link));
    await world.clock.advance(6_000);
  }
  expect((await seen(read.job.message.id)).map(([, , machine]) => machine)).toEqual([
    false,
    false,
    false,
    false,
  ]);
  expect(await world.recipientOf(scanned.job.message.id)).toMatchObject({ clickCount: 1 });
});

test.each([
  ["Gmail's proxy", gmail],
  [
    "Yahoo's proxy",
    { ...person, userAgent: "YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html" },
  ],
  ["Apple Mail Privacy Protection", { ...person, userAgent: "Mozilla/5.0" }],
  [
    "a crawler",
    { ...person, userAgent: "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)" },
  ],
  ["a link preview", { ...person, userAgent: "Mozilla/5.0 (Windows NT 6.1) BingPreview/1.0b" }],
  ["a scanner by its name", { ...person, userAgent: "Barracuda Sentinel (EE)" }],
  ["a scanner by its network", { ...person, ip: "::ffff:148.163.130.1" }],
  ["a program", { ...person, userAgent: "python-requests/2.32" }],
  ["nobody's name", { ...person, userAgent: " " }],
  ["a prefetch", { ...person, prefetch: true }],
])("%s is a machine", (_, visitor) => expect(isMachine(visitor)).toBe(true));

test.each([
  "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
  "Mozilla/5.0 (Linux; Android 9; CUBOT NOTE 20) AppleWebKit/537.36 Chrome/150.0 Mobile Safari/537.36",
  "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Thunderbird/140.0",
  "Microsoft Office/16.0 (Windows NT 10.0; Microsoft Outlook 16.0.18129; Pro)",
])("a person: %s", (userAgent) => expect(isMachine({ ...person, userAgent })).toBe(false));

test("while the store does not write, visits wait and are written once it does", async () => {
  const { job, recipient } = await world.delivered();
  fails = new StoreUnavailable("full", "no room");
  const noted = world.visits.note(visit(recipient));
  await world.clock.advance(5_000);
  expect(await seen(job.message.id)).toEqual([]);
  fails = null;
  await world.clock.advance(1_000);
  await noted;
  expect(await seen(job.message.id)).toHaveLength(1);
});

test.each(["written", "read"])("a visit that cannot be %s is lost alone, and logged", async (how) => {
  const sent = await Promise.all(Array.from({ length: 60 }, () => world.delivered()));
  const [bad] = sent.slice(30);
  if (!bad) throw new Error("none is sent");
  if (how === "written") broken = bad.recipient.recipientKey;
  else unreadable = bad.recipient.messageId;
  logged.length = 0;
  const noted = sent.map(({ recipient }) => world.visits.note(visit(recipient)));
  await Promise.all(noted);
  [broken, unreadable] = [null, null];
  const found = await Promise.all(sent.map(({ job }) => seen(job.message.id)));
  expect(found).toEqual(sent.map((one) => (one === bad ? [] : [["opened", true, false]])));
  expect(logged).toEqual([expect.objectContaining({ visits: 1 })]);
});

test("visits of one recipient that are tried one by one have one first", async () => {
  const [before, bad, good] = [await world.delivered(), await world.delivered(), await world.delivered()];
  broken = bad.recipient.recipientKey;
  const links = ["a", "b"].map((link) =>
    visit(good.recipient, { link: `${link} ${good.recipient.messageId}` }),
  );
  const all = [visit(before.recipient), visit(bad.recipient), ...links];
  await Promise.all(all.map((one) => world.visits.note(one)));
  broken = null;
  expect(await seen(good.job.message.id)).toEqual([
    ["opened", true, false],
    ["opened", false, false],
  ]);
});

test("those that are tried one by one wait where the store does not write then", async () => {
  const [before, bad, good] = [await world.delivered(), await world.delivered(), await world.delivered()];
  broken = bad.recipient.recipientKey;
  const noted = [before, bad, good].map(({ recipient }) => world.visits.note(visit(recipient)));
  await noted[0];
  fails = new StoreUnavailable("full", "no room");
  await noted[1];
  await world.clock.advance(5_000);
  expect(await seen(good.job.message.id)).toEqual([]);
  [fails, broken] = [null, null];
  await world.clock.advance(1_000);
  await Promise.all(noted);
  expect(await seen(good.job.message.id)).toHaveLength(1);
});

test("visits wait while the store does not read", async () => {
  const { job, recipient } = await world.delivered();
  const before = unread;
  unread = new StoreUnavailable("failed", "it is closed");
  unreadable = recipient.messageId;
  const noted = world.visits.note(visit(recipient));
  await world.clock.advance(5_000);
  [unread, unreadable] = [before, null];
  await world.clock.advance(1_000);
  await noted;
  expect(await seen(job.message.id)).toHaveLength(1);
});

test("those who wait are bounded, in total and for one account; the last to come are answered and not recorded", async () => {
  const { job, recipient } = await world.delivered();
  fails = new StoreUnavailable("full", "no room");
  const many = (accountKey: number): Promise<void>[] =>
    Array.from({ length: mostWaiting }, (_, i) =>
      world.visits.note(
        visit({ ...recipient, accountKey, recipientKey: -i }, { link: `${accountKey} ${i}` }),
      ),
    );
  const all = [...many(world.account), ...many(901), ...many(902)];
  let settled = 0;
  for (const one of all) void one.then(() => settled++);
  const last = world.visits.note(visit(recipient, { link: "the last" }));
  await last;
  expect(settled).toBe(all.length - mostWaiting);
  fails = null;
  await world.clock.advance(1_000);
  await Promise.all(all);
  expect(await seen(job.message.id)).toEqual([]);
  expect(Math.max(...batches)).toBeLessThanOrEqual(25);
});

test("a visit of a message that was deleted, or of another account's, records nothing", async () => {
  const { job, recipient } = await world.delivered();
  await world.visits.note(visit({ ...recipient, accountKey: 77 }));
  await world.visits.note(visit({ ...recipient, recipientKey: 10 ** 9 }, { link: "x" }));
  expect(await seen(job.message.id)).toEqual([]);
});
