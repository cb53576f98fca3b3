// Blocklists from the outside: a DNS that lists addresses and takes them off, the events, the mail to the operator, and
// which address mail leaves from meanwhile. The pool's addresses are loopback ones, as behind NAT: what is looked up is
// the public address that their EHLO names have.
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, freePort } from "../support/appliance.ts";
import { startSending, type Sending } from "../support/sending.ts";

const port = await freePort();
const reversed = { first: "44.33.22.11.bl.test", second: "55.33.22.11.bl.test" };
let sending: Sending;

beforeAll(async () => {
  sending = await startSending(
    "one.test",
    { address: "127.0.0.22", port },
    {
      records: {
        "2.0.0.127.bl.test": { A: ["127.0.0.2"] },
        "out1.ok.test": { A: ["11.22.33.44"] },
        "out2.ok.test": { A: ["11.22.33.55"] },
      },
      config: {
        operations: { email: "ops@one.test" },
        dnsbl: {
          interval: "1s",
          on_listing: "drain",
          zones: [{ zone: "bl.test", name: "Test list", removal_url: "https://bl.test/remove" }],
        },
      },
    },
  );
  const { svc } = sending;
  await svc.admin("POST", "/v1/ip_pools", { name: "news" });
  for (const [ip, hostname] of [
    ["127.0.0.41", "out1.ok.test"],
    ["127.0.0.42", "out2.ok.test"],
  ])
    await svc.admin("POST", "/v1/ip_pools/news/ips", { ip_address: ip, hostname });
});
afterAll(() => sending?.stop());

const events = async (type: string) =>
  (await sending.svc.admin("GET", `/v1/events?event=${type}`)).json.data.map(
    (event: { data: object }) => event.data,
  );
const statuses = async () =>
  (await sending.svc.admin("GET", "/v1/ip_pools/news")).json.ips.map((ip: { status: string }) => ip.status);

/** Checks until the addresses show these statuses: an answer counts once the next one, a second later, agrees. */
const checkUntil = (wanted: string[]) =>
  eventually(
    async () => {
      const { status } = await sending.svc.admin("POST", "/v1/blacklists/check", {});
      expect(status).toBe(200);
      return (await statuses()).join() === wanted.join();
    },
    20_000,
    `the statuses ${wanted.join()}`,
  );

/** Addresses that the next mails of the pool come from. */
const sources = async (): Promise<string[]> => {
  const { svc, key, receiver } = sending;
  const before = receiver.mails.length;
  for (let i = 0; i < 8; i++)
    await svc.api(key, "POST", "/v1/messages", {
      from: "shop@ok.test",
      to: `r${i}@one.test`,
      subject: "Hello",
      text: "Hi",
      ip_pool: "news",
    });
  const own = () => receiver.mails.slice(before).filter(({ from }) => from.startsWith("127.0.0.4"));
  await eventually(async () => own().length >= 8, 20_000, "eight mails");
  return [...new Set(own().map(({ from }) => from))].toSorted();
};

test("an address that a blocklist lists is reported and gets no new mail while another can be used", async () => {
  const { dns, svc, receiver } = sending;
  dns.set(reversed.first, "A", ["127.0.0.2"]);
  dns.set(reversed.first, "TXT", ["sent spam\r\nto a trap"]);
  await checkUntil(["listed", "active"]);
  expect(await events("ip.blacklisted")).toEqual([
    {
      ip_address: "11.22.33.44",
      blacklist_name: "Test list",
      blacklist_zone: "bl.test",
      affected_pools: ["news"],
      listing_reason: "sent spam to a trap",
      detected_at: expect.stringMatching(/Z$/),
      return_code: "127.0.0.2",
      removal_url: "https://bl.test/remove",
    },
  ]);
  await eventually(
    async () =>
      receiver.mails.some(({ data }) => data.toString().includes("11.22.33.44 is on the blocklist")),
    undefined,
    "the operator's mail",
  );
  const checked = await svc.cli("blacklists", "check", "127.0.0.41");
  expect(checked).toMatchObject({ code: 7, stderr: expect.stringContaining("11.22.33.44") });
  expect((await svc.cli("status")).stderr).toContain("11.22.33.44 is on the blocklist Test list");
  expect(await sources()).toEqual(["127.0.0.42"]);
});

test("where all of a pool's addresses are listed its mail leaves from them as before", async () => {
  sending.dns.set(reversed.second, "A", ["127.0.0.2"]);
  await checkUntil(["listed", "listed"]);
  expect(await sources()).toEqual(["127.0.0.41", "127.0.0.42"]);
});

test("a restart announces nothing again, and an address that is taken off the list is reported once", async () => {
  const { dns, svc } = sending;
  await svc.kill("SIGTERM");
  await svc.restart();
  await svc.admin("POST", "/v1/blacklists/check", {});
  expect(await statuses()).toEqual(["listed", "listed"]);
  expect(await events("ip.blacklisted")).toHaveLength(2);
  dns.remove(reversed.first);
  await checkUntil(["active", "listed"]);
  expect(await events("ip.delisted")).toMatchObject([
    { ip_address: "11.22.33.44", blacklist_zone: "bl.test", affected_pools: ["news"] },
  ]);
});
