// Who counts as a known feedback loop: a signature that verifies, or a reverse name that leads back; and who does not.
import { expect, test } from "vitest";
import { createLoops } from "../../src/feedback/loops.ts";
import { BodyHasher, createSigner, dkimRecordValue, generateDkimKey } from "../../src/mail/dkim.ts";
import { signatureClaims } from "../../src/mail/dkim-verify.ts";
import { feedbackLoopDomains } from "../../src/mail/feedback-loops.ts";
import { ManualClock } from "../support/clock.ts";
import { tableResolver, type Zone } from "./rig.ts";

const clock = new ManualClock();
const { privatePem, publicKey } = await generateDkimKey("rsa-sha256");
const record = dkimRecordValue("rsa-sha256", publicKey);

function signed(domain: string, from: string): Buffer {
  const header = `From: Loop <${from}>\r\nTo: fbl@mail.test\r\nSubject: complaint\r\n`;
  const body = "A report.\r\n";
  const hasher = new BodyHasher();
  hasher.update(Buffer.from(body));
  const signature = createSigner()({
    headerSection: Buffer.from(header),
    bodyHash: hasher.digest(),
    keys: [{ domain, selector: "s1", algorithm: "rsa-sha256", privatePem }],
    signedAt: clock.now(),
  });
  return Buffer.concat([signature, Buffer.from(`${header}\r\n${body}`)]);
}
interface Wishes {
  loops?: readonly string[];
  zone?: [string, string[] | "failed"][];
  mail?: Buffer;
  from?: string;
  peer?: string;
}
async function standing(wishes: Wishes) {
  const asked: string[] = [];
  const zone: Zone = new Map(wishes.zone ?? []);
  const loops = createLoops({
    domains: wishes.loops ?? feedbackLoopDomains,
    resolver: tableResolver(zone, asked),
    clock,
  });
  const signatures = wishes.mail ? signatureClaims(wishes.mail) : [];
  const from = wishes.from ?? "feedback@arf.mail.yahoo.com";
  return { standing: await loops.standingOf({ from, signatures }, wishes.peer ?? "203.0.113.9"), asked };
}

test("a signature of a listed domain that verifies is the loop's", async () => {
  const from = "feedback@arf.mail.yahoo.com";
  const zone: Wishes["zone"] = [["txt s1._domainkey.arf.mail.yahoo.com", [record]]];
  const result = await standing({ mail: signed("arf.mail.yahoo.com", from), zone });
  expect(result).toEqual({ standing: "known", asked: ["txt s1._domainkey.arf.mail.yahoo.com"] });
});

test("a forged signature is not: another key, no key, a revoked one, a changed mail", async () => {
  const { publicKey: otherKey } = await generateDkimKey("rsa-sha256");
  const mail = signed("yahoo.com", "feedback@yahoo.com");
  for (const zone of [
    [["txt s1._domainkey.yahoo.com", [dkimRecordValue("rsa-sha256", otherKey)]]],
    [["txt s1._domainkey.yahoo.com", ["v=DKIM1; p="]]],
    [],
  ] satisfies Wishes["zone"][])
    expect((await standing({ mail, zone, from: "feedback@yahoo.com" })).standing).toBe("unknown");
  const changed = Buffer.from(mail.toString("latin1").replace("A report.", "A repork."), "latin1");
  const zone: Wishes["zone"] = [["txt s1._domainkey.yahoo.com", [record]]];
  expect((await standing({ mail: changed, zone, from: "feedback@yahoo.com" })).standing).toBe("unknown");
});

test("a domain that is not listed is not even looked up, nor one that only ends like a listed one", async () => {
  for (const domain of ["evil.test", "notyahoo.com", "yahoo.com.evil.test"]) {
    const zone: Wishes["zone"] = [[`txt s1._domainkey.${domain}`, [record]]];
    const { standing: found, asked } = await standing({ mail: signed(domain, `fbl@${domain}`), zone });
    expect([found, asked]).toEqual(["unknown", ["ptr 203.0.113.9"]]);
  }
});

test.each(["eve@yahoo.com", "fbl.eve@outlook.com", "feedback@yahoo.com.evil.test", "abuse@evil.test", ""])(
  "a customer of a listed provider is not its loop: From %j",
  async (from) => {
    const zone: Wishes["zone"] = [
      ["txt s1._domainkey.yahoo.com", [record]],
      ["ptr 203.0.113.9", ["sonic.mail.yahoo.com."]],
      ["a sonic.mail.yahoo.com", ["203.0.113.9"]],
    ];
    expect((await standing({ mail: signed("yahoo.com", from), zone, from })).standing).toBe("unknown");
  },
);

test.each([
  "staff@hotmail.com",
  "feedback@arf.mail.yahoo.com",
  "fbl@corp.mail.ru",
  "feedbackloop@x.senderscore.net",
])("the reporters that are known pass: From %s", async (from) => {
  const zone: Wishes["zone"] = [
    ["ptr 203.0.113.9", ["mail-x.outbound.protection.outlook.com."]],
    ["a mail-x.outbound.protection.outlook.com", ["203.0.113.9"]],
  ];
  expect((await standing({ zone, from })).standing).toBe("known");
});

test("a reverse name counts only if it leads back to the address", async () => {
  const loops = ["loop.test"];
  const named: [string, string[]] = ["ptr 203.0.113.9", ["other.test.", "MX.loop.test."]];
  expect((await standing({ loops, zone: [named, ["a mx.loop.test", ["203.0.113.9"]]] })).standing).toBe(
    "known",
  );
  expect((await standing({ loops, zone: [named, ["a mx.loop.test", ["203.0.113.8"]]] })).standing).toBe(
    "unknown",
  );
  expect((await standing({ loops, zone: [named] })).standing).toBe("unknown");
});

test("IPv6, and an IPv4 peer on a dual-stack socket", async () => {
  const loops = ["loop.test"];
  const six: Wishes["zone"] = [
    ["ptr 2001:db8::7", ["mx.loop.test"]],
    ["aaaa mx.loop.test", ["2001:db8:0::7"]],
  ];
  expect((await standing({ loops, zone: six, peer: "2001:db8::7" })).standing).toBe("known");
  const four: Wishes["zone"] = [
    ["ptr 203.0.113.9", ["mx.loop.test"]],
    ["a mx.loop.test", ["203.0.113.9"]],
  ];
  expect((await standing({ loops, zone: four, peer: "::ffff:203.0.113.9" })).standing).toBe("known");
});

test("a hundred reverse names cost two look-ups at most", async () => {
  const names = Array.from({ length: 100 }, (_, n) => `n${n}.loop.test`);
  const { asked } = await standing({ loops: ["loop.test"], zone: [["ptr 203.0.113.9", names]] });
  expect(asked).toHaveLength(3);
});

test("the peer's silent name server makes it unknown, a listed domain's silent one undecided", async () => {
  expect((await standing({ zone: [["ptr 203.0.113.9", "failed"]] })).standing).toBe("unknown");
  const mail = signed("yahoo.com", "feedback@yahoo.com");
  const zone: Wishes["zone"] = [["txt s1._domainkey.yahoo.com", "failed"]];
  expect((await standing({ mail, zone, from: "feedback@yahoo.com" })).standing).toBe("undecided");
});

test("a name server that never answers is waited for ten seconds", async () => {
  const never = () => new Promise<never>(() => undefined);
  const loops = createLoops({
    domains: ["loop.test"],
    resolver: { txt: never, ptr: never, a: never, aaaa: never },
    clock,
  });
  const standingOf = loops.standingOf({ from: "", signatures: [] }, "203.0.113.9");
  await clock.advance(10_000);
  expect(await standingOf).toBe("unknown");
});
