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

test("a timeseries is a table, bars or CSV", async () => {
  const { socket } = await fakeDaemon({ "GET /v1/stats/timeseries": { json: series } });
  const bars = (await svc(["stats", "timeseries", "--chart"], { socket })).out.trimEnd().split("\n");
  expect(bars.map((line) => line.slice(0, 20))).toEqual([
    "2026-11-01 00:00   0",
    "2026-11-02 00:00   5",
    "2026-11-03 00:00  10",
  ]);
  const widths = bars.map((line) => line.split("█").length - 1);
  expect(widths[0]).toBe(0);
  expect(widths[2]).toBe(2 * (widths[1] ?? 0));
  const table = (await svc(["stats", "timeseries"], { socket })).out.split("\n");
  expect(table[0]).toBe("START\tACCEPTED\tDELIVERED\tBOUNCED");
  const csv = (await svc(["stats", "timeseries", "--csv"], { socket })).out.split("\n");
  expect(csv[0]).toContain("start,accepted,delivered,deferred,bounced,complained,delivery_rate");
  expect(csv[2]).toBe("2026-11-02T00:00:00.000Z,4,5,0,2,0,0.5,0.5,0,");
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
