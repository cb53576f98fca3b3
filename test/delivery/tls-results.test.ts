// What a session's TLS is reported as (RFC 8460 §4.3), and that TLS reports are neither held up nor reported on.
import { afterEach, beforeAll, expect, test } from "vitest";
import type { KeptMtaStsPolicy, MtaStsMode } from "../../src/model/mta-sts.ts";
import type { TlsResult } from "../../src/model/tls-result.ts";
import { createAuthority, tlsaOf, type Authority, type Identity } from "../support/certificates.ts";
import { startReceiver, type ReceiverOptions } from "../support/smtp-receiver.ts";
import { oneHost, rig, type Zone } from "./rig.ts";

let authority: Authority;
let right: Identity;
beforeAll(async () => {
  authority = await createAuthority("authority");
  right = await authority.issue(["mail.test"]);
});

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

const policy = (mode: MtaStsMode, ...mx: string[]): KeptMtaStsPolicy => ({
  domain: "x.test",
  id: "1",
  mode,
  mx,
  fetchedAt: 0,
  expiresAt: 86_400_000,
});

async function results(
  receives: ReceiverOptions,
  {
    mtaSts = null,
    zone = oneHost,
    report = false,
    counted = true,
  }: { mtaSts?: KeptMtaStsPolicy | null; zone?: Zone; report?: boolean; counted?: boolean } = {},
) {
  const receiver = await startReceiver(receives);
  const seen: TlsResult[] = [];
  const made = rig({
    port: receiver.port,
    zone,
    trusted: [authority.cert],
    deps: {
      mtaStsOf: () => Promise.resolve(mtaSts),
      isTlsReport: () => report,
      isCounted: () => counted,
      onTls: (result) => void seen.push(result),
    },
  });
  open.push(
    () => receiver.stop(),
    () => made.delivery.stop(),
  );
  const { kind } = await made.send("a@x.test");
  await made.send("b@x.test");
  return { seen, kind, receiver };
}

test("a session without a policy is reported once, however much mail it carries", async () => {
  const { seen } = await results({ tls: right });
  expect(seen).toEqual([
    {
      domain: "x.test",
      policy: { type: "no-policy-found", strings: [], domain: "x.test", mxHosts: [] },
      failure: null,
      reason: "",
    },
  ]);
});

test("a session under MTA-STS is reported with the policy", async () => {
  const { seen } = await results({ tls: right }, { mtaSts: policy("enforce", "mail.test") });
  expect(seen).toMatchObject([
    {
      policy: {
        type: "sts",
        strings: ["version: STSv1", "mode: enforce", "mx: mail.test", "max_age: 86400"],
        mxHosts: ["mail.test"],
      },
      failure: null,
    },
  ]);
});

test.each<[string, string, () => Promise<ReceiverOptions>, string]>([
  ["STARTTLS is not offered", "mail.test", async () => ({}), "starttls-not-supported"],
  [
    "the handshake fails",
    "mail.test",
    async () => ({ tls: right, breakHandshake: true }),
    "validation-failure",
  ],
  [
    "the name is another",
    "mail.test",
    async () => ({ tls: await authority.issue(["o.test"]) }),
    "certificate-host-mismatch",
  ],
  [
    "the certificate has expired",
    "mail.test",
    async () => ({ tls: await authority.issue(["mail.test"], { notAfter: new Date(Date.now() - 1000) }) }),
    "certificate-expired",
  ],
  [
    "the authority is unknown",
    "mail.test",
    async () => ({ tls: await (await createAuthority("stranger")).issue(["mail.test"]) }),
    "certificate-not-trusted",
  ],
  ["the policy names another host", "o.test", async () => ({ tls: right }), "validation-failure"],
])("in mode testing mail goes on and it is reported that %s", async (_what, mx, receives, type) => {
  const { seen, kind } = await results(await receives(), { mtaSts: policy("testing", mx) });
  expect(kind).toBe("delivered");
  expect(seen[0]).toMatchObject({
    policy: { type: "sts" },
    failure: { type, mxHost: "mail.test", receivingIp: "127.0.0.1", sendingIp: "127.0.0.1" },
    reason: expect.stringMatching(/./),
  });
});

test("a host that an enforced policy does not name is reported though it is not dialled", async () => {
  const { seen, receiver } = await results({ tls: right }, { mtaSts: policy("enforce", "o.test") });
  expect(seen[0]).toMatchObject({
    policy: { type: "sts" },
    failure: { type: "validation-failure", receivingIp: null },
  });
  expect(receiver.connections).toBe(0);
});

const secure = (entry: object): Zone => ({
  "x.test": { mx: ["10 mail.test"], secure: true },
  "mail.test": { a: ["127.0.0.1"], secure: true, ...entry },
});

test("DANE is reported with the records, and what was wrong with them", async () => {
  const record = tlsaOf(right.cert, 3);
  const matched = await results({ tls: right }, { zone: secure({ tlsa: [record] }) });
  expect(matched.seen).toMatchObject([
    {
      policy: { type: "tlsa", strings: [record], domain: "mail.test", mxHosts: ["mail.test"] },
      failure: null,
    },
  ]);
  const typeOf = async (entry: object) =>
    (await results({ tls: right }, { zone: secure(entry) })).seen[0]?.failure?.type;
  expect(await typeOf({ tlsa: [`3 1 1 ${"ab".repeat(32)}`] })).toBe("validation-failure");
  expect(await typeOf({ tlsa: ["0 1 1 ab"] })).toBe("tlsa-invalid");
  expect(await typeOf({ tlsaFails: true })).toBe("dnssec-invalid");
});

test("a TLS report is sent whatever the policies say, and nothing is reported about that", async () => {
  const mtaSts = policy("enforce", "o.test");
  const { seen, kind } = await results({}, { mtaSts, report: true, counted: false });
  expect([kind, seen]).toEqual(["delivered", []]);
});

test("mail that is not counted keeps to the policies, and nothing is reported about it", async () => {
  const mtaSts = policy("enforce", "o.test");
  const { seen, kind } = await results({ tls: right }, { mtaSts, counted: false });
  expect([kind, seen]).toEqual(["deferred", []]);
});
