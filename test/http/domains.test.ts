// /v1/domains over a real store, a real resolver and a DNS on loopback: what is set of a domain, whose keys sign while
// they are rotated, and what becomes of a domain whose records go.
import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { notifyDomainStatus } from "../../src/notifications/domain-notice.ts";
import { idleClock } from "../support/idle-clock.ts";
import { createResolver, type CachingResolver } from "../../src/dns/resolve.ts";
import type { Domains } from "../../src/domains/domains.ts";
import { createDomains } from "../../src/domains/manage.ts";
import { silentLog } from "../../src/log.ts";
import type { Store } from "../../src/store/store.ts";
import { mint, newDirectory, openSqlite } from "../store/fixtures.ts";
import { ManualClock } from "../support/clock.ts";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";
import { list, startHttp, text, type Answer, type Ask, type Harness, type Json } from "./harness.ts";

const hourMs = 3_600_000;
let dns: DnsServer;
let resolver: CachingResolver;
let clock: ManualClock;
let store: Store;
let domains: Domains;
let http: Harness;
let notices: { cause: string; subject: string; text: string }[];
let count = 0;
let name: string;

beforeAll(async () => {
  dns = await startDnsServer();
  resolver = createResolver({
    servers: [dns.server],
    timeoutMs: 500,
    tries: 1,
    clock: idleClock,
    log: silentLog,
  });
  clock = new ManualClock();
  store = await openSqlite(newDirectory(), clock);
  const notify = async (cause: string, subject: string, words: string) =>
    notices.push({ cause, subject, text: words }) > 0;
  domains = createDomains({
    store,
    resolver: resolver.uncached,
    config: { hostname: "mail.acme.example", sources: [], publicHost: "api.acme.example" },
    clock,
    mint,
  });
  domains.onStatus((domain, before) => void notifyDomainStatus({ notify }, silentLog, domain, before));
  const high = { burst: 1e9, perSecond: 1e9 };
  http = await startHttp({
    opened: { store, clock },
    domains,
    config: { rates: { default: high, account: high } },
  });
});
afterAll(async () => {
  await http.stop();
  resolver.stop();
  await dns.stop();
});
beforeEach(() => {
  notices = [];
  name = `d${++count}.test`;
});

function ask(method: string, path: string, body?: unknown, more: Partial<Ask> = {}): Promise<Answer> {
  return http.ask({ method, path, ...(body === undefined ? {} : { body }), ...more });
}
const at = (rest = ""): string => `/v1/domains/${name}${rest}`;
const get = async (): Promise<Json> => (await ask("GET", at())).json;
const verify = async (): Promise<Json> => (await ask("POST", at("/verify"))).json;

/** Puts records into the DNS as they are shown; `which` by purpose or name. */
function publish(domain: Json, which: (record: Json) => boolean = () => true): void {
  for (const record of list(domain["records"]).filter(which)) {
    const type = text(record["type"]);
    if (type === "MX" || type === "TXT" || type === "CNAME")
      dns.set(text(record["name"]), type, [text(record["value"])]);
  }
}
async function verified(): Promise<Json> {
  publish((await ask("POST", "/v1/domains", { name })).json);
  return verify();
}
/** `selector status`, in the order of the record. */
const keys = (domain: Json): string[] =>
  list(domain["dkim"]).map((key) => `${text(key["selector"])} ${text(key["status"])}`);
const rows = (domain: Json, purpose: string): unknown[][] =>
  list(domain["records"])
    .filter((record) => text(record["purpose"]) === purpose)
    .map((record) => [record["name"], record["required"], record["status"]]);
const isOf = (selector: string) => (record: Json) =>
  text(record["name"]).startsWith(`${selector}._domainkey.`);
const issues = (answer: Answer): string[] =>
  list(answer.json["errors"]).map((row) => `${text(row["field"])} ${text(row["code"])}`);
const pem = (key: KeyObject): string => key.export({ type: "pkcs8", format: "pem" }).toString();

test("a new domain says all that there is of it, and no private key", async () => {
  const made = await ask("POST", "/v1/domains", { name });
  expect(made.status).toBe(201);
  expect(made.text).not.toContain("PRIVATE");
  expect(made.json).toMatchObject({
    name,
    status: "pending",
    tracking: { enabled: false, opens: false, clicks: false },
    tracking_domain: null,
    return_path_domain: `bounce.${name}`,
    allow_subdomains: true,
    feedback_address: "fbl@mail.acme.example",
    checked_at: null,
    verified_at: null,
    failing_since: null,
  });
  expect(keys(made.json)).toEqual(["svc1 active", "svc1e active"]);
  expect(await get()).toEqual(made.json);
});

test("what is set of a domain is kept, and its records follow and are looked at again", async () => {
  const before = await verified();
  const change = {
    tracking: { enabled: false, opens: true, clicks: true },
    tracking_domain: `GO.${name}`,
    return_path_domain: `rp.${name}`,
  };
  const set = await ask("PATCH", at(), change);
  expect(set.status).toBe(200);
  expect(set.json).toMatchObject({
    tracking: change.tracking,
    tracking_domain: `go.${name}`,
    return_path_domain: `rp.${name}`,
    status: "verified",
    checked_at: null,
  });
  expect(set.json["return_path_in_use"]).toBe(`bounce.${name}`);
  expect(rows(set.json, "return_path")).toEqual([[`rp.${name}`, true, "unchecked"]]);
  expect(rows(set.json, "spf")).toEqual([[`rp.${name}`, true, "unchecked"]]);
  expect(rows(set.json, "tracking")).toEqual([[`go.${name}`, false, "unchecked"]]);
  expect(rows(set.json, "dkim")).toEqual(rows(before, "dkim"));

  publish(set.json);
  await domains.recheck();
  expect(rows(await get(), "return_path")).toEqual([[`rp.${name}`, true, "ok"]]);
  expect(rows(await get(), "tracking")).toEqual([[`go.${name}`, false, "ok"]]);

  const back = await ask("PATCH", at(), { tracking_domain: null, return_path_domain: null });
  expect(back.json).toMatchObject({ tracking_domain: null, return_path_domain: `bounce.${name}` });
  expect(back.json["tracking"]).toEqual(change.tracking);
  expect(rows(back.json, "tracking")).toEqual([]);
});

test("mail keeps the return path that works until the records of the new one are seen, each of them", async () => {
  await ask("POST", "/v1/domains", { name });
  await ask("PATCH", at(), { return_path_domain: `early.${name}` }); // it never sent: nothing to keep
  expect((await get())["return_path_in_use"]).toBe(`early.${name}`);
  publish(await get());
  await verify();
  const inUse = async (): Promise<unknown> => (await get())["return_path_in_use"];
  const { json } = await ask("PATCH", at(), { return_path_domain: `rp.${name}` });
  await verify();
  expect(await inUse()).toBe(`early.${name}`);
  publish(json, (record) => text(record["purpose"]) === "return_path");
  await verify();
  expect(await inUse()).toBe(`early.${name}`);
  const again = await ask("PATCH", at(), { return_path_domain: `rp2.${name}` });
  expect(again.json["return_path_in_use"]).toBe(`early.${name}`);
  publish(again.json);
  expect(await verify()).toMatchObject({ status: "verified", return_path_in_use: `rp2.${name}` });
  await ask("PATCH", at(), { return_path_domain: `rp3.${name}` });
  const back = await ask("PATCH", at(), { return_path_domain: `rp2.${name}` });
  expect(back.json["return_path_in_use"]).toBe(`rp2.${name}`);
});

test("tracking is off at first, and is enabled with its defaults", async () => {
  const { json } = await ask("POST", "/v1/domains", { name });
  expect(json["tracking"]).toEqual({ enabled: false, opens: false, clicks: false });
  const on = await ask("PATCH", at(), { tracking: { enabled: true, opens: true } });
  expect([on.status, on.json["tracking"]]).toEqual([200, { enabled: true, opens: true, clicks: false }]);
  expect((await get())["tracking"]).toEqual({ enabled: true, opens: true, clicks: false });
  const off = await ask("PATCH", at(), { tracking: { enabled: false } });
  expect(off.json["tracking"]).toEqual({ enabled: false, opens: true, clicks: false });
});

test.each<[string, (of: string) => object, string[]]>([
  ["a return path elsewhere", () => ({ return_path_domain: "rp.other.test" }), ["return_path_domain"]],
  ["the domain itself", (of) => ({ return_path_domain: of }), ["return_path_domain"]],
  ["a name that only ends alike", (of) => ({ tracking_domain: `evil-${of}` }), ["tracking_domain"]],
  ["one name for both", (of) => ({ tracking_domain: `bounce.${of}` }), ["tracking_domain"]],
  ["a name too long", (of) => ({ return_path_domain: `${"a.".repeat(95)}${of}` }), ["return_path_domain"]],
  ["no domain name", () => ({ tracking_domain: "a b" }), ["tracking_domain"]],
  ["a field that there is none of", () => ({ trakcing: {} }), ["trakcing"]],
  ["another type", () => ({ tracking: { opens: "yes" } }), ["tracking.opens"]],
])("a PATCH is refused: %s", async (_, change, fields) => {
  await ask("POST", "/v1/domains", { name });
  const refused = await ask("PATCH", at(), change(name));
  expect([refused.status, refused.json["code"]]).toEqual([422, "validation_failed"]);
  expect(issues(refused)).toEqual(fields.map((field) => `${field} validation_failed`));
});

test("a change that was made of an older state is a conflict, and its answer is not kept", async () => {
  await ask("POST", "/v1/domains", { name });
  const slow = await store.domainByName(http.account.key, name);
  if (!slow) throw new Error("not there");
  await ask("PATCH", at(), { allow_subdomains: false });
  await expect(domains.update(slow, { trackOpens: true })).rejects.toMatchObject({ code: "conflict" });
  expect(await get()).toMatchObject({ allow_subdomains: false, tracking: { opens: false } });
});

test("a check that was under way while the domain was changed looks at what it became", async () => {
  await verified();
  const read = await store.domainByName(http.account.key, name);
  if (!read) throw new Error("not there");
  publish((await ask("POST", at("/dkim/rotate"))).json);
  expect(await domains.verify(read)).toMatchObject({ status: "verified" });
  expect(keys(await get())).toEqual(["svc1 retired", "svc1e retired", "svc2 active", "svc2e active"]);
});

test("rotated keys wait until they are seen; then they sign, and the old ones stay published for a week", async () => {
  await verified();
  const rotated = await ask("POST", at("/dkim/rotate"));
  expect(rotated.status).toBe(200);
  expect(rotated.text).not.toContain("PRIVATE");
  expect(keys(rotated.json)).toEqual(["svc1 active", "svc1e active", "svc2 pending", "svc2e pending"]);
  const dkim = (selector: string): string => `${selector}._domainkey.${name}`;
  expect(rows(rotated.json, "dkim")).toEqual([
    [dkim("svc1"), true, "ok"],
    [dkim("svc1e"), true, "ok"],
    [dkim("svc2"), false, "unchecked"],
    [dkim("svc2e"), false, "unchecked"],
  ]);
  expect(keys(await verify())).toEqual(keys(rotated.json)); // nothing is published yet
  expect((await get())["status"]).toBe("verified");

  publish(rotated.json, isOf("svc2e")); // each kind by itself
  expect(keys(await verify())).toEqual(["svc1 active", "svc1e retired", "svc2 pending", "svc2e active"]);

  publish(rotated.json, isOf("svc2"));
  await clock.advance(hourMs + 1); // an hourly look, though the domain is verified
  await domains.recheck();
  const seen = await get();
  expect(keys(seen)).toEqual(["svc1 retired", "svc1e retired", "svc2 active", "svc2e active"]);
  expect(rows(seen, "dkim")).toEqual([
    [dkim("svc2"), true, "ok"],
    [dkim("svc2e"), true, "ok"],
    [dkim("svc1"), false, "ok"],
    [dkim("svc1e"), false, "ok"],
  ]);
  expect(list(seen["dkim"])[0]?.["retired_at"]).toBe(new Date(clock.now()).toISOString());

  await clock.advance(7 * 24 * hourMs - 1);
  expect(keys(await verify())).toContain("svc1 retired");
  await clock.advance(1);
  expect(keys(await verify())).toEqual(["svc2 active", "svc2e active"]);
});

test("a second rotation takes the place of one that waits, under other names", async () => {
  await verified();
  await ask("POST", at("/dkim/rotate"));
  const again = await ask("POST", at("/dkim/rotate"), {});
  expect(keys(again.json)).toEqual(["svc1 active", "svc1e active", "svc3 pending", "svc3e pending"]);
  const named = await ask("POST", at("/dkim/rotate"), { selector: "y2027" });
  expect(keys(named.json).slice(2)).toEqual(["y2027 pending", "y2027e pending"]);
});

test("a key that is brought is published and signs under the selector that is asked for", async () => {
  const own = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const spki = own.publicKey.export({ type: "spki", format: "der" }).toString("base64");
  const made = await ask("POST", "/v1/domains", {
    name,
    dkim: { selector: "brought", private_key: pem(own.privateKey) },
  });
  expect(made.status).toBe(201);
  expect(keys(made.json)).toEqual(["brought active", "broughte active"]);
  expect(list(made.json["records"])[0]?.["value"]).toBe(`v=DKIM1; k=rsa; p=${spki}`);

  const ed = generateKeyPairSync("ed25519").privateKey;
  const rotated = await ask("POST", at("/dkim/rotate"), { private_key: pem(ed), selector: "next" });
  expect(keys(rotated.json).slice(2)).toEqual(["nextr pending", "next pending"]);
  const kept = await store.domainByName(http.account.key, name);
  const key = kept?.dkimKeys.find(({ selector }) => selector === "next");
  expect(createPublicKey(key?.privatePem ?? "").asymmetricKeyType).toBe("ed25519");
});

test("an RSA key in the older form of PEM is taken too", async () => {
  const own = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
  const pkcs1 = own.export({ type: "pkcs1", format: "pem" }).toString();
  expect((await ask("POST", "/v1/domains", { name, dkim: { private_key: pkcs1 } })).status).toBe(201);
});

const passphrase = { cipher: "aes-256-cbc", passphrase: "x" } as const;
test.each<[string, object, RegExp]>([
  [
    "noise",
    { private_key: "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----" },
    /not a private key/,
  ],
  ["nothing", { private_key: "" }, /not a private key/],
  ["a novel", { private_key: "x".repeat(20_000) }, /longer/],
  [
    "a public key",
    {
      private_key: generateKeyPairSync("ed25519")
        .publicKey.export({ type: "spki", format: "pem" })
        .toString(),
    },
    /not a private key/,
  ],
  [
    "a passphrase",
    {
      private_key: generateKeyPairSync("ed25519")
        .privateKey.export({ type: "pkcs8", format: "pem", ...passphrase })
        .toString(),
    },
    /passphrase/,
  ],
  ["1024 bits", { private_key: pem(generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey) }, /1024/],
  ["a curve", { private_key: pem(generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey) }, /ec; RSA/],
])("a private key is refused, and the field named: %s", async (_, body, words) => {
  await ask("POST", "/v1/domains", { name });
  const rotated = await ask("POST", at("/dkim/rotate"), body);
  const added = await ask("POST", "/v1/domains", { name: `x.${name}`, dkim: body });
  expect([rotated.status, issues(rotated)]).toEqual([422, ["private_key validation_failed"]]);
  expect([added.status, issues(added)]).toEqual([422, ["dkim.private_key validation_failed"]]);
  expect(list(rotated.json["errors"])[0]?.["issue"]).toMatch(words);
  expect(keys(await get())).toEqual(["svc1 active", "svc1e active"]);
});

test.each(["svc1", "Upper", "a.b", "-a", "", "a_b", "x".repeat(63)])(
  "the selector %j is refused for new keys",
  async (selector) => {
    await ask("POST", "/v1/domains", { name });
    const refused = await ask("POST", at("/dkim/rotate"), { selector });
    expect([refused.status, issues(refused)]).toEqual([422, ["selector validation_failed"]]);
  },
);

test("a rotation under an Idempotency-Key is made once", async () => {
  await ask("POST", "/v1/domains", { name });
  const headers = { "idempotency-key": `rotate ${name}` };
  const [first, second] = await Promise.all([
    ask("POST", at("/dkim/rotate"), {}, { headers }),
    ask("POST", at("/dkim/rotate"), {}, { headers }),
  ]);
  expect(second.text).toBe(first.text);
  expect(keys(await get())).toEqual(["svc1 active", "svc1e active", "svc2 pending", "svc2e pending"]);
});

test("a subdomain sends by its parent, unless that is turned off", async () => {
  await verified();
  const speaks = async (): Promise<boolean> => (await domains.senderFor(http.account.key, `news.${name}`)).ok;
  expect(await speaks()).toBe(true);
  await ask("PATCH", at(), { allow_subdomains: false });
  expect(await speaks()).toBe(false);
  expect((await domains.senderFor(http.account.key, name)).ok).toBe(true);
});

test("the operator stops a domain and lets it go on; a key cannot", async () => {
  await verified();
  expect((await ask("POST", at("/suspend"))).status).toBe(404);
  const stopped = await ask("POST", at("/suspend"), undefined, { admin: true });
  expect([stopped.status, stopped.json["status"]]).toEqual([200, "suspended"]);
  expect((await domains.senderFor(http.account.key, `x.${name}`)).ok).toBe(false);
  expect((await verify())["status"]).toBe("suspended");
  const resumed = await ask("POST", at("/resume"), undefined, { admin: true });
  expect(resumed.json["status"]).toBe("pending");
  expect((await verify())["status"]).toBe("verified");
});

test("a verified domain whose records go sends for 72 hours more, and the operator is notified both times", async () => {
  await verified();
  dns.remove(`bounce.${name}`, "MX");
  await clock.advance(24 * hourMs + 1);
  await domains.recheck();
  expect(await get()).toMatchObject({
    status: "degraded",
    failing_since: new Date(clock.now()).toISOString(),
  });
  const told = notices.filter((notice) => notice.subject.includes(name));
  expect(told).toHaveLength(1);
  expect(told[0]?.text).toContain("72 hours");
  expect(told[0]?.text).toContain(`There is no MX record at bounce.${name}`);
  expect(told[0]?.text).toContain(`svc domains verify ${name}`);
  expect((await domains.senderFor(http.account.key, name)).ok).toBe(true);

  for (let days = 0; days < 3; days++) {
    await clock.advance(24 * hourMs + 1);
    await domains.recheck();
  }
  expect((await get())["status"]).toBe("failed");
  expect((await domains.senderFor(http.account.key, name)).ok).toBe(false);
  expect(notices.filter((notice) => notice.subject.includes(`${name} is failed`))).toHaveLength(1);
});
