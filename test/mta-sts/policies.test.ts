// When policies are fetched, how long they hold, and that one account's silent policy hosts delay no other's mail.
import { beforeEach, expect, test } from "vitest";
import type { Owner } from "../../src/fairness.ts";
import type { DnsAnswer } from "../../src/dns/resolver.ts";
import { silentLog } from "../../src/log.ts";
import type { KeptMtaStsPolicy } from "../../src/model/mta-sts.ts";
import type { TlsResult } from "../../src/model/tls-result.ts";
import { createMtaSts, type MtaSts } from "../../src/mta-sts/policies.ts";
import { ManualClock, settle } from "../support/clock.ts";
import { policyText } from "../support/policy-host.ts";

const minute = 60_000;
const day = 24 * 60 * minute;

let clock: ManualClock;
let kept: Map<string, KeptMtaStsPolicy>;
/** By domain: the id that its TXT record announces. */
let announced: Record<string, string>;
let dnsFails: boolean;
/** What each fetch comes to. */
let answer: (domain: string, signal: AbortSignal) => Promise<string>;
let fetches: string[];
let storeFails: boolean;
let unreadable = false;
let reported: TlsResult[];
let reportedFor: Owner[];

const texts = (id: string | undefined): DnsAnswer<string> =>
  dnsFails
    ? { kind: "failed", why: "SERVFAIL" }
    : id === undefined
      ? { kind: "nxdomain" }
      : { kind: "found", records: [`v=STSv1; id=${id};`], ttlSeconds: 0, authenticated: false };

const made = (): MtaSts =>
  createMtaSts({
    store: {
      async mtaStsPolicy(domain) {
        if (unreadable) throw new Error("the disk cannot be read");
        return kept.get(domain) ?? null;
      },
      putMtaStsPolicy: async (policy) => {
        if (storeFails) throw new Error("the disk is full");
        kept.set(policy.domain, policy);
      },
    },
    resolver: { txt: (name) => Promise.resolve(texts(announced[name.replace("_mta-sts.", "")])) },
    fetch: (domain, _owner, signal) => {
      fetches.push(domain);
      return answer(domain, signal);
    },
    onFailed(result, owner) {
      reported.push(result);
      reportedFor.push(owner);
    },
    clock,
    log: silentLog,
  });

const never = (_domain: string, signal: AbortSignal) =>
  new Promise<string>((_, reject) => signal.addEventListener("abort", () => reject(new Error("given up"))));

let mtaSts: MtaSts;
beforeEach(() => {
  clock = new ManualClock();
  kept = new Map();
  announced = { "x.test": "1" };
  [dnsFails, storeFails] = [false, false];
  answer = () => Promise.resolve(policyText("enforce", ["mail.x.test"]));
  [fetches, reported, reportedFor] = [[], [], []];
  mtaSts = made();
});

const modeOf = async (domain = "x.test", owner = 1) => (await mtaSts.policyOf(domain, owner))?.mode ?? null;

test("a domain without a record has no policy, and nothing is fetched", async () => {
  expect(await modeOf("none.test")).toBeNull();
  expect(fetches).toEqual([]);
});

test("a policy is fetched once, holds for its max_age, and a restart forgets none", async () => {
  expect(await mtaSts.policyOf("x.test", 1)).toMatchObject({ mode: "enforce", mx: ["mail.x.test"] });
  expect(await modeOf()).toBe("enforce");
  mtaSts = made();
  expect(await modeOf()).toBe("enforce");
  expect(fetches).toEqual(["x.test"]);
});

test("a policy holds while its record is gone or the DNS fails, until it expires", async () => {
  await modeOf();
  announced = {};
  expect(await modeOf()).toBe("enforce");
  dnsFails = true;
  await clock.advance(day - 1);
  expect(await modeOf()).toBe("enforce");
  await clock.advance(1);
  expect(await modeOf()).toBeNull();
  expect(fetches).toEqual(["x.test"]);
});

test("a new id fetches the policy again, and what it says now holds", async () => {
  await modeOf();
  announced["x.test"] = "2";
  answer = () => Promise.resolve(policyText("testing", ["mail.x.test"]));
  expect(await modeOf()).toBe("testing");
  announced["x.test"] = "3";
  answer = () => Promise.resolve(policyText("none", []));
  expect(await modeOf()).toBeNull();
  expect(fetches.length).toBe(3);
});

test("a fetch that fails leaves the old policy in force and is not tried again for five minutes", async () => {
  await modeOf();
  announced["x.test"] = "2";
  answer = () => Promise.reject(new Error("refused"));
  expect(await modeOf()).toBe("enforce");
  expect(await modeOf()).toBe("enforce");
  expect(fetches.length).toBe(2);
  await clock.advance(5 * minute);
  answer = () => Promise.resolve(policyText("testing", ["mail.x.test"]));
  expect(await modeOf()).toBe("testing");
});

test("a text that is no policy counts as a fetch that failed", async () => {
  answer = () => Promise.resolve("<html>");
  expect(await modeOf()).toBeNull();
  expect(await modeOf()).toBeNull();
  expect(fetches.length).toBe(1);
});

test.each([
  ["the host does not answer", new Error("no whole answer within 60 s"), "sts-policy-fetch-error"],
  [
    "its certificate has expired",
    Object.assign(new Error("x"), { code: "CERT_HAS_EXPIRED" }),
    "sts-webpki-invalid",
  ],
  [
    "it is for another name",
    Object.assign(new Error("x"), { code: "ERR_TLS_CERT_ALTNAME_INVALID" }),
    "sts-webpki-invalid",
  ],
  ["the text is no policy", null, "sts-policy-invalid"],
])("a fetch that fails is reported once: %s", async (_what, error, type) => {
  answer = () => (error === null ? Promise.resolve("") : Promise.reject(error));
  await modeOf();
  await modeOf();
  expect(reportedFor).toEqual([1]);
  expect(reported).toMatchObject([
    { domain: "x.test", policy: { type: "sts", domain: "x.test" }, failure: { type, mxHost: null } },
  ]);
});

test("a policy that ages is fetched again while it is used, and mail does not wait for that", async () => {
  answer = () => Promise.resolve(policyText("enforce", ["mail.x.test"], 7 * 86_400));
  await modeOf();
  await clock.advance(day + 1);
  answer = never;
  expect(await modeOf()).toBe("enforce");
  expect(await modeOf()).toBe("enforce");
  expect(fetches.length).toBe(2);
});

test("a policy that cannot be kept holds all the same", async () => {
  storeFails = true;
  expect(await modeOf()).toBe("enforce");
});

test("many who ask for one domain wait for one fetch", async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  answer = () => promise;
  const asked = Array.from({ length: 50 }, (_, i) => modeOf("x.test", i % 5));
  await settle();
  expect(fetches).toEqual(["x.test"]);
  resolve(policyText("enforce", ["mail.x.test"]));
  expect(new Set(await Promise.all(asked))).toEqual(new Set(["enforce"]));
});

test("an account with a thousand silent policy hosts delays no other account's mail", async () => {
  answer = (domain, signal) =>
    domain.startsWith("dead") ? never(domain, signal) : Promise.resolve(policyText("enforce", ["m.test"]));
  for (let i = 0; i < 1000; i++) {
    announced[`dead${i}.test`] = "1";
    void modeOf(`dead${i}.test`, 1);
  }
  await settle();
  expect(fetches.length).toBeLessThan(20);
  expect(await modeOf("x.test", 2)).toBe("enforce");
});

test("a domain whose fetch waits behind one account's others is fetched for another account at once", async () => {
  answer = (domain, signal) =>
    domain.startsWith("dead") ? never(domain, signal) : Promise.resolve(policyText("enforce", ["m.test"]));
  for (let i = 0; i < 100; i++) {
    announced[`dead${i}.test`] = "1";
    void modeOf(`dead${i}.test`, 1);
  }
  void modeOf("x.test", 1);
  for (let i = 100; i < 200; i++) {
    announced[`dead${i}.test`] = "1";
    void modeOf(`dead${i}.test`, 1);
  }
  await settle();
  expect(fetches).not.toContain("x.test");
  expect(await modeOf("x.test", 2)).toBe("enforce");
  expect(fetches.filter((domain) => domain === "x.test").length).toBe(1);
});

test("silent policy hosts in any number end, each given up in its turn", async () => {
  answer = never;
  const asked = Array.from({ length: 500 }, (_, i) => {
    announced[`dead${i}.test`] = "1";
    return modeOf(`dead${i}.test`, 1);
  });
  let over = 0;
  for (const one of asked) void one.then(() => over++);
  for (let i = 0; i < 120; i++) await clock.advance(1_000);
  expect(fetches.length).toBe(500);
  expect(over).toBeGreaterThan(300);
  mtaSts.stop();
  expect(await Promise.all(asked)).toEqual(asked.map(() => null));
});

test("a policy that cannot be read is not taken for none", async () => {
  unreadable = true;
  await expect(mtaSts.policyOf("a.test", 1)).rejects.toThrow("the disk cannot be read");
  unreadable = false;
});
