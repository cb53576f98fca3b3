// Each check of the doctor failing, with what mends it, and passing.
import { expect, test } from "vitest";
import type { Dial, FindingStatus, World } from "../../src/doctor/check.ts";
import {
  changedSince,
  checks,
  createDoctor,
  lastKnown,
  runChecks,
  type Result,
} from "../../src/doctor/doctor.ts";
import { silentLog } from "../../src/log.ts";
import { ManualClock } from "../support/clock.ts";
import {
  address,
  domain,
  failedAnswer,
  found,
  healthy,
  host,
  now,
  pool,
  poolAddress,
  record,
} from "./world.ts";

const run = async (id: string, more: Partial<World>) => {
  const check = checks.find((one) => one.id === id);
  if (!check) throw new Error(`no check ${id}`);
  return check.run(healthy(more));
};
const { resolver } = healthy();
const withRecords = (...records: ReturnType<typeof record>[]) => ({
  domains: () => Promise.resolve([domain({ records })]),
});
const rates = (delivered: number, bouncedHard: number, complained: number) => () =>
  Promise.resolve([{ account: "default", rates: { delivered, bouncedHard, complained } }]);
const dialled = (kind: "refused" | "silent" | "failed") => () =>
  Promise.resolve<Dial>({ kind, why: kind === "refused" ? "ECONNREFUSED" : "no answer within 8 s" });
const smartHost = { host: "relay.example", port: 587 } as NonNullable<World["outbound"]["smartHost"]>;
const late = { scheduled: 0, queued: 9, deferred: 0, sending: 0, held: 0, oldestDueAt: now - 3_600_000 };
const store = { journalMode: "wal", synchronous: "FULL", walBytes: 0, writable: true, full: false };

const failing: [
  id: string,
  what: string,
  world: Partial<World>,
  status: FindingStatus,
  saw: string,
  mend: string,
][] = [
  [
    "host-name",
    "it has no address",
    { resolver: { ...resolver, a: async () => ({ kind: "nxdomain" }) } },
    "fail",
    "neither an A nor an AAAA",
    "publish an A record",
  ],
  [
    "host-name",
    "its reverse name is another",
    { resolver: { ...resolver, ptr: async () => found("vps1.hoster.example") } },
    "fail",
    "is not mail.acme.example",
    "reverse name (PTR)",
  ],
  [
    "host-name",
    "the DNS does not answer",
    { resolver: { ...resolver, a: async () => failedAnswer } },
    "unknown",
    "did not answer",
    "resolver",
  ],
  [
    "sending-addresses",
    "the machine lacks one",
    { pools: [pool(poolAddress({ bindable: false }))] },
    "fail",
    "11.22.33.44 (pool news)",
    "ip address add 11.22.33.44",
  ],
  [
    "reverse-names",
    "one has another name",
    { resolver: { ...resolver, ptr: async () => found("vps1.hoster.example") } },
    "fail",
    "is vps1.hoster.example, not mail.acme.example",
    "reverse name (PTR)",
  ],
  [
    "port-25",
    "it is closed",
    { dial: dialled("silent") },
    "fail",
    "no connection to port 25",
    "svc config set outbound.smart_host.host HOST outbound.smart_host.user",
  ],
  [
    "port-25",
    "the smart host is away",
    { outbound: { ...healthy().outbound, smartHost }, dial: dialled("refused") },
    "fail",
    "relay.example:587: ECONNREFUSED",
    "outbound.smart_host",
  ],
  [
    "port-25",
    "the DNS has no MX of anybody",
    { resolver: { ...resolver, mx: async () => failedAnswer } },
    "unknown",
    "no mail server",
    "resolver",
  ],
  [
    "blocklists",
    "an address is listed",
    { listed: [{ address, zone: "zen.spamhaus.org" }] },
    "fail",
    "11.22.33.44 is on zen.spamhaus.org",
    "svc blacklists list",
  ],
  [
    "blocklists",
    "one refuses the resolver",
    { unusableZones: [{ zone: "zen.spamhaus.org", detail: "refused" }] },
    "warn",
    "zen.spamhaus.org (refused)",
    "unbound",
  ],
  [
    "resolver",
    "it does not answer",
    { resolver: { ...resolver, a: async () => failedAnswer } },
    "fail",
    "no answer",
    "dns.servers",
  ],
  ["resolver", "it is an open one", { dnsServers: ["8.8.8.8"] }, "warn", "8.8.8.8 is Google's", "unbound"],
  [
    "ipv6",
    "an address has no reverse name",
    { pools: [pool(poolAddress({ address: "2a00::1", ptrOk: false }))] },
    "warn",
    "2a00::1",
    "svc ips remove",
  ],
  ["domains", "there is none", { domains: async () => [] }, "warn", "no sender domain", "svc domains add"],
  [
    "domains",
    "one failed",
    { domains: async () => [domain({ status: "failed" })] },
    "fail",
    "acme.example is failed",
    "svc domains records acme.example",
  ],
  [
    "domains",
    "one waits for its records",
    { domains: async () => [domain({ status: "pending" })] },
    "warn",
    "is pending",
    "svc domains verify acme.example",
  ],
  [
    "dkim",
    "the key is another",
    withRecords(record("dkim", { status: "mismatch", issue: "has another key" })),
    "fail",
    "has another key",
    "svc domains verify",
  ],
  [
    "spf",
    "the record is missing",
    withRecords(record("spf", { status: "missing" })),
    "fail",
    "spf.acme.example",
    "svc domains records",
  ],
  [
    "return-path",
    "the MX is another",
    withRecords(record("return_path", { status: "mismatch" })),
    "fail",
    "return_path",
    "svc domains records",
  ],
  [
    "dmarc",
    "there is none",
    withRecords(record("dmarc", { status: "missing" })),
    "warn",
    "dmarc.acme.example",
    "svc domains records",
  ],
  [
    "tracking-names",
    "it leads elsewhere",
    withRecords(record("tracking", { status: "mismatch" })),
    "warn",
    "tracking",
    "svc domains records",
  ],
  [
    "dkim",
    "it was not looked up",
    withRecords(record("dkim", { status: "unchecked" })),
    "unknown",
    "not looked up",
    "svc domains verify",
  ],
  [
    "bulk-senders",
    "one in 500 complains",
    { rates: rates(10_000, 0, 20) },
    "warn",
    "0.20 % complained",
    "one-click",
  ],
  [
    "bulk-senders",
    "one in 200 complains",
    { rates: rates(10_000, 0, 50) },
    "fail",
    "0.50 % complained",
    "one-click",
  ],
  [
    "bulk-senders",
    "a tenth bounces",
    { rates: rates(9_000, 1_000, 0) },
    "warn",
    "10.00 % bounced hard",
    "svc stats bounces",
  ],
  [
    "bulk-senders",
    "mail is not signed",
    { outbound: { ...healthy().outbound, sign: false } },
    "warn",
    "outbound.sign",
    "one-click",
  ],
  [
    "listeners",
    "the port is closed",
    { dial: dialled("refused") },
    "fail",
    "refuses http on 443",
    "firewall",
  ],
  [
    "listeners",
    "nothing answers",
    { dial: dialled("silent") },
    "unknown",
    "no answer at 11.22.33.44",
    "nc -vz",
  ],
  ["queue", "mail is due since an hour", { queue: async () => late }, "warn", "60 minutes", "svc queue list"],
  [
    "queue",
    "mail is due since a day",
    {
      queue: async () => ({
        scheduled: 0,
        queued: 9,
        deferred: 0,
        sending: 0,
        held: 0,
        oldestDueAt: now - 86_400_000,
      }),
    },
    "fail",
    "24 hours",
    "svc messages trace",
  ],
  [
    "webhooks",
    "an endpoint fails",
    {
      failingEndpoints: async () => [{ account: "default", id: "whk_1", failures: 12, lastSuccessAt: null }],
    },
    "warn",
    "whk_1 of default: 12 failures",
    "svc webhooks deliveries whk_1",
  ],
  [
    "database",
    "a write was refused",
    { store: async () => ({ ...store, writable: false }) },
    "fail",
    "the last write was refused",
    "svc status",
  ],
  [
    "database",
    "commits are not synced",
    { store: async () => ({ ...store, synchronous: "NORMAL" }) },
    "fail",
    "synchronous NORMAL",
    "restart",
  ],
  [
    "database",
    "the log has grown",
    { store: async () => ({ ...store, walBytes: 2e9 }) },
    "warn",
    "log 2000 MB",
    "restart",
  ],
  [
    "backups",
    "there is none",
    { backups: async () => ({ at: null, lastAt: null }) },
    "warn",
    "backup.at is not set",
    "backup.at",
  ],
  [
    "backups",
    "the last is old",
    { backups: async () => ({ at: "03:30", lastAt: now - 4 * 86_400_000 }) },
    "warn",
    "2026-11-27",
    "svc backup",
  ],
  ["operator-mail", "nobody gets it", { operationsEmail: null }, "warn", "not set", "operations.email"],
  [
    "trusted-networks",
    "one is wide",
    { relayTrusted: [{ network: "10.0.0.0/8" }] },
    "warn",
    "10.0.0.0/8",
    "svc smtp-credentials create",
  ],
  [
    "trusted-networks",
    "one is public",
    { relayTrusted: [{ network: "11.22.33.0/25" }] },
    "warn",
    "11.22.33.0/25",
    "relay.trusted",
  ],
  ["clock", "it is a minute off", { clockAheadMs: async () => -60_000 }, "warn", "60.0 s behind", "set-ntp"],
  [
    "clock",
    "it is an hour off",
    { clockAheadMs: async () => 3_600_000 },
    "fail",
    "3600.0 s ahead",
    "set-ntp",
  ],
  [
    "clock",
    "no time server answers",
    { clockAheadMs: async () => null },
    "unknown",
    "no time server",
    "timedatectl",
  ],
  [
    "disk",
    "it is nearly full",
    { disk: () => ({ freeBytes: 8e9, totalBytes: 1e11 }) },
    "warn",
    "7629 MB of 95367 MB",
    "retention",
  ],
  [
    "disk",
    "it is full",
    { disk: () => ({ freeBytes: 4e9, totalBytes: 1e11 }) },
    "fail",
    "3815 MB",
    "retention",
  ],
  [
    "memory",
    "there is little",
    { memory: () => ({ freeBytes: 5e7, totalBytes: 1e9 }) },
    "warn",
    "48 MB of 954 MB",
    "memory",
  ],
  ["open-files", "few may be opened", { openFiles: () => 1_024 }, "warn", "1024", "LimitNOFILE"],
  [
    "file-modes",
    "others may read the data",
    { file: () => ({ mode: 0o755 }) },
    "fail",
    "/var/lib/svc has mode 755",
    "chmod 700",
  ],
  [
    "file-modes",
    "others may write the configuration",
    { file: (path) => ({ mode: path.endsWith("yaml") ? 0o666 : 0o700 }) },
    "fail",
    "/etc/svc/svc.yaml",
    "chmod go-w",
  ],
];

test.each(failing)(
  "%s, where %s: what was seen, and what mends it",
  async (id, _what, world, status, saw, mend) => {
    const finding = await run(id, world);
    expect({ status: finding.status, saw: finding.saw, mend: finding.mend }).toEqual({
      status,
      saw: expect.stringContaining(saw),
      mend: expect.stringContaining(mend),
    });
    if (status === "warn" || status === "fail") expect(finding.why).not.toBeNull();
  },
);

test.each(checks.map(({ id }) => id))("%s passes where all is well", async (id) => {
  expect(await run(id, {})).toMatchObject({ status: "ok", why: null, mend: null });
});

test("every check is shown failing", () => {
  const shown = new Set([...failing.map(([id]) => id), "certificate", "unit", "ports"]); // these: stopped.test.ts;
  expect(checks.map(({ id }) => id).filter((id) => !shown.has(id))).toEqual([]);
});

test("after a start, the operator hears of what fails, and of no warning before it changes", async () => {
  const told: string[][] = [];
  let world = healthy({ operationsEmail: null, openFiles: () => 1_024, dial: dialled("refused") });
  const doctor = createDoctor({
    world: () => Promise.resolve(world),
    onChanged: (changed) => void told.push(changed.map(({ id, status }) => `${id} ${status}`)),
    clock: new ManualClock(),
    log: silentLog,
  });
  const [job] = doctor.jobs;
  await job?.run();
  expect(told).toEqual([["port-25 fail", "listeners fail"]]);
  await job?.run();
  world = healthy({ operationsEmail: null, queue: () => Promise.resolve({ ...late }) });
  await job?.run();
  expect(told.slice(1)).toEqual([["port-25 ok", "listeners ok", "queue warn", "open-files ok"]]);
});

const all = { only: null, skip: [], domain: null };

test("a check that throws or never ends is unknown, and the others are told", async () => {
  const clock = new ManualClock();
  const world = healthy({
    queue: () => Promise.reject(new Error("the store is closed")),
    clockAheadMs: () => new Promise(() => undefined),
  });
  const running = runChecks(world, { ...all, only: ["queue", "clock", "disk"] }, clock);
  await clock.advance(15_000);
  expect((await running).map(({ id, status, saw }) => [id, status, saw])).toEqual([
    ["queue", "unknown", "the store is closed"],
    ["clock", "unknown", "no result within 15 s"],
    ["disk", "ok", expect.any(String)],
  ]);
});

test("only and skip choose, in the order of the list", async () => {
  const ids = async (wanted: object) =>
    (await runChecks(healthy(), { ...all, ...wanted }, new ManualClock())).map(({ id }) => id);
  expect(await ids({})).toEqual(checks.map(({ id }) => id));
  expect(await ids({ only: ["disk", "queue"] })).toEqual(["queue", "disk"]);
  expect(await ids({ only: ["disk", "queue"], skip: ["disk"] })).toEqual(["queue"]);
});

test("the operator hears of what goes wrong, becomes worse or is well again, and of nothing that is not known", () => {
  const one = (status: FindingStatus): Result[] => [{ id: "queue", status, saw: "", why: null, mend: null }];
  const told = (before: FindingStatus | null, after: FindingStatus) =>
    changedSince(before === null ? [] : one(before), one(after)).length > 0;
  expect(told(null, "ok")).toBe(false);
  expect(told(null, "warn")).toBe(true);
  expect(told("ok", "fail")).toBe(true);
  expect(told("warn", "fail")).toBe(true);
  expect(told("fail", "ok")).toBe(true);
  expect(told("warn", "warn")).toBe(false);
  expect(told("ok", "unknown")).toBe(false);
  const after = (...statuses: FindingStatus[]): FindingStatus[] => {
    let known: Result[] = [];
    return statuses.filter((status) => {
      const changed = changedSince(known, one(status)).length > 0;
      known = lastKnown(known, one(status));
      return changed;
    });
  };
  expect(after("ok", "unknown", "ok")).toEqual([]);
  expect(after("unknown", "warn")).toEqual(["warn"]);
  expect(after("ok", "unknown", "warn", "warn")).toEqual(["warn"]);
  expect(after("fail", "unknown", "fail", "unknown", "ok")).toEqual(["fail", "ok"]);
});

test("port 25: tried from every address at once, and never called open where nothing was tried", async () => {
  const clock = new ManualClock();
  const silent = (): Promise<Dial> =>
    new Promise((end) => void clock.after(8_000, () => end({ kind: "silent", why: "no answer within 8 s" })));
  const sending = ["11.22.33.44", "11.22.33.45", "11.22.33.46"].map((one) => ({
    address: one,
    ehloName: host,
  }));
  const blocked = runChecks(healthy({ sending, dial: silent }), { ...all, only: ["port-25"] }, clock);
  await clock.advance(15_000);
  expect(await blocked).toMatchObject([{ status: "fail", saw: expect.stringContaining("11.22.33.46") }]);
  for (const none of [[], [{ address: "2001:db8::1", ehloName: host }]])
    expect(await run("port-25", { sending: none, dial: dialled("silent") })).toMatchObject({
      status: "unknown",
    });
});

test("a smart host: its addresses are those that the configured resolver gives, and one that answers is enough", async () => {
  const tried: string[] = [];
  const dial: World["dial"] = async (to) => {
    tried.push(to);
    return to === "2001:db8::7"
      ? { kind: "open", greeting: "220 relay" }
      : { kind: "refused", why: "ECONNREFUSED" };
  };
  const withHost = (name: string, more: Partial<World["resolver"]> = {}) =>
    run("port-25", {
      outbound: { ...healthy().outbound, smartHost: { ...smartHost, host: name } },
      resolver: { ...resolver, aaaa: async () => found("2001:db8::7"), ...more },
      dial,
    });
  expect(await withHost("relay.example")).toMatchObject({
    status: "ok",
    saw: "the smart host relay.example:587 answers",
  });
  expect(tried).toEqual(["198.51.100.7", "2001:db8::7"]);
  expect(await withHost("192.0.2.9")).toMatchObject({ status: "fail" });
  expect(tried.at(-1)).toBe("192.0.2.9");
  const none = {
    a: async () => ({ kind: "nxdomain" }) as const,
    aaaa: async () => ({ kind: "nxdomain" }) as const,
  };
  expect(await withHost("relay.example", none)).toMatchObject({
    status: "fail",
    saw: "the smart host relay.example:587: the name has no address",
  });
  expect(
    await withHost("relay.example", { a: async () => failedAnswer, aaaa: async () => failedAnswer }),
  ).toMatchObject({
    status: "unknown",
  });
});
