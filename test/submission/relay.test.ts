// What SMTP submission makes of a mail: whose it is, what is rewritten, what it asks for, what is kept of it.
import { dkimVerify } from "mailauth";
import { describe, expect, test } from "vitest";
import { BodyHasher, createSigner, dkimRecordValue, generateDkimKey } from "../../src/mail/dkim.ts";
import { parseHeaderSection } from "../../src/mail/header.ts";
import { makeDomain, makeRig, refusalOf, rowsOf, startMs, testSender, tokens } from "./rig.ts";

/** A mail of these header lines. */
const mail = (lines: string[], body = "Hi\r\n"): string =>
  `${lines.map((line) => `${line}\r\n`).join("")}\r\n${body}`;
const from = "From: Shop <shop@ok.test>";

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
        { type: "to", to: "a@x.test", queueName: "1.default/x.test" },
        { type: "to", to: "B@BÜCHER.test", canonical: "b@xn--bcher-kva.test" },
      ],
    });
  });

  test.each([
    ["bot@ok.test", true],
    ["Bot <bot@news.ok.test>", true],
    ["shop@OK.test (same)", true],
    ["ceo@bank.test", false],
    ["bot@pending.test", false],
    ["root", false],
    ["bot@ok.test, ceo@bank.test", false],
  ])("keeps Sender: %s only where its domain is the account's and verified: %s", async (sender, stays) => {
    const rig = makeRig();
    rig.domains.set("pending.test", makeDomain("pending.test", { status: "pending" }));
    await rig.relay(mail([`Sender: ${sender}`, from, "Subject: x"]));
    const text = rig.store.bytes().toString();
    expect(text.includes(`\r\nSender: ${sender}\r\n`)).toBe(stays);
    expect(/^sender/im.test(text)).toBe(stays);
    expect(text).toContain(`${from}\r\nSubject: x\r\n`);
    expect(rig.store.last().message.headerLength).toBe(text.indexOf("\r\n\r\n") + 4);
  });

  test("loses results of authentication that claim to be this server's, and keeps others", async () => {
    const rig = makeRig();
    const other = "Authentication-Results: mx.other.test; spf=pass";
    await rig.relay(mail(["Authentication-Results: Mail.SVC.test; dmarc=pass", other, from]));
    const text = rig.store.bytes().toString();
    expect(text).not.toContain("dmarc=pass");
    expect(text).toContain(`${other}\r\n`);
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
          "X-SVC-metadata: {}",
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
    expect(text).toContain(`\r\nX-Feedback-Token: ${tokens.of(id)}\r\n`);
    expect(text).not.toMatch(/^bcc|secret|other@x|x-svc/im);
    expect(text).toContain(
      `Message-ID: <${tokens.of(id)}@mail.svc.test>\r\nDate: Fri, 27 Nov 2026 09:00:00 +0000\r\n\r\n..dots\r\nlast\r\n`,
    );
    expect(rig.store.last().message.messageIdHeader).toBe(`<${tokens.of(id)}@mail.svc.test>`);
  });

  test("has 8-bit octets told where they are", async () => {
    const rig = makeRig();
    await rig.relay(mail([from], "Grüße\r\n"));
    expect(rig.store.last().message).toMatchObject({ eightBit: true, smtpUtf8: false });
    await rig.relay(mail([from, "Subject: Grüße"]));
    expect(rig.store.last().message).toMatchObject({ eightBit: true, smtpUtf8: true, subject: "Grüße" });
    await rig.relay(mail([from, "X-Svc-Tags: grün", "Bcc: Jürgen <j@x.test>"], "Grüße\r\n"));
    expect(rig.store.last().message).toMatchObject({ eightBit: true, smtpUtf8: false });
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
      const signature = sign({
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
    expect(rig.store.last()).toMatchObject({
      message: { test: true },
      recipients: [{ queueName: "~sandbox" }],
    });
  });

  test("starts at once where its scheduled queue has a slot", async () => {
    const rig = makeRig();
    rig.runner.slots = 1;
    await rig.relay(mail([from]), { rcptTo: ["a@x.test", "b@x.test"] });
    expect(rig.runner.ran.map(({ rcptTo }) => rcptTo)).toEqual(["a@x.test"]);
    expect(rig.runner.noted).toEqual([{ queueName: "1.default/x.test", dueAt: startMs }]);
    expect(rig.runner.held.size).toBe(0);
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
    expect(rig.runner.noted).toEqual([{ queueName: "1.default/x.test", dueAt: Date.parse(send_at) }]);
  });

  const refusalOfLine = (line: string) => refusalOf(makeRig().relay(mail([from, line])));

  test("that are not known are refused, not dropped", async () => {
    expect(rowsOf(await refusalOfLine("X-Svc-Tag: a"))).toEqual(["X-Svc-Tag validation_failed"]);
    expect(rowsOf(await refusalOfLine("X-Svc-Track-Opens: yes"))).toEqual([
      "X-Svc-Track-Opens validation_failed",
    ]);
    expect(rowsOf(await refusalOfLine("X-Svc-Unsubscribe: please"))).toEqual([
      "X-Svc-Unsubscribe validation_failed",
    ]);
  });

  test("name a pool of the account; a mail that names none goes by its default one", async () => {
    const rig = makeRig({ pools: ["gold", "default"] });
    await rig.relay(mail([from, "X-Svc-Ip-Pool: gold"]));
    expect(rig.store.last()).toMatchObject({
      message: { ipPool: "gold" },
      recipients: [{ queueName: "1.gold/x.test" }],
    });
    await rig.relay(mail([from]));
    expect(rig.store.last().message.ipPool).toBe("gold");
  });

  test("keep the limits of their fields, and say all that is wrong", async () => {
    const cases: [string, string][] = [
      [`X-Svc-Tags: ${Array.from({ length: 11 }, (_, i) => i).join(",")}`, "X-Svc-Tags validation_failed"],
      [`X-Svc-Tags: ${"x".repeat(129)}`, "X-Svc-Tags validation_failed"],
      ["X-Svc-Metadata: none", "X-Svc-Metadata validation_failed"],
      ['X-Svc-Metadata: ["a"]', "X-Svc-Metadata validation_failed"],
      ['X-Svc-Metadata: {"a": 1}', "X-Svc-Metadata validation_failed"],
      ['X-Svc-Metadata: {"__proto__": "x"}', "X-Svc-Metadata validation_failed"],
      ["X-Svc-Metadata: null", "X-Svc-Metadata validation_failed"],
      ["X-Svc-Send-At: tomorrow", "X-Svc-Send-At validation_failed"],
      ["X-Svc-Send-At: 2027-11-27T10:00:00Z", "X-Svc-Send-At scheduling_window_exceeded"],
      ["X-Svc-Ip-Pool: fast", "X-Svc-Ip-Pool ip_pool_not_found"],
      ["X-Svc-Idempotency-Key:", "X-Svc-Idempotency-Key validation_failed"],
      [`X-Svc-Idempotency-Key: ${"k".repeat(256)}`, "X-Svc-Idempotency-Key validation_failed"],
    ];
    for (const [line, row] of cases) expect(rowsOf(await refusalOfLine(line))).toEqual([row]);
    const refusal = await refusalOf(
      makeRig().relay(mail([from, "X-Svc-Metadata: 1", "X-Svc-Tag: a", "X-Svc-Send-At: x"])),
    );
    expect(rowsOf(refusal)).toHaveLength(3);
  });
});

describe("X-Svc-Idempotency-Key", () => {
  const keyed = (body = "Hi\r\n"): string => mail([from, "X-Svc-Idempotency-Key: order 7"], body);

  test("gives the same id for the same recipients and data, however they come", async () => {
    const rig = makeRig();
    const first = await rig.relay(keyed(), { rcptTo: ["a@x.test", "b@x.test"] });
    const again = await rig.relay(keyed(), { rcptTo: ["B@x.test", "a@x.test"], chunkSize: 3 });
    expect(again).toBe(first);
    expect(rig.store.accepted).toHaveLength(1);
    expect(rig.store.dropped).toHaveLength(1);
    expect(rig.store.bytes().toString()).not.toContain("order 7");
  });

  test("refuses other data or recipients under the same key", async () => {
    const rig = makeRig();
    await rig.relay(keyed());
    for (const [body, to] of [
      ["Ho\r\n", "a@x.test"],
      ["Hi\r\n", "b@x.test"],
    ] as const) {
      const refusal = await refusalOf(rig.relay(keyed(body), { rcptTo: [to] }));
      expect(refusal.code).toBe("duplicate_idempotency_key");
    }
    expect(rig.store.accepted).toHaveLength(1);
  });
});

describe("a mail with lines of more than 998 octets", () => {
  const text = `${"word ".repeat(300)}grün`;
  const body = (mailBytes: string): string =>
    mailBytes
      .slice(mailBytes.indexOf("\r\n\r\n") + 4)
      .replace(/=\r\n/g, "")
      .replaceAll("=C3=BC", "ü");

  test("is kept in shorter ones, with what proves its body, and its first copy is let go", async () => {
    const rig = makeRig();
    await rig.relay(mail([from, "Content-Type: text/plain; charset=utf-8"], `${text}\r\n`), {
      chunkSize: 900,
    });
    const stored = rig.store.bytes();
    const { message } = rig.store.last();
    expect(body(stored.toString())).toBe(`${text}\r\n`);
    expect(stored.toString()).toContain("Content-Transfer-Encoding: quoted-printable\r\n");
    expect(
      Math.max(
        ...stored
          .toString()
          .split("\r\n")
          .map((line) => line.length),
      ),
    ).toBeLessThanOrEqual(998);
    expect(message.headerLength).toBe(stored.indexOf("\r\n\r\n") + 4);
    expect(message.eightBit).toBe(false);
    const hasher = new BodyHasher();
    hasher.update(stored.subarray(message.headerLength));
    expect(Buffer.from(message.bodyHash)).toEqual(hasher.digest());
    expect(rig.store.dropped).toHaveLength(1);
    expect(rig.store.dropped).not.toContainEqual(rig.store.last().content);
  });

  test("has a long header line folded at its white space", async () => {
    const rig = makeRig();
    const to = Array.from({ length: 90 }, (_, i) => `person${i}@x.test`).join(", ");
    await rig.relay(mail([from, `To: ${to}`]));
    expect(rig.store.bytes().toString().replaceAll("\r\n ", " ")).toContain(`To: ${to}\r\n`);
  });
});

describe("the header sections of parts", () => {
  const parts = (head: Buffer | string, type = "mixed"): Buffer =>
    Buffer.concat([
      Buffer.from(
        mail([from, `Content-Type: multipart/${type}; boundary=b`, "MIME-Version: 1.0"], "--b\r\n"),
      ),
      Buffer.from(head),
      Buffer.from("\r\n\r\nJVBERi0=\r\n--b--\r\n"),
    ]);
  const named = 'Content-Disposition: attachment; filename="účet.pdf"';
  const attached = "Content-Type: message/rfc822\r\n\r\nFrom: c@x.test\r\nSubject: účet";

  test.each([named, attached])(
    "need SMTPUTF8 where they hold UTF-8, and keep their bytes: %j",
    async (head) => {
      const rig = makeRig();
      await rig.relay(parts(head));
      expect(rig.store.last().message).toMatchObject({ smtpUtf8: true, eightBit: true });
      expect(rig.store.bytes().toString()).toContain(head);
    },
  );

  test("need nothing where they are ASCII, whatever the content is", async () => {
    const rig = makeRig();
    await rig.relay(parts("Content-Type: text/plain; charset=utf-8\r\n\r\núčet"));
    expect(rig.store.last().message).toMatchObject({ smtpUtf8: false, eightBit: true });
  });

  test("are kept in ASCII where their octets are not UTF-8, with the text that they stand for", async () => {
    const rig = makeRig();
    await rig.relay(
      parts(Buffer.from('Content-Disposition: attachment; filename="Gr\xfc\xdfe.pdf"', "latin1")),
    );
    const stored = rig.store.bytes();
    expect(stored.toString()).toMatch(/filename\*(?:0\*)?=utf-8''Gr%C3%BC%C3%9Fe\.pdf/i);
    const { message } = rig.store.last();
    expect(message).toMatchObject({ smtpUtf8: false, eightBit: false });
    const hasher = new BodyHasher();
    hasher.update(stored.subarray(message.headerLength));
    expect(Buffer.from(message.bodyHash)).toEqual(hasher.digest());
    expect(rig.store.dropped).toHaveLength(1);
  });

  test("of an attached message may hold what is not an address: it is kept as text", async () => {
    const rig = makeRig();
    const head = "Content-Type: message/rfc822\r\n\r\nFrom: <Gr\xfc\xdfe\r\nSubject: Gr\xfc\xdfe";
    await rig.relay(parts(Buffer.from(head, "latin1")));
    expect(rig.store.bytes().toString()).toMatch(/From: =\?UTF-8\?[\s\S]*Subject: =\?UTF-8\?/i);
  });

  test.each([" ", "\t"])("have no white space before the colon (%j)", async (space) => {
    const rig = makeRig();
    await rig.relay(parts(`Content-Type${space}: application/pdf; name=a.pdf\r\nX-Other: y : z`));
    expect(rig.store.bytes().toString()).toContain(
      "--b\r\nContent-Type: application/pdf; name=a.pdf\r\nX-Other: y : z\r\n",
    );
  });

  test("keep each byte where a signature covers them", async () => {
    const rig = makeRig();
    const head = Buffer.from('Content-Type : a/b; name="Gr\xfc\xdfe"', "latin1");
    await rig.relay(parts(head, "signed"));
    expect(rig.store.bytes().includes(head)).toBe(true);
    expect(rig.store.last().message).toMatchObject({ smtpUtf8: false, eightBit: true });
    expect(rig.store.dropped).toEqual([]);
  });
});

test("the stored header ends where it is said to", async () => {
  const rig = makeRig();
  await rig.relay(mail([from]));
  const { headerLength } = rig.store.last().message;
  const names = parseHeaderSection(rig.store.bytes().subarray(0, headerLength)).map(({ lower }) => lower);
  expect(names).toEqual(["received", "x-feedback-token", "from", "message-id", "date"]);
  expect(
    rig.store
      .bytes()
      .subarray(headerLength - 4)
      .toString(),
  ).toBe("\r\n\r\nHi\r\n");
});
