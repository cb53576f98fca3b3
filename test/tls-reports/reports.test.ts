// The daily reports: to whom, what they say, when they are tried again, and when a domain's counts are done with.
import { gunzipSync } from "node:zlib";
import { beforeEach, expect, test } from "vitest";
import type { DnsAnswer } from "../../src/dns/resolver.ts";
import type { HttpsRequest } from "../../src/https.ts";
import { silentLog } from "../../src/log.ts";
import type { ReportedPolicy, TlsResultCount } from "../../src/model/tls-result.ts";
import type { Report } from "../../src/notifications/notices.ts";
import type { TlsResultDay } from "../../src/store/store.ts";
import { createTlsReports, type TlsReports } from "../../src/tls-reports/reports.ts";
import { ManualClock } from "../support/clock.ts";

const today = Math.floor(Date.parse("2026-11-27T00:00:00Z") / 86_400_000);
const sts: ReportedPolicy = {
  type: "sts",
  strings: ["version: STSv1", "mode: testing", "mx: mail.x.test", "max_age: 86400"],
  domain: "x.test",
  mxHosts: ["mail.x.test"],
};
const count = (over: Partial<TlsResultCount> = {}): TlsResultCount => ({
  day: today - 1,
  domain: "x.test",
  policy: sts,
  failure: null,
  reason: "",
  sessions: 1,
  ...over,
});

let clock: ManualClock;
let counts: TlsResultCount[];
/** By name; `servfail` fails the question. */
let records: Record<string, string>;
let mails: { to: string; report: Report }[];
let posts: HttpsRequest[];
let signed: boolean;
let status: number;
/** What a host answers, where it is not `status`. */
let answers: Record<string, Promise<number>>;
/** The store removes nothing before it. */
let written: Promise<void>;
let reports: TlsReports;

const before = (a: TlsResultDay, b: TlsResultDay): boolean =>
  a.day < b.day || (a.day === b.day && a.domain < b.domain);

beforeEach(() => {
  clock = new ManualClock(Date.parse("2026-11-27T00:23:00Z"));
  counts = [];
  records = {};
  [mails, posts, signed, status, answers] = [[], [], true, 200, {}];
  written = Promise.resolve();
  reports = createTlsReports({
    store: {
      tlsResultDays: async (end, after, limit) => {
        const days = counts.filter((one) => one.day < end && (after === null || before(after, one)));
        const keys = new Map(days.map(({ day, domain }) => [`${day} ${domain}`, { day, domain }]));
        return [...keys.values()].toSorted((a, b) => (before(a, b) ? -1 : 1)).slice(0, limit);
      },
      tlsResults: async (of) => counts.filter((one) => one.day === of.day && one.domain === of.domain),
      removeTlsResults: async (days) => {
        await written;
        counts = counts.filter((one) => !days.some((of) => one.day === of.day && one.domain === of.domain));
      },
    },
    resolver: {
      txt: async (name): Promise<DnsAnswer<string>> => {
        const record = records[name];
        if (record === undefined) return { kind: "nxdomain" };
        if (record === "servfail") return { kind: "failed", why: "SERVFAIL" };
        return { kind: "found", records: [record], ttlSeconds: 0, authenticated: false };
      },
    },
    https: async (asked) => {
      posts.push(asked);
      return { status: (await answers[asked.host]) ?? status, headers: {}, body: Buffer.alloc(0) };
    },
    notices: {
      report: async (to, report) => {
        if (signed) mails.push({ to: to.email, report });
        return signed;
      },
    },
    hostname: "mail.svc.test",
    contact: "ops@svc.test",
    clock,
    log: silentLog,
  });
});

const bodyOf = (gzip: Buffer | undefined) => JSON.parse(gunzipSync(gzip ?? Buffer.alloc(0)).toString());

test("a domain that asks for it gets the report of the day that is over by mail, and its counts go", async () => {
  records["_smtp._tls.x.test"] = "v=TLSRPTv1; rua=mailto:tls@x.test";
  const failure = {
    type: "certificate-expired" as const,
    sendingIp: "192.0.2.1",
    mxHost: "mail.x.test",
    receivingIp: "198.51.100.1",
  };
  counts = [
    count({ sessions: 40 }),
    count({ failure, reason: "CERT_HAS_EXPIRED", sessions: 2 }),
    count({ policy: { type: "no-policy-found", strings: [], domain: "x.test", mxHosts: [] }, sessions: 3 }),
    count({ day: today, sessions: 9 }),
  ];
  await reports.run();
  expect(mails.map(({ to }) => to)).toEqual(["tls@x.test"]);
  const { report } = mails[0] ?? {};
  expect(report).toMatchObject({
    subject: "Report Domain: x.test Submitter: mail.svc.test Report-ID: <2026-11-26.x.test@mail.svc.test>",
    headers: [
      ["TLS-Report-Domain", "x.test"],
      ["TLS-Report-Submitter", "mail.svc.test"],
    ],
    reportType: "tlsrpt",
    file: {
      filename: "mail.svc.test!x.test!1795651200!1795737599.json.gz",
      contentType: "application/tlsrpt+gzip",
    },
  });
  expect(bodyOf(report?.file.bytes)).toEqual({
    "organization-name": "mail.svc.test",
    "date-range": { "start-datetime": "2026-11-26T00:00:00Z", "end-datetime": "2026-11-26T23:59:59Z" },
    "contact-info": "ops@svc.test",
    "report-id": "2026-11-26.x.test@mail.svc.test",
    policies: [
      {
        policy: {
          "policy-type": "sts",
          "policy-string": sts.strings,
          "policy-domain": "x.test",
          "mx-host": ["mail.x.test"],
        },
        summary: { "total-successful-session-count": 40, "total-failure-session-count": 2 },
        "failure-details": [
          {
            "result-type": "certificate-expired",
            "sending-mta-ip": "192.0.2.1",
            "receiving-mx-hostname": "mail.x.test",
            "receiving-ip": "198.51.100.1",
            "failed-session-count": 2,
            "failure-reason-code": "CERT_HAS_EXPIRED",
          },
        ],
      },
      {
        policy: { "policy-type": "no-policy-found", "policy-domain": "x.test" },
        summary: { "total-successful-session-count": 3, "total-failure-session-count": 0 },
      },
    ],
  });
  expect(counts.map(({ day }) => day)).toEqual([today]);
  await reports.run();
  expect(mails.length).toBe(1);
});

test("a report goes by HTTPS where the domain asks for that", async () => {
  records["_smtp._tls.x.test"] = "v=TLSRPTv1; rua=https://tls.x.test:8443/in?d=1";
  counts = [count()];
  await reports.run();
  expect(posts[0]).toMatchObject({
    method: "POST",
    host: "tls.x.test",
    port: 8443,
    path: "/in?d=1",
    headers: { "content-type": "application/tlsrpt+gzip" },
  });
  expect(bodyOf(posts[0]?.body)).toMatchObject({ "organization-name": "mail.svc.test" });
  expect(counts).toEqual([]);
});

test("a domain that asks for none gets none, and its counts go", async () => {
  counts = [count()];
  await reports.run();
  expect([mails, posts, counts]).toEqual([[], [], []]);
});

test.each<[string, () => void]>([
  ["the DNS fails", () => (records["_smtp._tls.x.test"] = "servfail")],
  ["the web server refuses", () => (status = 500)],
  [
    "no mail can be signed",
    () => ([signed, records["_smtp._tls.x.test"]] = [false, "v=TLSRPTv1; rua=mailto:a@x.test"]),
  ],
])("where %s it is tried again until the third day", async (_what, arrange) => {
  records["_smtp._tls.x.test"] = "v=TLSRPTv1; rua=https://tls.x.test/";
  arrange();
  counts = [count({ day: today - 1 }), count({ day: today - 3 })];
  await reports.run();
  expect(counts.map(({ day }) => day)).toEqual([today - 1]);
  [status, signed] = [200, true];
  records["_smtp._tls.x.test"] = "v=TLSRPTv1; rua=https://tls.x.test/";
  await reports.run();
  expect(counts).toEqual([]);
});

test("one domain that cannot be reported to holds up none of many others", async () => {
  records["_smtp._tls.d000.test"] = "servfail";
  records["_smtp._tls.d450.test"] = "v=TLSRPTv1; rua=mailto:tls@x.test";
  counts = Array.from({ length: 500 }, (_, i) => count({ domain: `d${String(i).padStart(3, "0")}.test` }));
  await reports.run();
  expect(mails.length).toBe(1);
  expect(counts.map(({ domain }) => domain)).toEqual(["d000.test"]);
});

test("domains that name one stranger's address send him a hundred reports at most", async () => {
  counts = Array.from({ length: 300 }, (_, i) => count({ domain: `d${i}.test` }));
  for (const { domain } of counts) records[`_smtp._tls.${domain}`] = "v=TLSRPTv1; rua=mailto:victim@y.test";
  await reports.run();
  expect(mails.length).toBe(100);
  expect(counts).toEqual([]);
});

test("a stop waits until it is noted what was sent, so that the next start does not send it again", async () => {
  records["_smtp._tls.x.test"] = "v=TLSRPTv1; rua=mailto:tls@x.test";
  counts = [count()];
  const { promise, resolve } = Promise.withResolvers<void>();
  written = promise;
  const run = reports.run();
  await expect.poll(() => mails.length).toBe(1);
  const stopped = reports.stop().then(() => counts);
  resolve();
  expect(await stopped).toEqual([]);
  await run;
});

test("receivers that do not answer delay neither another domain's report nor that to another address", async () => {
  let answer = (_status: number): void => undefined;
  answers["silent.test"] = new Promise((resolve) => (answer = resolve));
  const silent = Array.from({ length: 40 }, (_, i) => `a${String(i).padStart(2, "0")}.test`);
  for (const domain of silent)
    records[`_smtp._tls.${domain}`] = `v=TLSRPTv1; rua=https://silent.test/,mailto:tls@${domain}`;
  records["_smtp._tls.x.test"] = "v=TLSRPTv1; rua=https://tls.x.test/";
  counts = [...silent.map((domain) => count({ domain })), count()];
  const run = reports.run();
  // Reports are compressed in other threads, which have a clock of their own.
  const others = async () => {
    await clock.advance(500);
    return { posted: posts.some(({ host }) => host === "tls.x.test"), mails: mails.length };
  };
  await expect.poll(others, { timeout: 60_000 }).toEqual({ posted: true, mails: silent.length });
  answer(200);
  await run;
  expect(counts).toEqual([]);
});
