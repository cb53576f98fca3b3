// What of a mail by SMTP is refused, and what then stays of it.
import { describe, expect, test } from "vitest";
import { MailSyntaxError } from "../../src/mail/header.ts";
import { MailTooLarge, maxMessageBytes } from "../../src/mail/intake.ts";
import { StoreUnavailable } from "../../src/store/store.ts";
import {
  address,
  liveSender,
  makeDomain,
  makeRig,
  makeSuppression,
  refusalOf,
  rowsOf,
  smtp,
  type Rig,
} from "./rig.ts";

/** A mail of these header lines. */
const mail = (lines: string[], body = "Hi\r\n"): string =>
  `${lines.map((line) => `${line}\r\n`).join("")}\r\n${body}`;
const from = "From: Shop <shop@ok.test>";

/** A mail of parts within parts. */
const nested = (levels: number): string =>
  mail(
    [from, "Content-Type: multipart/mixed; boundary=b0"],
    Array.from(
      { length: levels },
      (_, i) => `--b${i}\r\nContent-Type: multipart/mixed; boundary=b${i + 1}\r\n\r\n`,
    ).join(""),
  );

/** What ends a relay; fails where it is accepted or where anything was kept. */
async function errorOf(rig: Rig, text: string | Buffer): Promise<unknown> {
  const error: unknown = await rig.relay(text).then(
    () => {
      throw new Error("it was accepted");
    },
    (reason: unknown) => reason,
  );
  expect(rig.store.asked).toEqual([]);
  expect(rig.store.spool.size).toBe(rig.store.dropped.length);
  return error;
}

describe("a mail without one clear author is refused as no mail", () => {
  const cases: [string, string[], MailSyntaxError["code"]][] = [
    ["no From", ["Subject: x"], "from_missing"],
    ["an empty From", ["From:", "Subject: x"], "from_invalid"],
    ["a From that is no address", ["From: undisclosed-recipients:;"], "from_invalid"],
    ["two From fields", [from, "From: shop@ok.test"], "field_repeated"],
    [
      "two From fields, one with a space before its colon",
      [from, "From : evil@other.test"],
      "field_repeated",
    ],
    ["a line that is no field", [from, "no colon here"], "bad_header"],
  ];
  for (const [name, lines, code] of cases) {
    test(name, async () => {
      const error = await errorOf(makeRig(), mail(lines));
      expect(error).toBeInstanceOf(MailSyntaxError);
      expect(error).toMatchObject({ code });
    });
  }
});

describe("an author whose domain is not verified", () => {
  test("is refused before the body is read", async () => {
    const rig = makeRig();
    let read = 0;
    const data = (async function* () {
      yield Buffer.from(mail(["From: a@other.test"], "first\r\n"));
      for (let i = 0; i < 1000; i++) {
        read += 1;
        yield Buffer.from("more\r\n");
      }
    })();
    const envelope = { mailFrom: "", rcptTo: [address("a@x.test")], smtpUtf8: false };
    const refusal = await refusalOf(rig.submission.relay(liveSender, envelope, data, smtp));
    expect(refusal.code).toBe("sender_not_verified");
    expect(refusal.message).toContain("svc domains add other.test");
    expect(read).toBe(0);
    expect(rig.store.spool.size).toBe(0);
  });

  test("spoils the mail for the others; verified, they all may write", async () => {
    const rig = makeRig();
    const refusal = await refusalOf(rig.relay(mail(["From: a@ok.test, b@first.test, c@second.test"])));
    expect(rowsOf(refusal)).toEqual(["from sender_not_verified", "from sender_not_verified"]);
    expect(refusal.extras).toMatchObject({ domain: "first.test" });
    expect(refusal.message).toContain("svc domains add first.test");

    rig.domains.set("first.test", makeDomain("first.test"));
    rig.domains.set("second.test", makeDomain("second.test"));
    await rig.relay(mail(["From: B <b@first.test>, a@ok.test", "Sender: a@ok.test"]));
    expect(rig.store.last().message).toMatchObject({
      from: "b@first.test",
      fromName: "B",
      signingDomain: "first.test",
    });
  });
});

describe("an attachment with an executable name", () => {
  const part = (fields: string): string =>
    mail([from, "Content-Type: multipart/mixed; boundary=b"], `--b\r\n${fields}\r\n\r\nx\r\n--b--\r\n`);
  const refused: [string, string][] = [
    ["in Content-Disposition", part('Content-Disposition: attachment; filename="invoice.pdf.EXE"')],
    ["in Content-Type", part("Content-Type: application/octet-stream; name=a.js")],
    ["by RFC 2231", part("Content-Disposition: attachment; filename*=utf-8''a%2Ee%78e")],
    ["in pieces", part('Content-Disposition: attachment; filename*0="invoice.pdf.e"; filename*1=xe')],
    [
      "in the second spelling",
      part("Content-Disposition: attachment; filename=a.pdf; filename*=utf-8''a.exe"),
    ],
    ["by RFC 2047", part('Content-Disposition: attachment; filename="=?utf-8?B?YS5leGU=?="')],
    ["in raw UTF-8", part("Content-Disposition: attachment; filename=größe.exe")],
    ["after a comment and a folding", part('Content-Disposition: attachment (a;b);\r\n\tfilename="a.exe"')],
    [
      "in an attached message",
      part(`Content-Type: message/rfc822\r\n\r\n${part("Content-Type: a/b; name=a.exe")}`),
    ],
    ["of the mail itself", mail([from, "Content-Type: application/x; name=a.scr"])],
  ];
  for (const [name, text] of refused) {
    test(`${name} is refused`, async () => {
      for (const chunkSize of [1, 1_000_000]) {
        const rig = makeRig();
        const refusal = await refusalOf(rig.relay(text, { chunkSize }));
        expect(refusal.code).toBe("invalid_attachment");
        expect(rig.store.asked).toEqual([]);
      }
    });
  }

  test("does not stop names and texts that only look like one", async () => {
    const rig = makeRig();
    await rig.relay(part('Content-Type: application/pdf; name="report.exe.pdf"'));
    await rig.relay(part("Content-Type: text/plain\r\n\r\nContent-Type: a/b; name=a.exe"));
    await rig.relay(mail([from], '--b\r\nContent-Disposition: attachment; filename="a.exe"\r\n'));
    expect(rig.store.accepted).toHaveLength(3);
  });
});

describe("bytes that are not mail are refused by the intake, and nothing is kept", () => {
  const head = mail([from], "");
  const cases: [string, string | Buffer, string][] = [
    ["a bare LF", `${head}a\nb\r\n`, "bare_line_end"],
    ["a bare CR", `${head}a\rb\r\n`, "bare_line_end"],
    ["a bare LF in the header", `Subject: x\nX: y\r\n${head}`, "bare_line_end"],
    ["NUL", `${head}a\0b\r\n`, "nul"],
    [
      "a header line of 999 octets without white space",
      mail([from, `X:${"x".repeat(997)}`]),
      "line_too_long",
    ],
    ["parts that are nested 101 deep", nested(101), "too_deep"],
    [
      "a long line in a signed part",
      mail(
        [from, "Content-Type: multipart/signed; boundary=s"],
        `--s\r\n\r\n${"x".repeat(999)}\r\n--s--\r\n`,
      ),
      "not_convertible",
    ],
    [
      "a header section of more than 100 KB",
      mail([from, ...Array.from({ length: 1100 }, () => `X: ${"x".repeat(95)}`)]),
      "header_too_large",
    ],
    ["more than 2,000 header fields", mail([from, ...Array<string>(2_000).fill("X: y")]), "header_too_large"],
    [
      "a part with more than 2,000 header fields",
      mail(
        [from, "Content-Type: multipart/mixed; boundary=b"],
        `--b\r\n${"X:\r\n".repeat(2_001)}\r\n--b--\r\n`,
      ),
      "header_too_large",
    ],
  ];
  for (const [name, text, code] of cases) {
    test(name, async () => {
      expect(await errorOf(makeRig(), text)).toMatchObject({ name: "MailSyntaxError", code });
    });
  }

  test("more than 26,214,400 bytes", async () => {
    const line = `${"x".repeat(998)}\r\n`;
    const body = line.repeat(Math.ceil(maxMessageBytes / 1000));
    expect(await errorOf(makeRig(), mail([from], body))).toBeInstanceOf(MailTooLarge);
  });
});

test("the error of the connection passes through, and nothing is kept", async () => {
  const rig = makeRig();
  const gone = new Error("the client went away");
  const data = (async function* () {
    yield Buffer.from(mail([from]));
    throw gone;
  })();
  const envelope = { mailFrom: "", rcptTo: [address("a@x.test")], smtpUtf8: false };
  await expect(rig.submission.relay(liveSender, envelope, data, smtp)).rejects.toBe(gone);
  expect(rig.store.asked).toEqual([]);
});

test("the content of a mail that is refused at the end is let go", async () => {
  const rig = makeRig();
  rig.runner.slots = 1;
  rig.store.answer = { kind: "suppressed", entries: [makeSuppression("a@x.test")] };
  expect((await refusalOf(rig.relay(mail([from])))).code).toBe("recipient_suppressed");
  rig.store.answer = { kind: "queue_full" };
  expect((await refusalOf(rig.relay(mail([from])))).code).toBe("service_overloaded");
  rig.store.isFull = true;
  expect((await refusalOf(rig.relay(mail([from])))).code).toBe("service_overloaded");
  expect(rig.store.dropped.map((content) => content.kind === "spool" && content.name)).toEqual([
    "spool-0",
    "spool-1",
    "spool-2",
  ]);
  expect(rig.runner.held.size).toBe(0);
});

test("after a write that failed the content stays: what is on disk is unknown", async () => {
  const rig = makeRig();
  rig.store.answer = new StoreUnavailable("failed", "disk I/O error");
  await expect(rig.relay(mail([from]))).rejects.toBe(rig.store.answer);
  expect(rig.store.dropped).toEqual([]);
});
