// A domain that does not exist, from its bounce to the suppression list: over a real store, with the DNS as a table, and
// read through the API.
import { afterEach, beforeEach, expect, test } from "vitest";
import { createRecorder } from "../../src/events/record.ts";
import { silentLog } from "../../src/log.ts";
import type { Outcome } from "../../src/mail/outcome.ts";
import { settlementOf } from "../../src/queue/settle.ts";
import type { Store } from "../../src/store/store.ts";
import { createNxdomainRecheck, nxdomainRecheckFor } from "../../src/suppressions/nxdomain-recheck.ts";
import { jobOf } from "../events/jobs.ts";
import { list, startHttp, text, type Harness } from "../http/harness.ts";
import {
  accept,
  mint,
  newDirectory,
  newMessage,
  openSqlite,
  owner,
  settlementOf as settled,
} from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { bouncedOutcome, makeTrace } from "../support/jobs.ts";

const minuteMs = 60_000;
/** The return path's domain of newMessage: it was seen when the sender's domain was verified. */
const known = "rp.shop.example";

let clock: ManualClock;
let store: Store;
let http: Harness;
/** What the DNS says of a name; NXDOMAIN where it is not listed. */
let dns: Record<string, "found" | "nodata" | "failed">;
let asked: string[];

beforeEach(async () => {
  clock = new ManualClock();
  store = await openSqlite(newDirectory(), clock);
  http = await startHttp({ opened: { store, clock } });
  dns = { [known]: "found" };
  asked = [];
});
afterEach(() => http.stop());

const noDomain = (over: Partial<Outcome & { kind: "bounced" }> = {}): Outcome => ({
  kind: "bounced",
  source: "local",
  reply: { code: 550, status: "5.1.2", text: "[local] the domain gone.test does not exist" },
  classification: "invalid_domain",
  trace: makeTrace({ startedAt: clock.now(), endedAt: clock.now() }),
  ...over,
});

/** Mail to the address that meets the outcome. */
async function send(to: string, outcome: Outcome): Promise<void> {
  const message = newMessage({ accountKey: http.account.key, at: clock.now(), to: [to], lease: true });
  const [job] = await accept(store, message);
  if (!job) throw new Error("nothing to settle");
  const deps = {
    recorder: createRecorder({ clock, mint }),
    mint,
    schedule: { retryMs: [minuteMs], maxAgeMs: 48 * 60 * minuteMs },
    owner,
    random: () => 0,
    isCaught: () => false,
  };
  await store.settle(settlementOf(deps, job, outcome, clock.now(), "local"));
}

const run = (): Promise<void> =>
  createNxdomainRecheck({
    store,
    resolver: {
      mx(name) {
        asked.push(name);
        const says = dns[name] ?? "nxdomain";
        if (says === "failed") return Promise.resolve({ kind: says, why: "SERVFAIL" });
        if (says !== "found") return Promise.resolve({ kind: says });
        return Promise.resolve({ kind: says, records: [], ttlSeconds: 1, authenticated: false });
      },
    },
    clock,
    log: silentLog,
  }).run();

const entry = (to: string) => http.ask({ path: `/v1/suppressions/${to}` });
const isSuppressed = async (to: string): Promise<boolean> => (await entry(to)).status === 200;

test("a domain that is still not there after 15 minutes suppresses, under the bounce's event, which stays as it was", async () => {
  await send("ann@gone.test", noDomain());
  const bounce = async () => list((await http.ask({ path: "/v1/events" })).json["data"])[0];
  expect(await bounce()).toMatchObject({
    event: "message.bounced",
    data: { smtp_code: "550", smtp_status: "5.1.2", suppressed: false },
  });
  await clock.advance(15 * minuteMs - 1);
  await run();
  expect(asked).toEqual([]);
  expect(await isSuppressed("ann@gone.test")).toBe(false);

  await clock.advance(1);
  await run();
  expect(asked).toEqual([known, "gone.test"]); // what is known to exist first
  expect((await entry("ann@gone.test")).json).toMatchObject({
    reason: "hard_bounce",
    source: "system",
    event_id: text((await bounce())?.["event_id"]),
    smtp_code: "550",
    smtp_status: "5.1.2",
    created_at: new Date(clock.now()).toISOString(),
  });
  expect((await bounce())?.["data"]?.["suppressed"]).toBe(false);
  await run();
  expect(asked).toHaveLength(2); // it is over
});

test.each(["found", "nodata"] as const)(
  "a domain that is there again (%s) does not suppress",
  async (says) => {
    await send("ann@gone.test", noDomain());
    dns["gone.test"] = says;
    await clock.advance(15 * minuteMs);
    await run();
    delete dns["gone.test"];
    await clock.advance(15 * minuteMs);
    await run();
    expect(await isSuppressed("ann@gone.test")).toBe(false);
    expect(asked).toEqual([known, "gone.test"]);
  },
);

test("a resolver that does not find what is known to exist is not believed until it does", async () => {
  await send("ann@gone.test", noDomain());
  delete dns[known];
  await clock.advance(15 * minuteMs);
  await run();
  expect(asked).toEqual([known]);
  await run(); // not due for another quarter of an hour
  expect(asked).toEqual([known]);
  dns[known] = "failed";
  await clock.advance(15 * minuteMs);
  await run();
  expect(await isSuppressed("ann@gone.test")).toBe(false);
  dns[known] = "nodata";
  await clock.advance(15 * minuteMs);
  await run();
  expect(await isSuppressed("ann@gone.test")).toBe(true);
});

test("where mail was delivered lately, those domains are what must be found: names of one's own prove little", async () => {
  const at = clock.now();
  for (const [to, test] of [
    ["b@ok.test", false],
    ["c@played.test", true],
  ] as const) {
    const made = newMessage({ accountKey: http.account.key, at, to: [to], lease: true });
    const [job] = await accept(store, { ...made, message: { ...made.message, test } });
    if (job) await store.settle(settled(job, at));
  }
  await send("ann@gone.test", noDomain());
  await clock.advance(15 * minuteMs);
  await run();
  expect(asked).toEqual(["ok.test"]); // not found, so the resolver is broken
  expect(await isSuppressed("ann@gone.test")).toBe(false);
  dns["ok.test"] = "found";
  await clock.advance(15 * minuteMs);
  await run();
  expect(await isSuppressed("ann@gone.test")).toBe(true);
});

test("a DNS that cannot tell does not suppress, and is not asked for ever", async () => {
  await send("ann@gone.test", noDomain());
  dns["gone.test"] = "failed";
  for (let quarters = 0; quarters < 4 * 48 + 4; quarters++) {
    await clock.advance(15 * minuteMs);
    await run();
  }
  expect(asked.filter((name) => name === "gone.test")).toHaveLength(4 * 48);
  expect(await isSuppressed("ann@gone.test")).toBe(false);
});

test("the first bounce of an address is the one that counts, and a domain is asked for once a round", async () => {
  await send("ann@gone.test", noDomain());
  await clock.advance(minuteMs);
  await send("ann@gone.test", noDomain());
  await send("bea@gone.test", noDomain());
  await clock.advance(15 * minuteMs);
  await run();
  expect(asked).toEqual([known, "gone.test"]);
  const events = list((await http.ask({ path: "/v1/events" })).json["data"]);
  expect((await entry("ann@gone.test")).json["event_id"]).toBe(events[0]?.["event_id"]);
  expect((await entry("bea@gone.test")).json["event_id"]).toBe(events[2]?.["event_id"]);
});

test("no other outcome asks for a recheck", () => {
  const job = jobOf();
  const look = (outcome: Outcome, of = job) => nxdomainRecheckFor(of, outcome, "evt_1", 0);
  expect(look(noDomain())).toMatchObject({ dueAt: 15 * minuteMs, entry: { eventId: "evt_1" } });
  const nullMx = { code: 556, status: "5.1.10", text: "" };
  expect(look(noDomain({ reply: nullMx }))).toBeNull(); // is suppressed at once
  expect(look(bouncedOutcome())).toBeNull();
  expect(look(noDomain({ classification: "dns_failure" }))).toBeNull();
  expect(look(noDomain(), jobOf({}, { test: true }))).toBeNull();
  expect(look(noDomain(), jobOf({ domain: "simulator.svc" }))).toBeNull();
});

test("an account that was deleted meanwhile gets no entry", async () => {
  await send("ann@gone.test", noDomain());
  const [due] = await store.nxdomainRechecksDue(clock.now() + 15 * minuteMs, 10);
  if (!due) throw new Error("no look");
  const other = { ...due, entry: { ...due.entry, accountKey: 4711 } };
  await store.settleNxdomainRechecks({ suppress: [other], drop: [], later: [], at: 1, dueAt: 2 });
  expect(await store.suppression(4711, due.entry.canonical, clock.now())).toBeNull();
});
