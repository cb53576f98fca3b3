import { dkimVerify } from "mailauth";
import { describe, expect, test } from "vitest";
import { createNotices, type NoticesDeps } from "../../src/notifications/notices.ts";
import { createIdMint } from "../../src/ids.ts";
import type { Log } from "../../src/log.ts";
import { createSigner, dkimRecordValue, generateDkimKey } from "../../src/mail/dkim.ts";
import { operationsAccount } from "../../src/model/account.ts";
import type { SenderDomain } from "../../src/model/domain.ts";
import { StoreUnavailable } from "../../src/store/store.ts";
import { FakeRunner, FakeStore, liveSender, makeDkimKey, makeDomain, tokens } from "../submission/rig.ts";
import { ManualClock } from "../support/clock.ts";

interface Options {
  email?: string | null;
  from?: string | null;
  domain?: SenderDomain | null;
  sign?: boolean;
  hostname?: string;
}

function makeRig({ email = "ops@x.test", from = null, domain = null, sign = true, hostname }: Options = {}) {
  const store = new FakeStore();
  const runner = new FakeRunner();
  const clock = new ManualClock();
  const logged: string[] = [];
  const asked: string[] = [];
  const write = (level: string) => (_fields: object, text: string) => void logged.push(`${level}: ${text}`);
  const log: Log = {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    component: () => log,
  };
  const accounts = { missing: false };
  const deps: NoticesDeps = {
    store: {
      ...store.store(),
      accountByName: async (name) =>
        accounts.missing ? null : { ...liveSender.account, key: name === operationsAccount ? 5 : 1, name },
    },
    runner,
    config: {
      operations: { email, from },
      hostname: hostname ?? "mail.svc.test",
      limits: { maxQueue: 10 },
      dev: false,
      outbound: { sign },
    },
    domains: {
      async senderFor(accountKey, name) {
        asked.push(`${accountKey} ${name}`);
        return domain?.name === name ? { ok: true, domain } : { ok: false, domain: null };
      },
    },
    signHeader: async (input) => createSigner()(input),
    clock,
    mint: createIdMint(),
    tokens,
    log,
  };
  return { store, runner, clock, logged, asked, accounts, notices: createNotices(deps) };
}

describe("a notice", () => {
  test("is a message of the operations account, from postmaster of this host, unsigned", async () => {
    const { store, runner, clock, notices } = makeRig();
    await notices.notify("dead_letter", "events could not\r\nbe delivered", "Line one\nLine two\n");
    expect(store.last()).toMatchObject({
      createdAt: clock.now(),
      sendAt: null,
      maxQueue: 10,
      message: {
        accountKey: 5,
        test: false,
        from: "postmaster@mail.svc.test",
        signingDomain: null,
        returnPathDomain: "mail.svc.test",
        source: "api",
        queuedAt: clock.now(),
      },
      recipients: [{ to: "ops@x.test", queueName: "5.default/x.test", leaseOwner: null }],
    });
    expect(runner.noted).toEqual([{ queueName: "5.default/x.test", dueAt: clock.now() }]);
    const text = store.bytes().toString();
    expect(text).toMatch(/^From: "svc on mail\.svc\.test" <postmaster@mail\.svc\.test>\r\n/);
    expect(text).toContain("\r\nTo: ops@x.test\r\n");
    expect(text).toContain("\r\nSubject: [svc] events could not be delivered\r\n");
    expect(text).toContain("\r\nAuto-Submitted: auto-generated\r\n");
    expect(text).toContain("\r\n\r\nLine one\r\nLine two\r\n");
    expect(text).not.toContain("DKIM-Signature");
  });

  test("starts at once where its scheduled queue has a slot", async () => {
    const { runner, notices } = makeRig();
    runner.slots = 1;
    await notices.notify("a", "s", "t");
    expect([runner.ran.length, runner.held.size]).toEqual([1, 0]);
  });

  test("is from operations.from and signed where that domain is verified", async () => {
    const key = await generateDkimKey("ed25519-sha256");
    const dkimKeys = [
      makeDkimKey({ privatePem: key.privatePem }),
      makeDkimKey({ selector: "old", privatePem: "none", status: "retired" }),
    ];
    const domain = makeDomain("ok.test", { dkimKeys });
    const { store, asked, notices } = makeRig({ from: "svc@ok.test", domain });
    await notices.notify("a", "s", "t");
    expect(asked, "of the default account").toEqual(["1 ok.test"]);
    const { message } = store.last();
    expect(message).toMatchObject({ from: "svc@ok.test", signingDomain: null });
    const bytes = store.bytes();
    expect(bytes.subarray(0, message.headerLength).toString()).toMatch(/^DKIM-Signature:[^]*\r\n\r\n$/);
    expect(bytes.subarray(message.headerLength).toString()).toBe("t\r\n");
    const { results } = await dkimVerify(bytes, {
      resolver: async () => [[dkimRecordValue("ed25519-sha256", key.publicKey)]],
    });
    expect(results.map(({ status }) => status.result)).toEqual(["pass"]);
  });

  test("is from postmaster where the domain of operations.from is not verified", async () => {
    const { store, notices } = makeRig({ from: "svc@other.test", domain: makeDomain("ok.test") });
    await notices.notify("a", "s", "t");
    expect(store.last().message.from).toBe("postmaster@mail.svc.test");
  });

  test("is not signed where a smart host signs", async () => {
    const domain = makeDomain("ok.test", { dkimKeys: [makeDkimKey()] });
    const { store, notices } = makeRig({ from: "svc@ok.test", domain, sign: false });
    await notices.notify("a", "s", "t");
    expect(store.last().message.from).toBe("svc@ok.test");
    expect(store.bytes().toString()).not.toContain("DKIM-Signature");
  });
});

describe("a report to another", () => {
  const report = {
    subject: "Report Domain: x.test",
    text: "Hello\n",
    headers: [["TLS-Report-Domain", "x.test"]] as [string, string][],
    reportType: "tlsrpt",
    file: { filename: "r.json.gz", contentType: "application/tlsrpt+gzip", bytes: Buffer.from("gz") },
  };
  const to = { local: "tls", domain: "x.test", ascii: "x.test", email: "tls@x.test" };

  test("is signed multipart/report mail of the operations account", async () => {
    const key = await generateDkimKey("ed25519-sha256");
    const domain = makeDomain("ok.test", { dkimKeys: [makeDkimKey({ privatePem: key.privatePem })] });
    const { store, notices } = makeRig({ from: "svc@ok.test", domain, email: null });
    expect(await notices.report(to, report)).toBe(true);
    expect(store.last()).toMatchObject({
      message: { accountKey: 5, from: "svc@ok.test", subject: "Report Domain: x.test" },
      recipients: [{ to: "tls@x.test" }],
    });
    const text = store.bytes().toString();
    expect(text).toMatch(/^DKIM-Signature:/);
    expect(text).toContain('\r\nContent-Type: multipart/report; report-type="tlsrpt";\r\n boundary=');
    expect(text).toContain("\r\nContent-Type: application/tlsrpt+gzip\r\n");
    expect(text).toContain("\r\nTLS-Report-Domain: x.test\r\n");
  });

  test("is not sent where it could not be signed", async () => {
    const { store, notices } = makeRig({ from: "svc@other.test", domain: makeDomain("ok.test") });
    expect(await notices.report(to, report)).toBe(false);
    expect(store.accepted).toEqual([]);
  });
});

describe("the operator gets a notice", () => {
  test("once a cause and hour, and again after it", async () => {
    const { store, clock, notices } = makeRig();
    for (let i = 0; i < 5; i++) await notices.notify("a", "s", "t");
    await notices.notify("b", "s", "t");
    expect(store.accepted).toHaveLength(2);
    await clock.advance(3_599_999);
    await notices.notify("a", "s", "t");
    expect(store.accepted).toHaveLength(2);
    await clock.advance(1);
    await notices.notify("a", "s", "t");
    expect(store.accepted).toHaveLength(3);
  });

  test("once, also when many causes came between", async () => {
    const { store, notices } = makeRig();
    for (let i = 0; i < 1001; i++) await notices.notify(`cause-${i}`, "s", "t");
    await notices.notify("cause-500", "s", "t");
    expect(store.accepted).toHaveLength(1001);
  });

  test("in the log only where operations.email is not set or is not an address", async () => {
    for (const email of [null, "nobody"]) {
      const { store, logged, notices } = makeRig({ email });
      await notices.notify("a", "s", "t");
      expect(store.asked).toEqual([]);
      expect(logged).toEqual(["warn: notice to the operator"]);
    }
  });
});

describe("a failure is logged and never thrown", () => {
  test("and the next notice of the same cause is sent", async () => {
    const { store, runner, logged, notices } = makeRig();
    runner.slots = 1;
    store.answer = new StoreUnavailable("full", "no room");
    expect(await notices.notify("a", "s", "t")).toBe(false);
    expect(logged.at(-1)).toBe("error: the notice could not be queued");
    expect(runner.held.size).toBe(0);
    store.answer = null;
    await notices.notify("a", "s", "t");
    expect(store.accepted).toHaveLength(1);
  });

  test("without the account, with a host name that makes no address, on a full disk", async () => {
    const missing = makeRig();
    missing.accounts.missing = true;
    const single = makeRig({ hostname: "localhost" });
    const full = makeRig();
    full.store.isFull = true;
    for (const { notices, store, logged } of [missing, single, full]) {
      await notices.notify("a", "s", "t");
      expect(store.asked).toEqual([]);
      expect(logged.at(-1)).toBe("error: the notice could not be queued");
    }
  });
});
