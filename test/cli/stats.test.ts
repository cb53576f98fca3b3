import { expect, test } from "vitest";
import { fakeDaemon, page, svc } from "./world.ts";

const totals = { accepted: 4, delivered: 2, deferred: 0, bounced: 2, complained: 0 };
const rates = { delivery_rate: 0.5, bounce_rate: 0.5, complaint_rate: 0, open_rate: null };
const summary = {
  from: "2026-11-01T00:00:00.000Z",
  to: "2026-12-01T00:00:00.000Z",
  timezone: "UTC",
  totals,
  rates,
};
const start = (day: number, delivered: number) => ({
  start: `2026-11-0${day}T00:00:00.000Z`,
  totals: { ...totals, delivered },
  rates,
});
const series = { ...summary, data: [start(1, 0), start(2, 5), start(3, 10)] };

test("stats alone is the summary, with the filters of the API", async () => {
  const { socket, seen } = await fakeDaemon({ "GET /v1/stats": { json: summary } });
  const args = ["stats", "--from", "2026-11-01", "--timezone", "Europe/Berlin", "--tag", "news", "--test"];
  const ran = await svc(args, { socket });
  expect(ran.code).toBe(0);
  expect(ran.out).toMatch(/accepted\s+4/);
  expect(ran.out).toMatch(/bounce_rate\s+50\.00 %/);
  expect(seen[0]?.query).toEqual({
    from: "2026-11-01",
    timezone: "Europe/Berlin",
    tag: "news",
    test: "true",
  });
  expect((await svc(["--json", "stats"], { socket })).out).toBe(`${JSON.stringify(summary)}\n`);
});

test("where nothing was counted it says where test traffic is", async () => {
  const none = Object.fromEntries(Object.keys(totals).map((name) => [name, 0]));
  const { socket } = await fakeDaemon({ "GET /v1/stats": { json: { ...summary, totals: none } } });
  expect((await svc(["stats"], { socket })).err).toContain("stats --test");
  expect((await svc(["stats", "--test"], { socket })).err).not.toContain("stats --test");
});

const utf8 = { LANG: "C.UTF-8" };

test("a timeseries is a table or CSV", async () => {
  const { socket } = await fakeDaemon({ "GET /v1/stats/timeseries": { json: series } });
  const table = (await svc(["stats", "timeseries"], { socket })).out.split("\n");
  expect(table[0]).toBe("START\tACCEPTED\tDELIVERED\tBOUNCED");
  const csv = (await svc(["stats", "timeseries", "--csv"], { socket })).out.split("\n");
  expect(csv[0]).toContain("start,accepted,delivered,deferred,bounced,complained,delivery_rate");
  expect(csv[2]).toBe("2026-11-02T00:00:00.000Z,4,5,0,2,0,0.5,0.5,0,");
});

test("a timeseries is drawn as columns with an axis, in Unicode or in ASCII", async () => {
  const { socket } = await fakeDaemon({ "GET /v1/stats/timeseries": { json: series } });
  const unicode = (await svc(["stats", "timeseries", "--chart"], { socket, columns: 24, env: utf8 })).out;
  expect(unicode.split("\n")).toEqual([
    "delivered: 2",
    "10 │            █████",
    ...Array<string>(4).fill("   │            █████"),
    " 5 │      █████ █████",
    ...Array<string>(4).fill("   │      █████ █████"),
    " 0 └──────────────────",
    "    2026-11-01",
    "",
  ]);
  const plain = (await svc(["stats", "timeseries", "--chart", "bounced"], { socket, columns: 24 })).out;
  // oxlint-disable-next-line no-control-regex
  expect(plain).toMatch(/^[\n\x20-\x7e]+$/);
  expect(plain).toContain("bounced: 2\n");
});

test("the sums, and every list, are drawn as bars", async () => {
  const { socket, seen } = await fakeDaemon({
    "GET /v1/stats": { json: summary },
    "GET /v1/stats/providers": page([
      { key: "google", totals, rates },
      { key: "x\x1b[2J", totals: { ...totals, delivered: 1 }, rates },
    ]),
  });
  const bars = (await svc(["stats", "--chart"], { socket, columns: 40, env: utf8 })).out;
  expect(bars.split("\n")).toEqual([
    "2026-11-01 00:00:00Z to 2026-12-01 00:00:00Z",
    "accepted    4  █████████████████████████",
    "delivered   2  █████████████",
    "deferred    0",
    "bounced     2  █████████████",
    "complained  0",
    "",
  ]);
  const ascii = (await svc(["stats", "providers", "--chart"], { socket, columns: 30 })).out;
  expect(ascii.split("\n")).toEqual([
    "delivered",
    "google    2  #################",
    "x\\x1b[2J  1  #########",
    "",
  ]);
  expect(seen.at(-1)?.query).toEqual({ limit: "20" });
});

test.each([
  [["--chart", "delivred"], "expected one of accepted, delivered"],
  [["--chart", "--csv"], "found --csv and --chart"],
  [["--chart", "--json"], "found --json and --chart"],
])("stats %j is a usage error", async (flags, words) => {
  const { socket } = await fakeDaemon({
    "GET /v1/stats": { json: summary },
    "GET /v1/stats/timeseries": { json: series },
    "GET /v1/stats/tags": page([{ key: "a", totals, rates }]),
  });
  for (const verb of ["summary", "timeseries", "tags"]) {
    const ran = await svc(["stats", verb, ...flags], { socket });
    expect([verb, ran.code, ran.out]).toEqual([verb, 2, ""]);
    expect(ran.err).toContain(words);
  }
});

test("the sums are CSV too, and of bounces the category is a column", async () => {
  const { socket } = await fakeDaemon({
    "GET /v1/stats": { json: summary },
    "GET /v1/stats/bounces": page([
      { key: "spam", bounce_category: "blocked", totals: { bounced: 2 }, rates: {} },
    ]),
  });
  expect((await svc(["stats", "--csv"], { socket })).out.split("\n")).toEqual([
    "from,to,accepted,delivered,deferred,bounced,complained,delivery_rate,bounce_rate,complaint_rate,open_rate",
    "2026-11-01T00:00:00.000Z,2026-12-01T00:00:00.000Z,4,2,0,2,0,0.5,0.5,0,",
    "",
  ]);
  expect((await svc(["stats", "bounces", "--csv"], { socket })).out).toBe(
    "key,bounce_category,bounced\nspam,blocked,2\n",
  );
});

test("a list goes on by --all, and its CSV runs nothing in a spreadsheet", async () => {
  const pages = [
    page([{ key: '=cmd("x")', totals, rates }], "more"),
    page([{ key: "b", totals, rates }], null),
  ];
  const { socket, seen } = await fakeDaemon({ "GET /v1/stats/tags": () => pages.shift() ?? {} });
  const ran = await svc(["stats", "tags", "--csv", "--all", "--pool", "bulk"], { socket });
  expect(ran.out.split("\n").map((line) => line.slice(0, 18))).toEqual([
    "key,accepted,deliv",
    '"\'=cmd(""x"")",4,2',
    "b,4,2,0,2,0,0.5,0.",
    "",
  ]);
  expect(seen.map(({ query }) => query)).toEqual([
    { ip_pool: "bulk", limit: "200" },
    { ip_pool: "bulk", limit: "200", cursor: "more" },
  ]);
});

test("a range is given as in lists: a span and yesterday are times, a date stays one of the time zone", async () => {
  const { socket, seen } = await fakeDaemon({ "GET /v1/stats/timeseries": page([]) });
  for (const from of ["24h", "2026-11-01T12:00:00+01:00", "2026-11-01"])
    await svc(["stats", "timeseries", "--from", from, "--to", "now", "--csv"], { socket });
  expect(seen.map(({ query }) => query["from"])).toEqual([
    "2026-11-26T09:00:00.000Z",
    "2026-11-01T11:00:00.000Z",
    "2026-11-01",
  ]);
  expect(seen[0]?.query["to"]).toBe("2026-11-27T09:00:00.000Z");
  const wrong = await svc(["stats", "--from", "often"], { socket });
  expect([wrong.code, wrong.err]).toEqual([
    2,
    expect.stringContaining('--from: found "often", expected a time'),
  ]);
});
