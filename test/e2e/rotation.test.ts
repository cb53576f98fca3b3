// DKIM keys while they are rotated, from the outside: what a receiver finds in the DNS verifies every mail that it gets,
// signed before, meanwhile and after.
import { authenticate } from "mailauth";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, freePort, type Appliance } from "../support/appliance.ts";
import { type DnsServer, type RecordType } from "../support/dns-server.ts";
import { startSending, type Sending } from "../support/sending.ts";
import type { Receiver } from "../support/smtp-receiver.ts";

const port = await freePort();
let sending: Sending;
let dns: DnsServer;
let receiver: Receiver;
let svc: Appliance;
let key: string;
/** What the receiver's resolver sees. */
const zone = new Map<string, string>();

interface Shown {
  type: RecordType;
  name: string;
  value: string;
  required: boolean;
  status: string;
}

beforeAll(async () => {
  sending = await startSending("far.test", { address: "127.0.0.22", port });
  ({ dns, receiver, svc, key } = sending);
  note((await svc.admin("GET", "/v1/domains/ok.test")).json.records);
});
afterAll(() => sending?.stop());

function note(records: Shown[]): void {
  for (const { type, name, value } of records) if (type === "TXT") zone.set(name, value);
}

/** Sends a mail, and says which selectors signed it and what a verifier makes of them. */
async function signatures(): Promise<string[]> {
  const before = receiver.mails.length;
  const mail = { from: "shop@ok.test", to: "ann@far.test", subject: "Your order", text: "Hi" };
  expect((await svc.api(key, "POST", "/v1/messages", mail)).status).toBe(202);
  await receiver.waitForMails(before + 1);
  const { dkim } = await authenticate(receiver.mails[before]?.data ?? "", {
    ip: "127.0.0.1",
    helo: "mail.svc.test",
    sender: "bounce@ok.test",
    resolver: async (name: string) => {
      const value = zone.get(name);
      if (value === undefined) throw Object.assign(new Error("no such name"), { code: "ENOTFOUND" });
      return [[value]];
    },
  });
  return dkim.results.map(({ selector, status }) => `${selector} ${status.result}`).toSorted();
}

test("every mail verifies by what is in the DNS when it arrives: the old keys sign until the new ones are seen", async () => {
  expect(await signatures()).toEqual(["svc1 pass", "svc1e pass"]);
  const rotated = await svc.api(key, "POST", "/v1/domains/ok.test/dkim/rotate");
  expect(rotated.status).toBe(200);
  await svc.api(key, "POST", "/v1/domains/ok.test/verify");
  expect(await signatures()).toEqual(["svc1 pass", "svc1e pass"]);

  const fresh = (rotated.json.records as Shown[]).filter(({ status }) => status === "unchecked");
  expect(fresh.map(({ required }) => required)).toEqual([false, false]);
  for (const { name, type, value } of fresh) dns.set(name, type, [value]);
  note(fresh);
  const seen = await svc.api(key, "POST", "/v1/domains/ok.test/verify");
  expect(seen.json).toMatchObject({
    status: "verified",
    dkim: [
      { selector: "svc1", status: "retired" },
      { selector: "svc1e", status: "retired" },
      { selector: "svc2", status: "active" },
      { selector: "svc2e", status: "active" },
    ],
  });
  const then = await eventually(
    async () => {
      const now = await signatures(); // keys are read again once a second
      expect(now.filter((one) => !one.endsWith(" pass"))).toEqual([]);
      return now.includes("svc2 pass") && now;
    },
    undefined,
    "a mail that the new keys sign",
  );
  expect(then).toEqual(["svc2 pass", "svc2e pass"]);
});
