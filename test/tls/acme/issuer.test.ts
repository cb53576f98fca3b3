// Which certificates are ordered and when, with a real client, real files and a server that is a function.
import { generateKeyPairSync } from "node:crypto";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { silentLog } from "../../../src/log.ts";
import { openAccountKey } from "../../../src/tls/acme/account-key.ts";
import { createAcmeClient } from "../../../src/tls/acme/client.ts";
import { createIssuer, type IssuerDeps, type Wanted } from "../../../src/tls/acme/issuer.ts";
import { startAcmeServer, type AcmeServerOptions } from "../../support/acme-server.ts";
import { ManualClock } from "../../support/clock.ts";
import { removeFolder } from "../../support/folders.ts";

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const host: Wanted = { name: "mail.a.test", names: ["mail.a.test"], account: null };
const tracking = (name: string, account: number): Wanted => ({ name, names: [name], account });
const refused = { status: 403, body: { type: "urn:ietf:params:acme:error:caa", detail: "no" } };

async function rig(
  wanted: Wanted[],
  options: AcmeServerOptions & {
    days?: number;
    folder?: string;
    clock?: ManualClock;
    directory?: string;
    /** Orders are made, and never answered. */
    stalls?: boolean;
    /** Answers about when a certificate is to be renewed take so long. */
    sayingMs?: number;
  } = {},
) {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), "svc-acme-"));
  if (options.folder === undefined) onTestFinished(() => removeFolder(folder));
  const clock = options.clock ?? new ManualClock();
  const directory = options.directory ?? "https://acme.test/dir";
  const issued: string[] = [];
  const failures: Parameters<IssuerDeps["onFailed"]>[0][] = [];
  const server = await startAcmeServer({
    life: () => ({ from: clock.now() - hour, until: clock.now() - hour + (options.days ?? 90) * day }),
    ...options,
  });
  const stop = new AbortController();
  const { signal } = stop;
  const client = createAcmeClient({
    https: async (request) => {
      const answer = await server.https(request);
      if (request.path.startsWith("/renewalInfo/")) await clock.advance(options.sayingMs ?? 0);
      if (options.stalls && request.path === "/newOrder")
        await new Promise((_, reject) => request.signal.addEventListener("abort", reject));
      return answer;
    },
    directoryUrl: directory,
    key: await openAccountKey(folder),
    email: null,
    externalAccount: null,
    answers: { add: () => undefined, remove: () => undefined },
    clock,
    signal,
  });
  const issuer = createIssuer({
    folder,
    directory,
    client,
    wanted: async () => wanted,
    onIssued: async ({ name }) => void issued.push(name),
    onFailed: (failure) => void failures.push(failure),
    clock,
    log: silentLog,
    signal,
  });
  /** As the job of each minute does: this server lets no order wait. */
  const run = (): Promise<void> => issuer.run();
  const orders = (): string[] => server.ordered.map(([first = ""]) => first);
  return { folder, clock, server, issuer, issued, failures, run, orders, stop };
}

test("each name gets a certificate of its own once, kept by us alone, and none is ordered again before it is due", async () => {
  const { run, orders, issued, folder, clock, issuer } = await rig([host, tracking("t.b.test", 1)]);
  await run();
  await run();
  expect([orders(), issued]).toEqual([
    ["mail.a.test", "t.b.test"],
    ["mail.a.test", "t.b.test"],
  ]);
  expect(readdirSync(folder).toSorted()).toEqual([
    "acme-account.pem",
    "acme-mail.a.test.pem",
    "acme-t.b.test.pem",
    "acme.json",
  ]);
  for (const file of readdirSync(folder)) expect(statSync(join(folder, file)).mode & 0o777).toBe(0o600);
  await clock.advance(56 * day);
  await run();
  expect(orders()).toHaveLength(2);
  await clock.advance(4 * day);
  await run();
  expect(orders()).toHaveLength(4);
  expect(await issuer.list()).toMatchObject([
    { name: "mail.a.test", error: null },
    { name: "t.b.test", failures: 0 },
  ]);
});

test("a restart orders nothing again, and keeps to the waits from before", async () => {
  let works = true;
  const answer: AcmeServerOptions["answer"] = ({ path }) => (path === "/newOrder" && !works ? refused : null);
  const first = await rig([host, tracking("t.b.test", 1)], { answer });
  await first.run();
  works = false;
  const { folder, clock } = first;
  const second = await rig([host, tracking("t.c.test", 1)], { answer, folder, clock });
  await second.run();
  expect(second.orders()).toEqual(["t.c.test"]);
  const third = await rig([host, tracking("t.c.test", 1)], { answer, folder, clock });
  await third.run();
  expect(third.orders()).toEqual([]);
  expect(await third.issuer.list()).toMatchObject([{}, { name: "t.c.test", failures: 1, error: "caa: no" }]);
});

test.each([
  ["killed", 1],
  ["stopped", 5],
])(
  "a program that is %s in each of five orders orders %i times: a crash in a loop spends no limits",
  async (how, times) => {
    const clock = new ManualClock();
    const folder = mkdtempSync(join(tmpdir(), "svc-acme-"));
    onTestFinished(() => removeFolder(folder));
    let ordered = 0;
    for (let start = 0; start < 5; start++) {
      const { issuer, orders, stop } = await rig([host], { folder, clock, stalls: true });
      let ended = false;
      const running = issuer.run().finally(() => (ended = true));
      while (!ended && orders().length === 0) await new Promise((next) => setImmediate(next));
      if (how === "stopped") stop.abort(new Error("the program stops"));
      if (how === "stopped") await running;
      ordered += orders().length;
    }
    expect(ordered).toBe(times);
  },
);

test("a name that fails waits longer each time, and others are served meanwhile", async () => {
  const bad = "t.bad.test";
  const { run, orders, failures, clock } = await rig([tracking(bad, 1), tracking("t.good.test", 1), host], {
    answer: ({ path, payload }) =>
      path === "/newOrder" && JSON.stringify(payload).includes(bad) ? refused : null,
  });
  await run();
  expect(orders().toSorted((a, b) => a.localeCompare(b))).toEqual(["mail.a.test", bad, "t.good.test"]);
  for (let n = 0; n < 2 * 24 * 12; n++) {
    await clock.advance(5 * minute);
    await run();
  }
  expect(orders().filter((name) => name === bad)).toHaveLength(6);
  expect(failures.map(({ failures: times }) => times)).toEqual([1, 2, 3, 4, 5, 6]);
  expect(failures[0]).toMatchObject({ name: bad, error: "caa: no", until: null });
});

test("a server that fails is left alone for all names, and asked again later", async () => {
  let down = true;
  const { run, server, clock, issued } = await rig([host, tracking("t.b.test", 1), tracking("t.c.test", 2)], {
    answer: () => (down ? new Error("connect ECONNREFUSED") : null),
  });
  await run();
  const asked = server.asked.length;
  expect(asked).toBeLessThanOrEqual(2); // renewal information, and one order
  await clock.advance(4 * minute);
  await run();
  expect(server.asked).toHaveLength(asked);
  down = false;
  await clock.advance(2 * minute);
  await run();
  expect(issued).toEqual(["mail.a.test", "t.b.test", "t.c.test"]);
});

test("the host's certificate is tried again when it is time, however many tracking names are being ordered", async () => {
  const clock = new ManualClock();
  const many = Array.from({ length: 30 }, (_, n) => tracking(`t${n}.many.test`, 1));
  let refusals = 1;
  const { run, orders } = await rig([host, ...many], {
    clock,
    answer({ path, payload }) {
      if (path !== "/newOrder") return null;
      void clock.advance(minute);
      return JSON.stringify(payload).includes("mail.a.test") && refusals-- > 0 ? refused : null;
    },
  });
  await run();
  expect(orders().flatMap((name, n) => (name === "mail.a.test" ? [n] : []))).toEqual([0, 15]);
});

test("a program that is killed in each order waits longer each time", async () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-acme-"));
  onTestFinished(() => removeFolder(folder));
  let ordered = 0;
  for (let start = 0; start < 2 * 24 * 4; start++) {
    const clock = new ManualClock(); // of its own: the one that was killed has no timers any more
    clock.jump(start * 15 * minute);
    const { issuer, orders } = await rig([host], { folder, clock, stalls: true });
    let ended = false;
    void issuer.run().finally(() => (ended = true));
    while (!ended && orders().length === 0) await new Promise((next) => setImmediate(next));
    ordered += orders().length;
  }
  expect(ordered).toBe(6);
});

test("another ACME server is asked at once for what the one before issued or refused", async () => {
  const answer: AcmeServerOptions["answer"] = ({ path, payload }) =>
    path === "/newOrder" && JSON.stringify(payload).includes("t.b.test") ? refused : null;
  const first = await rig([host, tracking("t.b.test", 1)], { answer });
  await first.run();
  const { folder, clock } = first;
  const second = await rig([host, tracking("t.b.test", 1)], {
    folder,
    clock,
    directory: "https://acme.test/2",
  });
  await second.run();
  await second.run();
  expect(second.orders()).toEqual(["mail.a.test", "t.b.test"]);
});

test("a certificate that is not valid for days is not put in place", async () => {
  const clock = new ManualClock();
  const life = () => ({ from: clock.now() + 3 * day, until: clock.now() + 90 * day });
  const { run, issued, issuer } = await rig([host], { clock, life });
  await run();
  expect([issued, (await issuer.list())[0]?.error]).toEqual([[], expect.stringMatching(/not valid before/)]);
});

test("an account has fifty orders a day, and its names are in nobody's way", async () => {
  const many = Array.from({ length: 60 }, (_, n) => tracking(`t${n}.many.test`, 1));
  const { run, orders, clock } = await rig([...many, tracking("t.one.test", 2), host]);
  await run();
  expect(orders().slice(0, 2)).toEqual(["mail.a.test", expect.anything()]);
  expect(orders().slice(0, 4)).toContain("t.one.test");
  expect(orders()).toHaveLength(52);
  await clock.advance(25 * hour);
  await run();
  expect(orders()).toHaveLength(62);
});

test("the operator's order is made at once, though it is not due and the name waits after a failure", async () => {
  let works = false;
  const { run, orders, issuer, issued } = await rig([host, tracking("t.b.test", 1)], {
    answer: ({ path }) => (path === "/newOrder" && !works ? refused : null),
  });
  await run();
  works = true;
  await run();
  expect(issued).toEqual([]);
  expect(await issuer.renew("t.b.test")).toBeNull();
  expect(await issuer.list()).toMatchObject([{ renewing: false }, { renewing: true }]);
  await run();
  await run();
  expect([orders().at(-1), issued, (await issuer.list())[1]]).toMatchObject([
    "t.b.test",
    ["t.b.test"],
    { renewing: false, error: null },
  ]);
  expect(await issuer.renew("other.test")).toMatchObject({ reason: "unknown" });
});

test("what the server issues is not put in place if it names less than what was ordered", async () => {
  const { run, issued, issuer, folder } = await rig([{ ...host, names: ["mail.a.test", "api.a.test"] }], {
    answer({ path, payload }) {
      const identifiers = payload?.["identifiers"];
      if (path === "/newOrder" && Array.isArray(identifiers)) identifiers.pop();
      return null;
    },
  });
  await run();
  expect([issued, (await issuer.list())[0]?.error]).toEqual([
    [],
    expect.stringMatching(/does not name api\.a\.test/),
  ]);
  expect(readdirSync(folder)).not.toContain("acme-mail.a.test.pem");
});

test("what the server issues is not put in place if it has expired", async () => {
  const { run, issued, issuer, folder } = await rig([host], { days: 0 });
  await run();
  expect([issued, (await issuer.list())[0]?.error]).toEqual([[], expect.stringMatching(/expired at/)]);
  expect(readdirSync(folder)).not.toContain("acme-mail.a.test.pem");
});

test("a private key and other text in the chain of the server are left out: what is stored can be read again", async () => {
  const foreign = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
  const block = foreign.export({ type: "pkcs8", format: "pem" }).toString();
  const { run, issued, folder, clock } = await rig([host], {
    chain: (own) => `hello\n${block}${own}${block}`,
  });
  await run();
  expect(issued).toEqual(["mail.a.test"]);
  const again = await rig([host], { folder, clock });
  expect((await again.issuer.list())[0]?.pair?.covers("mail.a.test")).toBe(true);
});

test.each(["acme.json", "acme-mail.a.test.pem"])(
  "while %s cannot be written the old certificate stays and none is ordered; once it can, all goes on",
  async (name) => {
    const { run, orders, folder, clock, issuer, issued, failures } = await rig([host]);
    await run();
    const before = readFileSync(join(folder, "acme-mail.a.test.pem"), "utf8");
    await clock.advance(60 * day);
    mkdirSync(join(folder, `${name}.new`));
    for (let n = 0; n < 24 * 12; n++) {
      await run();
      await clock.advance(5 * minute);
    }
    expect(orders()).toHaveLength(1);
    expect(failures.at(-1)).toMatchObject({ name: host.name, until: expect.any(Number) });
    expect(readFileSync(join(folder, "acme-mail.a.test.pem"), "utf8")).toBe(before);
    rmdirSync(join(folder, `${name}.new`));
    await clock.advance(6 * hour);
    await run();
    expect(issued).toHaveLength(2);
    expect((await issuer.list())[0]?.error).toBeNull();
  },
);

test("another set of names is ordered at once, and a stored certificate that is broken too", async () => {
  const wanted = { ...host };
  const { run, orders, folder, clock } = await rig([wanted]);
  await run();
  await clock.advance(2 * hour);
  wanted.names = ["mail.a.test", "api.a.test"];
  await run();
  expect(orders()).toHaveLength(2);
  await clock.advance(2 * hour);
  writeFileSync(join(folder, "acme-mail.a.test.pem"), "broken");
  const again = await rig([wanted], { folder, clock });
  await again.run();
  expect(again.orders()).toHaveLength(1);
});

test("the time that the server wants is kept to", async () => {
  const clock = new ManualClock();
  const start = clock.now() + 10 * day;
  const { run, orders, issuer } = await rig([host], {
    clock,
    renewalInfo: true,
    answer: ({ path }) =>
      path.startsWith("/renewalInfo/")
        ? {
            status: 200,
            body: {
              suggestedWindow: {
                start: new Date(start).toISOString(),
                end: new Date(start + hour).toISOString(),
              },
            },
          }
        : null,
  });
  await run();
  await clock.advance(13 * hour);
  await run();
  expect((await issuer.list())[0]?.renewAt).toBeGreaterThanOrEqual(start);
  expect((await issuer.list())[0]?.renewAt).toBeLessThanOrEqual(start + hour);
  await clock.advance(9 * day + 13 * hour);
  await run();
  expect(orders()).toHaveLength(2);
});

test("a server that is slow to say when certificates are to be renewed does not hold the orders up", async () => {
  const clock = new ManualClock();
  const names = Array.from({ length: 30 }, (_, n) => tracking(`t${n}.a.test`, 1));
  const { run, folder } = await rig(names, { clock });
  await run();
  const start = clock.monotonic();
  let orderedAt = 0;
  const again = await rig([...names, host], {
    clock,
    folder,
    renewalInfo: true,
    sayingMs: minute,
    answer({ path }) {
      if (path === "/newOrder") orderedAt = clock.monotonic() - start;
      return null;
    },
  });
  await again.run();
  expect(orderedAt).toBeGreaterThan(minute);
  expect(orderedAt).toBeLessThan(10 * minute);
});

test("a name for which nothing is ordered any more is no failing one", async () => {
  const wanted = [host, tracking("t.b.test", 1)];
  const { run, issuer } = await rig(wanted, {
    answer: ({ path, payload }) =>
      path === "/newOrder" && JSON.stringify(payload).includes("t.b.test") ? refused : null,
  });
  await run();
  expect(issuer.failing()).toMatchObject([{ name: "t.b.test", isHost: false }]);
  wanted.pop();
  await run();
  expect(issuer.failing()).toEqual([]);
});

test("a name that more than a thousand others push out keeps its certificate, and is not ordered again when it is back", async () => {
  const wanted = [host, tracking("t.b.test", 1)];
  const { run, folder, orders, clock } = await rig(wanted);
  await run();
  const [, out] = wanted.splice(1);
  await clock.advance(2 * hour);
  await run();
  expect(readdirSync(folder)).toContain("acme-t.b.test.pem");
  wanted.push(out ?? host);
  await run();
  expect(orders()).toEqual(["mail.a.test", "t.b.test"]);
});

test("of names that nothing is ordered for, the thousand newest certificates are left", async () => {
  const { run, folder } = await rig([host]);
  await run();
  for (let n = 0; n < 1_010; n++) {
    const file = join(folder, `acme-t${n}.many.test.pem`);
    writeFileSync(file, "");
    utimesSync(file, n, n);
  }
  await run();
  const left = readdirSync(folder).filter((name) => name.includes("many"));
  expect(left).toHaveLength(1_000);
  expect(left).not.toContain("acme-t9.many.test.pem");
  expect(readdirSync(folder)).toEqual(
    expect.arrayContaining(["acme-account.pem", "acme-mail.a.test.pem", "acme.json"]),
  );
});

test("who looks at the certificates while they are first read disturbs nothing", async () => {
  const { run, orders, issuer, issued } = await rig([host, tracking("t.b.test", 1)]);
  const looks = [issuer.list(), issuer.list()];
  await run();
  await Promise.all(looks);
  await run();
  expect([orders(), issued]).toEqual([issued, ["mail.a.test", "t.b.test"]]);
  expect(await issuer.list()).toMatchObject([{ error: null }, { error: null }]);
});

test("an unreadable record of waits is none; a wait that a wrong clock made is not kept to", async () => {
  const { folder, clock, run, issued } = await rig([host]);
  const record = { names: { "mail.a.test": { failures: 3, error: "x", nextAt: clock.now() + 9_000 * day } } };
  writeFileSync(join(folder, "acme.json"), JSON.stringify(record));
  await run();
  expect(issued).toEqual(["mail.a.test"]);
  for (const text of ["", "[]", "{", '{"names":5}', '{"names":{"a":null}}', '{"orders":[null,5]}']) {
    writeFileSync(join(folder, "acme.json"), text);
    const again = await rig([host], { folder, clock });
    await again.run();
    expect(await again.issuer.list()).toMatchObject([{ name: "mail.a.test", error: null }]);
  }
});

test("the account's key stays the same; one that is broken is an error in plain words", async () => {
  const { folder } = await rig([]);
  const text = readFileSync(join(folder, "acme-account.pem"), "utf8");
  await openAccountKey(folder);
  expect(readFileSync(join(folder, "acme-account.pem"), "utf8")).toBe(text);
  writeFileSync(join(folder, "acme-account.pem"), "broken");
  await expect(openAccountKey(folder)).rejects.toThrow(/is not a private key: put it back from a backup/);
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-384" });
  const other = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  writeFileSync(join(folder, "acme-account.pem"), other);
  await expect(openAccountKey(folder)).rejects.toThrow(/is not a P-256 key: put it back from a backup/);
});
