// The screen of `svc top` at every size that a terminal may have.
import { describe, expect, test } from "vitest";
import { glyphsOf } from "../../src/cli/glyphs.ts";
import { widthOf } from "../../src/cli/text.ts";
import { screenOf, spanText, views, type ScreenState } from "../../src/cli/views/top-screen.ts";

const unicode = glyphsOf({ env: { LANG: "C.UTF-8" } });
const ascii = glyphsOf({ env: { LANG: "C" } });

const series = (last: number): number[] => [...Array<number>(50).fill(0), ...Array<number>(10).fill(last)];
const busy = {
  at: "2026-11-27T09:10:00.000Z",
  started_at: "2026-11-24T05:00:00.000Z",
  per_second: { accepted: series(120), delivered: series(1204), deferred: series(0.5), bounced: series(0) },
  queue: {
    scheduled: 12,
    queued: 1_234_567,
    deferred: 89_012,
    sending: 345,
    held: 6,
    oldest_due_at: "2026-11-27T09:06:40.000Z",
  },
  connections: 210,
  attempts: 345,
  unwritten: 0,
  providers: Array.from({ length: 100 }, (_, i) => ({
    provider: i === 0 ? "google" : `${"very-long-name-of-a-group-".repeat(4)}${i}.example`,
    delivered: 1_000_000 - i,
    deferred: i,
    bounced: 0,
    attempts: 7,
  })),
  ips: [
    {
      ip_address: "2001:db8:1234:5678:9abc:def0:1234:5678",
      delivered: 1,
      deferred: 9,
      bounced: 9,
      attempts: 0,
    },
  ],
  webhooks: [
    {
      id: "whk_01m8n18dxgzwtdzg25fa2wpcn8",
      url: `https://example.com/${"x".repeat(300)}`,
      delivered: 12,
      failed: 3,
      dead_lettered: 1,
    },
  ],
  backing_off: Array.from({ length: 100 }, (_, i) => ({
    group: `日本語.example${i}`,
    sending_ip: "192.0.2.1",
    factor: 0.25,
    attempts_limit: 2,
    per_second: null,
    since: "2026-11-27T09:00:00.000Z",
    reply: "421 4.7.28 \x1b[31mtoo fast\x1b[0m ".repeat(20),
  })),
};
const state: ScreenState = { activity: busy, view: "overview", paused: false, help: false, fault: null };
const sizes = [
  [80, 24],
  [60, 24],
  [200, 50],
  [40, 10],
  [20, 5],
  [1, 1],
] as const;

describe.each(sizes)("on %d columns and %d rows", (columns, rows) => {
  test.each(views)(
    "no line of the view %s is too wide, none too many, and nothing reaches the terminal that it obeys",
    (view) => {
      for (const glyphs of [unicode, ascii])
        for (const help of [false, true])
          for (const activity of [busy, {}]) {
            const lines = screenOf({ ...state, activity, view, help }, { columns, rows }, glyphs);
            expect(lines.length).toBe(rows);
            for (const { text } of lines) {
              expect(widthOf(text)).toBeLessThanOrEqual(columns);
              // oxlint-disable-next-line no-control-regex
              expect(text).not.toMatch(/[\x00-\x1f\x7f-\x9f]/);
            }
          }
    },
  );
});

const text = (more: Partial<ScreenState> = {}, glyphs = unicode): string =>
  screenOf({ ...state, ...more }, { columns: 80, rows: 23 }, glyphs)
    .map((line) => line.text)
    .join("\n");

test("80 by 24 shows rates with a line a minute long, the queue and its oldest, connections, providers and what backs off", () => {
  const screen = text();
  expect(screen).toContain("svc top  up 3d 4h");
  expect(screen).toMatch(/^accepted +120\/s {2}▁{47}█{10}$/m);
  expect(screen).toMatch(/^delivered +1,204\/s/m);
  expect(screen).toMatch(/^deferred +0\.5\/s/m);
  expect(screen).toContain(
    "queue      1,234,567 queued, 89,012 deferred, 12 scheduled, 6 held\noldest     due for 3m 20s",
  );
  expect(screen).toContain("sending    345 recipients, 210 connections open");
  expect(screen).toMatch(/PROVIDER \(LAST MINUTE\) +DELIVERED +DEFERRED +BOUNCED +UNDER WAY/);
  expect(screen).toMatch(/^google +1,000,000 +0 +0 +7$/m);
  expect(screen).toContain("backing off at 100");
  expect(screen).toMatch(/^日本語\.example0 from 192\.0\.2\.1: 25 % of its limits for 10m 0s: 421/m);
  expect(screen.split("\n").at(-1)).toMatch(/^q quit/);
});

test("addresses and webhooks are views of their own", () => {
  expect(text({ view: "addresses" })).toMatch(/^2001:db8:.+5678 +1 +9 +9 +0$/m);
  expect(text({ view: "webhooks" })).toMatch(/^example\.com\/x+… +12 +3 +1$/m);
});

test("without UTF-8, or on a dumb terminal, all of it is ASCII", () => {
  const plain = { ...busy, backing_off: [] };
  // oxlint-disable-next-line no-control-regex
  expect(text({ activity: plain }, ascii)).toMatch(/^[\x20-\x7e\n]+$/);
  expect(glyphsOf({ env: { LANG: "de_DE.UTF-8", TERM: "dumb" } })).toEqual(ascii);
  expect(glyphsOf({ env: { LANG: "de_DE.UTF-8", LC_ALL: "C" } })).toEqual(ascii);
});

test("a daemon that is gone and a screen that is paused say so in the first line", () => {
  expect(text({ fault: "no daemon answers" }).split("\n")[0]).toContain("no daemon answers");
  expect(text({ paused: true }).split("\n")[0]).toContain("paused");
});

test("an idle service says that there is nothing", () => {
  const idle = { ...busy, providers: [], ips: [], webhooks: [], backing_off: [] };
  expect(text({ activity: idle })).toContain("no provider in the last minute");
  expect(text({ activity: idle })).toContain("backing off: nowhere");
});

test.each([
  [0, "0s"],
  [61_000, "1m 1s"],
  [3_600_000, "1h 0m"],
  [90_000_000, "1d 1h"],
])("%d milliseconds are %s", (ms, shown) => expect(spanText(ms)).toBe(shown));

test("the help is whole on 60 columns and 24 rows", () => {
  const lines = screenOf({ ...state, help: true }, { columns: 60, rows: 23 }, unicode).map(
    (line) => line.text,
  );
  expect(lines.filter((line) => line.includes("…"))).toEqual([]);
  expect(lines).toContain("All accounts, without mail of test keys.");
});
