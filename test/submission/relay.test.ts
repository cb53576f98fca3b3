// What SMTP's door makes of a mail: whose it is, what is rewritten, what it asks for, what is kept of it.
import { dkimVerify } from "mailauth";
import { describe, expect, test } from "vitest";
import { createSigner, dkimRecordValue, generateDkimKey } from "../../src/mail/dkim.ts";
import { MailSyntaxError, parseHeaderSection } from "../../src/mail/header.ts";
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
  startMs,
  testSender,
  type Rig,
} from "./rig.ts";

/** A mail of these header lines. */
const mail = (lines: string[], body = "Hi\r\n"): string =>
  `${lines.map((line) => `${line}\r\n`).join("")}\r\n${body}`;
const from = "From: Shop <shop@ok.test>";

/** What ends a relay; fails where it is accepted or where anything was kept. */
async function errorOf(rig: Rig, text: string | Buffer): Promise<unknown> {
  const error: unknown = await rig.relay(text).then(
    () => {
      throw new Error("it was accepted");
    },
    (reason: unknown) => reason,
  );
  expect(rig.store.asked).toEqual([]);
  expect(rig.store.spool.size).toBe(0);
  return error;
}

describe("an accepted mail", () => {
  test("is kept under its id with all that sending and events need", async () => {
    const rig = makeRig();
    const id = await rig.relay(
      mail([
        from,
        "Subject: =?UTF-8?Q?Gr=C3=BC=C3=9Fe?=",
        "Message-ID: <1@ok.test>",
        "Date: Fri, 27 Nov 2026 09:00:00 +0000",
      ]),
      { rcptTo: ["a@x.test", "B@BÜCHER.test"] },
    );
    expect(rig.store.last()).toMatchObject({
      createdAt: startMs,
      sendAt: null,
      idempotency: null,
      message: {
        id,
        accountKey: 1,
        test: false,
        from: "shop@ok.test",
        fromName: "Shop",
        signingDomain: "ok.test",
        returnPathDomain: "bounce.ok.test",
        subject: "Grüße",
        tagsJson: "[]",
        metadataJson: "{}",
        messageIdHeader: "<1@ok.test>",
        ipPool: "default",
        eightBit: false,
        smtpUtf8: false,
        queuedAt: startMs,
        source: "smtp",
      },
      recipients: [
        { type: "to", to: "a@x.test", lane: "default/x.test" },
        { type: "to", to: "B@BÜCHER.test", canonical: "b@xn--bcher-kva.test" },
      ],
    });
  });

  test("has our Received on top, keeps its own bytes, and loses Bcc and our options", async () => {
    const rig = makeRig();
    const own = ["From:shop@ok.test", "To: a@x.test,", "\tb@x.test", "Subject:  two  spaces", "X-Own: 1"];
    const id = await rig.relay(
      mail(
        [
          ...own.slice(0, 3),
          "Bcc: secret@x.test,",
          " other@x.test",
          "X-Svc-Tags: a",
          "X-SVC-tags: b",
          ...own.slice(3),
        ],
        "..dots\r\nlast",
      ),
      { chunkSize: 7 },
    );
    const text = rig.store.bytes().toString();
    expect(text).toMatch(
      new RegExp(
        `^Received: from client\\.test \\(\\[192\\.0\\.2\\.9\\]\\)\\s+by mail\\.svc\\.test with ESMTPSA\\s+id ${id};`,
      ),
    );
    expect(text).toContain(own.join("\r\n"));
    expect(text).not.toMatch(/bcc|secret|other@x|x-svc/i);
    expect(text).toContain(
      `Message-ID: <${id.slice(4)}@mail.svc.test>\r\nDate: Fri, 27 Nov 2026 09:00:00 +0000\r\n\r\n..dots\r\nlast\r\n`,
    );
    expect(rig.store.last().message.messageIdHeader).toBe(`<${id.slice(4)}@mail.svc.test>`);
  });

  test("has 8-bit octets told where they are", async () => {
    const rig = makeRig();
    await rig.relay(mail([from], "Grüße\r\n"));
    expect(rig.store.last().message).toMatchObject({ eightBit: true, smtpUtf8: false });
    await rig.relay(mail([from, "Subject: Grüße"]));
    expect(rig.store.last().message).toMatchObject({ eightBit: true, smtpUtf8: true, subject: "Grüße" });
  });

  test("can be signed from its stored header and body hash, whatever the chunks were", async () => {
    const key = await generateDkimKey("ed25519-sha256");
    const sign = createSigner();
    for (const chunkSize of [1, 13, 100_000]) {
      const rig = makeRig();
      await rig.relay(
        mail(
          [from, "To: a@x.test", "Subject: s", "Bcc: x@x.test"],
          `a  b \r\n${"line\r\n".repeat(50)}\r\n\r\n`,
        ),
        { chunkSize },
      );
      const { headerLength, bodyHash } = rig.store.last().message;
      const bytes = rig.store.bytes();
      const signature = await sign({
        headerSection: bytes.subarray(0, headerLength),
        bodyHash,
        keys: [
          { domain: "ok.test", selector: "s1", algorithm: "ed25519-sha256", privatePem: key.privatePem },
        ],
        signedAt: startMs,
      });
      const { results } = await dkimVerify(Buffer.concat([signature, bytes]), {
        resolver: async () => [[dkimRecordValue("ed25519-sha256", key.publicKey)]],
      });
      expect(results.map(({ status }) => status.result)).toEqual(["pass"]);
    }
  });

  test("shows only the beginning of a text that fills its header", async () => {
    const rig = makeRig();
    const long = Array.from({ length: 900 }, () => " a long subject").join("\r\n");
    await rig.relay(mail([from, `Subject:${long}`]));
    expect(rig.store.last().message.subject.length).toBe(998);
  });

  test("of a test login stays in the sandbox", async () => {
    const rig = makeRig();
    await rig.relay(mail([from]), { sender: testSender });
    expect(rig.store.last()).toMatchObject({ message: { test: true }, recipients: [{ lane: "~sandbox" }] });
  });

  test("starts at once where its lane has a slot", async () => {
    const rig = makeRig();
    rig.runner.slots = 1;
    await rig.relay(mail([from]), { rcptTo: ["a@x.test", "b@x.test"] });
    expect(rig.runner.ran.map(({ rcptTo }) => rcptTo)).toEqual(["a@x.test"]);
    expect(rig.runner.noted).toEqual([{ lane: "default/x.test", dueAt: startMs }]);
    expect(rig.runner.held.size).toBe(0);
  });
});

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

describe("X-Svc- options", () => {
  const send_at = "2026-11-27T10:00:00Z";

  test("set tags, metadata and the time", async () => {
    const rig = makeRig();
    rig.runner.slots = 1;
    await rig.relay(
      mail([
        from,
        "X-Svc-Tags: a, b,,a , c d",
        'X-Svc-Metadata: {"order": "1",',
        ' "name": "=?UTF-8?Q?Gr=C3=BCn?="}',
        `X-Svc-Send-At: ${send_at}`,
      ]),
    );
    expect(rig.store.last()).toMatchObject({
      sendAt: Date.parse(send_at),
      message: {
        tagsJson: '["a","b","c d"]',
        metadataJson: '{"order":"1","name":"Grün"}',
        queuedAt: Date.parse(send_at),
      },
    });
    expect(rig.runner.reserved).toEqual([]);
    expect(rig.runner.noted).toEqual([{ lane: "default/x.test", dueAt: Date.parse(send_at) }]);
  });

  test("that are not built yet are refused, not dropped", async () => {
    for (const name of ["Ip-Pool", "Track-Opens", "Track-Clicks", "Unsubscribe", "Idempotency-Key", "Tag"]) {
      const refusal = await refusalOf(makeRig().relay(mail([from, `X-Svc-${name}: x`])));
      expect(rowsOf(refusal)).toEqual([`x-svc-${name.toLowerCase()} validation_failed`]);
      expect(refusal.message).toContain("not available yet");
    }
  });

  test("keep the limits of their fields, and say all that is wrong", async () => {
    const cases: [string, string][] = [
      [`X-Svc-Tags: ${Array.from({ length: 11 }, (_, i) => i).join(",")}`, "x-svc-tags validation_failed"],
      [`X-Svc-Tags: ${"x".repeat(129)}`, "x-svc-tags validation_failed"],
      ["X-Svc-Metadata: none", "x-svc-metadata validation_failed"],
      ['X-Svc-Metadata: ["a"]', "x-svc-metadata validation_failed"],
      ['X-Svc-Metadata: {"a": 1}', "x-svc-metadata validation_failed"],
      ['X-Svc-Metadata: {"__proto__": "x"}', "x-svc-metadata validation_failed"],
      ["X-Svc-Metadata: null", "x-svc-metadata validation_failed"],
      ["X-Svc-Send-At: tomorrow", "x-svc-send-at validation_failed"],
      ["X-Svc-Send-At: 2027-11-27T10:00:00Z", "x-svc-send-at scheduling_window_exceeded"],
    ];
    for (const [line, row] of cases)
      expect(rowsOf(await refusalOf(makeRig().relay(mail([from, line]))))).toEqual([row]);
    const refusal = await refusalOf(
      makeRig().relay(mail([from, "X-Svc-Metadata: 1", "X-Svc-Tag: a", "X-Svc-Send-At: x"])),
    );
    expect(rowsOf(refusal)).toHaveLength(3);
  });
});

describe("bytes that are no mail are refused by the intake, and nothing is kept", () => {
  const head = mail([from], "");
  const cases: [string, string | Buffer, string][] = [
    ["a bare LF", `${head}a\nb\r\n`, "bare_line_end"],
    ["a bare CR", `${head}a\rb\r\n`, "bare_line_end"],
    ["a bare LF in the header", `Subject: x\nX: y\r\n${head}`, "bare_line_end"],
    ["NUL", `${head}a\0b\r\n`, "nul"],
    ["a line of 999 octets", `${head}${"x".repeat(999)}\r\n`, "line_too_long"],
    [
      "a header section of more than 100 KB",
      mail([from, ...Array.from({ length: 1100 }, () => `X: ${"x".repeat(95)}`)]),
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

test("after a write that failed the content stays: nobody knows what is on disk", async () => {
  const rig = makeRig();
  rig.store.answer = new StoreUnavailable("failed", "disk I/O error");
  await expect(rig.relay(mail([from]))).rejects.toBe(rig.store.answer);
  expect(rig.store.dropped).toEqual([]);
});

test("the stored header ends where it is said to", async () => {
  const rig = makeRig();
  await rig.relay(mail([from]));
  const { headerLength } = rig.store.last().message;
  const names = parseHeaderSection(rig.store.bytes().subarray(0, headerLength)).map(({ lower }) => lower);
  expect(names).toEqual(["received", "from", "message-id", "date"]);
  expect(
    rig.store
      .bytes()
      .subarray(headerLength - 4)
      .toString(),
  ).toBe("\r\n\r\nHi\r\n");
});
