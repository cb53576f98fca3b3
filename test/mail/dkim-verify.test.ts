import { expect, test } from "vitest";
import { dkimSign } from "mailauth/lib/dkim/sign.js";
import { BodyHasher, createSigner, dkimRecordValue, generateDkimKey } from "../../src/mail/dkim.ts";
import { signatureClaims, signatureHolds } from "../../src/mail/dkim-verify.ts";

const rsa = await generateDkimKey("rsa-sha256");
const ed = await generateDkimKey("ed25519-sha256");
const key = { signingDomain: "loop.test", selector: "r1", privateKey: rsa.privatePem };
const records = {
  "rsa-sha256": dkimRecordValue("rsa-sha256", rsa.publicKey),
  "ed25519-sha256": dkimRecordValue("ed25519-sha256", ed.publicKey),
};
const header =
  "Received: by mx.loop.test; Fri, 27 Nov 2026 09:15:22 +0000\r\nFrom: Loop  <fbl@loop.test>\r\n" +
  "To: fbl@mail.test,\r\n\tother@mail.test\r\nSubject:  a \t complaint \r\nDate: Fri, 27 Nov 2026 09:15:22 +0000\r\n";
const body = "A report\t here, \r\n\r\n  grüße  \r\n\r\n\r\n";

function signOwn(head = header, text = body): string {
  const hasher = new BodyHasher();
  hasher.update(Buffer.from(text));
  const signature = createSigner()({
    headerSection: Buffer.from(head),
    bodyHash: hasher.digest(),
    keys: [
      { domain: "loop.test", selector: "r1", algorithm: "rsa-sha256", privatePem: rsa.privatePem },
      { domain: "loop.test", selector: "e1", algorithm: "ed25519-sha256", privatePem: ed.privatePem },
    ],
    signedAt: Date.UTC(2026, 10, 27),
  });
  return `${signature.toString("latin1")}${head}\r\n${text}`;
}
async function holding(mail: string): Promise<string[]> {
  const claims = signatureClaims(Buffer.from(mail));
  const held = await Promise.all(
    claims.map(async (claim) =>
      (await signatureHolds(claim, records[claim.algorithm])) ? claim.algorithm : "",
    ),
  );
  return held.filter((one) => one !== "");
}
const both = ["rsa-sha256", "ed25519-sha256"];

test("signatures of both kinds verify", async () => {
  expect(await holding(signOwn())).toEqual(both);
  const [claim] = signatureClaims(Buffer.from(signOwn()));
  expect(claim).toMatchObject({ domain: "loop.test", selector: "r1" });
});

test.each(["simple/simple", "simple/relaxed", "relaxed/simple", "relaxed/relaxed"])(
  "another program's signature holds in the form %s",
  async (canonicalization) => {
    for (const text of [body, "x\r\n", ""]) {
      const mail = `${header}\r\n${text}`;
      const made = await dkimSign(Buffer.from(mail), {
        canonicalization,
        ...key,
        signatureData: [key],
      });
      expect(await holding(`${made.signatures}${mail}`)).toEqual(["rsa-sha256"]);
    }
  },
);

test("what was changed on the way does not verify: body, subject, a second From, a field that was oversigned", async () => {
  const mail = signOwn();
  expect(await holding(mail.replace("A report", "B report"))).toEqual([]);
  expect(await holding(mail.replace("complaint", "compliment"))).toEqual([]);
  expect(await holding(`From: eve@x.test\r\n${mail}`)).toEqual([]);
  expect(await holding(mail.replace("\r\nDate: ", "\r\nSubject: another\r\nDate: "))).toEqual([]);
  expect(await holding(mail.replace("\r\nReceived:", "\r\nX-Other: 1\r\nReceived:"))).toEqual(both);
});

test("signatures of parts of the body, of no From, of other versions and by SHA-1 make no claim", () => {
  const mail = signOwn();
  const made = (change: (text: string) => string): number =>
    signatureClaims(Buffer.from(change(mail))).length;
  expect(made((text) => text)).toBe(2);
  expect(made((text) => text.replaceAll("c=relaxed/relaxed;", "c=relaxed/relaxed; l=5;"))).toBe(0);
  expect(made((text) => text.replaceAll("v=1;", "v=2;"))).toBe(0);
  expect(made((text) => text.replaceAll(/\ba=[\w-]+/g, "a=rsa-sha1"))).toBe(0);
  expect(made((text) => text.replaceAll(/\bFrom:(?=\w)/g, "Foo:"))).toBe(0);
  expect(made((text) => text.replaceAll("d=loop.test", "d=loop.test\u0000x"))).toBe(0);
});

test("a mail without a header, with a broken one or with a hundred signatures is looked at in bounds", () => {
  expect(signatureClaims(Buffer.alloc(0))).toEqual([]);
  expect(signatureClaims(Buffer.from("no header\r\n\r\nx"))).toEqual([]);
  const [first = ""] = signOwn().split(/\r\n(?=DKIM)/);
  const mail = `${`${first}\r\n`.repeat(100)}${header}\r\n${body}`;
  expect(signatureClaims(Buffer.from(mail))).toHaveLength(5);
});

test.each(["", "p=", "v=DKIM1; k=ed25519; p=AAAA", "v=DKIM1; p=!!!", "v=DKIM2; p=AAAA", "x".repeat(100_000)])(
  "no key, no signature: %j",
  async (record) => {
    const [claim] = signatureClaims(Buffer.from(signOwn()));
    if (!claim) throw new Error("no claim");
    expect(await signatureHolds(claim, record)).toBe(false);
  },
);
