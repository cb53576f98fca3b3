// What REST makes of a request: the checks beyond its fields, the bytes that are kept, the answer.
import { describe, expect, test } from "vitest";
import { maxMessageBytes } from "../../src/mail/intake.ts";
import { BodyHasher } from "../../src/mail/dkim.ts";
import { parseHeaderSection } from "../../src/mail/header.ts";
import type { DnsRecord } from "../../src/model/dns-record.ts";
import { StoreUnavailable } from "../../src/store/store.ts";
import {
  address,
  good,
  http,
  liveSender,
  makeDomain,
  makeRig,
  makeSuppression,
  refusalOf,
  rowsOf,
  startMs,
  testSender,
  type Rig,
  tokens,
} from "./rig.ts";

const sendWith = (rig: Rig, key: string, fingerprint: number, json = good()) =>
  rig.submission.send(liveSender, json, http, { key, fingerprint: new Uint8Array(32).fill(fingerprint) });

describe("an accepted message", () => {
  test("is answered with 202 and what the client needs to find it", async () => {
    const rig = makeRig();
    const { status, body, id, replayed } = await rig.send(
      good({ to: ["A@x.test", "a@X.test"], bcc: "B <b@y.test>" }),
    );
    expect([status, replayed]).toEqual([202, false]);
    expect(JSON.parse(body)).toEqual({
      id,
      status: "queued",
      created_at: "2026-11-27T09:00:00.000Z",
      send_at: null,
      recipients: [
        { email: "A@x.test", type: "to" },
        { email: "b@y.test", type: "bcc" },
      ],
      message_id_header: `<${tokens.of(String(id))}@mail.svc.test>`,
    });
  });

  test("is kept with all that sending and events need", async () => {
    const rig = makeRig();
    const { id } = await rig.send(
      good({
        from: "Shop <shop@mail.ok.test>",
        subject: "Grüße",
        to: "Zoë <a@BÜCHER.test>",
        tags: ["t", "t"],
        metadata: { order: "1" },
        ip_pool: "default",
      }),
    );
    expect(rig.store.last()).toMatchObject({
      createdAt: startMs,
      sendAt: null,
      maxQueue: 1000,
      idempotency: null,
      message: {
        id,
        accountKey: 1,
        test: false,
        from: "shop@mail.ok.test",
        fromName: "Shop",
        signingDomain: "ok.test",
        returnPathDomain: "bounce.ok.test",
        subject: "Grüße",
        tagsJson: '["t"]',
        metadataJson: '{"order":"1"}',
        ipPool: "default",
        eightBit: false,
        smtpUtf8: false,
        queuedAt: startMs,
        source: "api",
        apiKey: 7,
      },
      recipients: [
        {
          type: "to",
          to: "a@BÜCHER.test",
          rcptTo: "a@xn--bcher-kva.test",
          canonical: "a@xn--bcher-kva.test",
          domain: "xn--bcher-kva.test",
          queueName: "1.default/xn--bcher-kva.test",
          leaseOwner: null,
        },
      ],
    });
  });

  test("has header and body hash where they are said to be", async () => {
    const rig = makeRig();
    await rig.send(good({ html: "<p>Hi</p>", attachments: [{ filename: "a.txt", content: "aGk=" }] }));
    const { headerLength, bodyHash } = rig.store.last().message;
    const bytes = rig.store.bytes();
    const names = parseHeaderSection(bytes.subarray(0, headerLength)).map(({ lower }) => lower);
    expect(names).toEqual([
      "received",
      "from",
      "to",
      "subject",
      "message-id",
      "date",
      "mime-version",
      "content-type",
    ]);
    expect(bytes.subarray(headerLength - 4, headerLength).toString()).toBe("\r\n\r\n");
    const hasher = new BodyHasher();
    hasher.update(bytes.subarray(headerLength));
    expect(Buffer.from(bodyHash).equals(hasher.digest())).toBe(true);
  });

  test("does not tell the world the client's address", async () => {
    const rig = makeRig();
    await rig.send(good());
    expect(rig.store.bytes().toString()).toMatch(/^Received: by mail\.svc\.test with HTTP\s+id msg_/);
    expect(rig.store.bytes().toString()).not.toContain(http.ip);
  });

  test("shows to and cc and never bcc", async () => {
    const rig = makeRig();
    await rig.send(
      good({ to: ["a@x.test", "b@x.test"], cc: "c@x.test", bcc: ["Secret <d@x.test>", "a@x.test"] }),
    );
    const text = rig.store.bytes().toString();
    expect(text).toContain("\r\nTo: a@x.test, b@x.test\r\nCc: c@x.test\r\n");
    expect(text).not.toMatch(/bcc|secret|d@x\.test/i);
    expect(rig.store.last().recipients.map(({ type, to }) => `${type} ${to}`)).toEqual([
      "to a@x.test",
      "to b@x.test",
      "cc c@x.test",
      "bcc d@x.test",
    ]);
  });

  test("with html alone gets a text part, unless auto_text is false", async () => {
    const rig = makeRig();
    const html = { text: undefined, html: "<p>Dear <b>Zoe</b></p>" };
    const { text: _text, ...request } = good(html);
    await rig.send(request);
    expect(rig.store.bytes().toString()).toMatch(
      /multipart\/alternative[^]*text\/plain[^]*Dear Zoe[^]*text\/html/,
    );
    await rig.send({ ...request, auto_text: false });
    expect(rig.store.bytes().toString()).not.toMatch(/multipart|text\/plain/);
    await rig.send({ ...request, text: "Mine" });
    expect(rig.store.bytes().toString()).toMatch(/text\/plain[^]*Mine[^]*text\/html/);
  });

  test("whose header holds a local part that is not ASCII says so", async () => {
    const rig = makeRig();
    await rig.send(good({ to: "zoë@x.test" }));
    expect(rig.store.last().message).toMatchObject({ smtpUtf8: true, eightBit: true });
  });

  test("is inline up to 64 KB and streamed above", async () => {
    const rig = makeRig();
    const line = `${"x".repeat(70)}\r\n`;
    await rig.send(good({ text: line.repeat(800) }));
    expect(rig.store.last().content.kind).toBe("inline");
    await rig.send(good({ text: line.repeat(1000) }));
    expect(rig.store.last().content.kind).toBe("spool");
    expect(rig.store.bytes().toString().endsWith(line)).toBe(true);
  });
});

test("a body that is not an object is validation_failed", async () => {
  for (const json of [null, [], "x", 1, true]) {
    const refusal = await refusalOf(makeRig().send(json));
    expect(rowsOf(refusal)).toEqual([" validation_failed"]);
  }
});

describe("an unverified sender", () => {
  const failing: DnsRecord = {
    purpose: "spf",
    type: "TXT",
    name: "new.test",
    value: "v=spf1",
    required: true,
    status: "missing",
    found: [],
    issue: "no SPF record",
  };
  const domain = makeDomain("new.test", {
    status: "pending",
    records: [
      failing,
      { ...failing, purpose: "dkim", name: "s1._domainkey.new.test", status: "unchecked", issue: null },
      { ...failing, purpose: "dmarc", required: false },
      { ...failing, purpose: "return_path", status: "ok", issue: null },
    ],
  });

  test("names the domain, what fails in the DNS and the command that looks again", async () => {
    const rig = makeRig();
    rig.domains.set("new.test", domain);
    const refusal = await refusalOf(rig.send(good({ from: "a@mail.new.test" })));
    expect(refusal.code).toBe("sender_not_verified");
    expect(refusal.extras).toMatchObject({
      field: "from",
      domain: "new.test",
      failing_records: [
        { purpose: "spf", type: "TXT", name: "new.test", value: failing.value, issue: "no SPF record" },
        {
          purpose: "dkim",
          type: "TXT",
          name: "s1._domainkey.new.test",
          value: failing.value,
          issue: "The record was not checked yet.",
        },
      ],
    });
    expect(refusal.extras.errors?.[0]?.issue).toBe(
      "new.test is pending: these DNS records are missing or wrong: spf (new.test), dkim (s1._domainkey.new.test). " +
        "See what to publish with: svc domains records new.test, then run: svc domains verify new.test",
    );
    expect(rig.store.asked).toEqual([]);
  });

  test("of a domain that the operator has stopped is not told to publish anything", async () => {
    const rig = makeRig();
    rig.domains.set("new.test", { ...domain, status: "suspended", records: [] });
    const refusal = await refusalOf(rig.send(good({ from: "a@new.test" })));
    expect(refusal.message).toBe("from: new.test is suspended: the operator has stopped mail from it");
  });

  test("of a domain that was not added says to add it", async () => {
    const refusal = await refusalOf(makeRig().send(good({ from: "a@BÜCHER.test" })));
    expect(refusal.extras).toMatchObject({ domain: "xn--bcher-kva.test", failing_records: [] });
    expect(refusal.message).toContain("svc domains add xn--bcher-kva.test");
  });
});

describe("recipients that may not be named", () => {
  test("on the suppression list are listed with their reason and time", async () => {
    const rig = makeRig();
    rig.store.suppressions = [
      makeSuppression("B@x.test", { reason: "complaint" }),
      makeSuppression("d@x.test"),
      makeSuppression("a@x.test", { accountKey: 2 }),
    ];
    const refusal = await refusalOf(rig.send(good({ to: ["a@x.test", "b@x.test"], bcc: "D@X.test" })));
    expect(refusal.code).toBe("recipient_suppressed");
    expect(rowsOf(refusal)).toEqual(["to[1] recipient_suppressed", "bcc recipient_suppressed"]);
    expect(refusal.extras.suppressed_recipients).toEqual([
      { email: "B@x.test", reason: "complaint", created_at: "2026-11-27T08:59:59.000Z" },
      { email: "d@x.test", reason: "hard_bounce", created_at: "2026-11-27T08:59:59.000Z" },
    ]);
  });

  test("are told together with everything else that is wrong, the first field's code on top", async () => {
    const rig = makeRig();
    rig.store.suppressions = [makeSuppression("b@x.test")];
    const refusal = await refusalOf(
      rig.send(
        good({
          from: "a@other.test",
          to: ["nobody", "b@x.test", "bounce@simulator.svc"],
          ip_pool: "gold",
          send_at: "2027-11-27T09:00:00Z",
          attachments: [{ filename: "a.exe", content: "" }],
        }),
      ),
    );
    expect(refusal.code).toBe("sender_not_verified");
    expect(rowsOf(refusal)).toEqual([
      "from sender_not_verified",
      "to[0] invalid_email_address",
      "to[2] invalid_email_address",
      "to[1] recipient_suppressed",
      "attachments[0].filename invalid_attachment",
      "ip_pool ip_pool_not_found",
      "send_at scheduling_window_exceeded",
    ]);
    expect(refusal.extras).toMatchObject({
      domain: "other.test",
      suppressed_recipients: [{ email: "b@x.test" }],
    });
  });

  test("are caught by the transaction where they came onto the list meanwhile", async () => {
    const rig = makeRig();
    rig.store.answer = { kind: "suppressed", entries: [makeSuppression("b@x.test")] };
    const refusal = await refusalOf(rig.send(good({ cc: "B@x.test" })));
    expect(rowsOf(refusal)).toEqual(["cc recipient_suppressed"]);
    expect(refusal.extras.suppressed_recipients).toMatchObject([{ email: "b@x.test" }]);
    expect(rig.store.dropped).toHaveLength(1);
  });
});

describe("simulator.svc", () => {
  test("answers no live key", async () => {
    const refusal = await refusalOf(makeRig().send(good({ to: "bounce@simulator.svc" })));
    expect(rowsOf(refusal)).toEqual(["to invalid_email_address"]);
  });

  test("answers a test key under the names it knows, in any case", async () => {
    const rig = makeRig();
    for (const name of ["delivered", "Bounce", "softbounce", "blocked", "defer"])
      expect((await rig.send(good({ to: `${name}@Simulator.SVC` }), testSender)).status).toBe(202);
    for (const name of ["nobody", "constructor", "toString", '"bounce"']) {
      const refusal = await refusalOf(rig.send(good({ to: `${name}@simulator.svc` }), testSender));
      expect(rowsOf(refusal)).toEqual(["to invalid_email_address"]);
      expect(refusal.message).toContain("delivered, bounce, softbounce, blocked, defer");
    }
  });

  test("answers every sender under --dev, where nothing leaves the machine, under the names it knows", async () => {
    const rig = makeRig({ dev: true });
    expect((await rig.send(good({ to: "bounce@simulator.svc" }))).status).toBe(202);
    expect(rig.store.accepted[0]?.recipients).toMatchObject([{ queueName: "~sandbox" }]);
    const refusal = await refusalOf(rig.send(good({ to: "nobody@simulator.svc" })));
    expect(refusal.message).toContain("delivered, bounce, softbounce, blocked, defer");
  });

  test("refuses a mail program alike, at RCPT", async () => {
    const { submission, store } = makeRig();
    const rcpt = (sender: typeof liveSender, local: string) =>
      submission.refuseRecipient(sender, address(`${local}@simulator.svc`));
    expect((await rcpt(liveSender, "bounce"))?.code).toBe("invalid_email_address");
    expect(await rcpt(testSender, "bounce")).toBeNull();
    store.suppressions = [makeSuppression("bounce@simulator.svc")];
    expect((await rcpt(testSender, "bounce"))?.code).toBe("recipient_suppressed");
  });
});

describe("the size of the finished message", () => {
  const rig = makeRig();
  /** A request whose message has `bytes` bytes. */
  const sized = async (bytes: number, over: Record<string, unknown> = {}) => {
    const line = `${"x".repeat(76)}\r\n`;
    const filled = (length: number) => {
      const whole = line.repeat(Math.floor(length / 78));
      const rest = length - whole.length;
      return whole + (rest === 0 ? "" : rest < 3 ? "y\r\n".slice(3 - rest) : `${"y".repeat(rest - 2)}\r\n`);
    };
    await rig.send(good({ text: filled(780) }));
    const overhead = rig.store.bytes().length - 780;
    return good({ text: filled(bytes - overhead), ...over });
  };

  test("may be 26,214,400 bytes", async () => {
    await rig.send(await sized(maxMessageBytes));
    expect(rig.store.bytes().length).toBe(maxMessageBytes);
  });

  test("is too large with one byte more, whatever else would be refused", async () => {
    rig.store.asked = [];
    rig.store.suppressions = [makeSuppression("s@x.test")];
    const request = await sized(maxMessageBytes + 1, { ip_pool: "gold", bcc: "s@x.test" });
    rig.store.asked = [];
    const refusal = await refusalOf(rig.send(request));
    expect([refusal.code, refusal.status]).toEqual(["message_too_large", 413]);
    expect(rig.store.asked).toEqual([]);
    rig.store.suppressions = [];
  });

  test("is judged by the attachments alone where the fields are not sound", async () => {
    const content = Buffer.alloc(20_000_000).toString("base64");
    const refusal = await refusalOf(rig.send({ to: 5, attachments: [{ filename: "a.bin", content }] }));
    expect(refusal.code).toBe("message_too_large");
  });

  test("is too large by its html alone before a text is made of that", async () => {
    const html = "<li>".repeat(maxMessageBytes / 4 + 1);
    const before = process.cpuUsage();
    const { text: _text, ...request } = good({ html });
    const refusal = await refusalOf(rig.send(request));
    expect(refusal.code).toBe("message_too_large");
    expect(process.cpuUsage(before).user).toBeLessThan(2_000_000);
  });

  test("counts a message within the message as it is, for it is not encoded", async () => {
    const content = Buffer.from(`Subject: x\r\n\r\n${`${"x".repeat(76)}\r\n`.repeat(290_000)}`).toString(
      "base64",
    );
    const attachments = [{ filename: "a.eml", content, content_type: "message/rfc822" }];
    expect((await rig.send(good({ attachments }))).status).toBe(202);
    expect((await refusalOf(rig.send({ to: 5, attachments }))).code).toBe("validation_failed");
  });
});

describe("idempotency", () => {
  test("keeps with the message the very answer that was given", async () => {
    const rig = makeRig();
    const { body } = await sendWith(rig, "k1", 1);
    expect(rig.store.last().idempotency).toEqual({
      key: "k1",
      fingerprint: new Uint8Array(32).fill(1),
      status: 202,
      body,
    });
  });

  test("replays that answer, keeps no second message and lets go of its content", async () => {
    const rig = makeRig();
    rig.runner.slots = 1;
    const first = await sendWith(rig, "k1", 1);
    rig.runner.slots = 1;
    const large = good({ text: "x\r\n".repeat(50_000) });
    const second = await sendWith(rig, "k1", 1, large);
    expect(second).toEqual({ status: 202, body: first.body, id: null, replayed: true });
    expect(rig.store.accepted).toHaveLength(1);
    expect(rig.store.dropped).toMatchObject([{ kind: "spool" }]);
    expect(rig.runner.held.size).toBe(0);
  });

  test("refuses another request under the same key", async () => {
    const rig = makeRig();
    await sendWith(rig, "k1", 1);
    const refusal = await refusalOf(sendWith(rig, "k1", 2));
    expect([refusal.code, refusal.status]).toEqual(["duplicate_idempotency_key", 409]);
    expect(rig.store.dropped).toHaveLength(1);
  });
});

describe("no room", () => {
  test("on the disk is service_overloaded, and the content is let go", async () => {
    const rig = makeRig();
    rig.runner.slots = 1;
    rig.store.isFull = true;
    const refusal = await refusalOf(rig.send(good()));
    expect([refusal.code, refusal.status]).toEqual(["service_overloaded", 503]);
    expect(refusal.extras.retry_after_seconds).toBeGreaterThan(0);
    expect(rig.store.asked).toEqual([]);
    expect(rig.store.dropped).toHaveLength(1);
    expect(rig.runner.held.size).toBe(0);
  });

  test("in the queue is service_overloaded too", async () => {
    const rig = makeRig();
    rig.store.answer = { kind: "queue_full" };
    const refusal = await refusalOf(rig.send(good()));
    expect(refusal.code).toBe("service_overloaded");
    expect(refusal.extras.retry_after_seconds).toBeGreaterThan(0);
  });

  test("for want of room lets the content go, so that retries do not fill the disk further", async () => {
    const rig = makeRig();
    rig.store.answer = new StoreUnavailable("full", "database or disk is full");
    await expect(rig.send(good({ text: "x\r\n".repeat(50_000) }))).rejects.toThrow("full");
    expect(rig.store.dropped).toHaveLength(1);
  });

  test("for a write leaves the content alone: what is on disk is unknown", async () => {
    const rig = makeRig();
    rig.runner.slots = 1;
    const error = new StoreUnavailable("failed", "disk I/O error");
    rig.store.answer = error;
    await expect(rig.send(good({ text: "x\r\n".repeat(50_000) }))).rejects.toBe(error);
    expect(rig.store.dropped).toEqual([]);
    expect(rig.runner.held.size).toBe(0);
  });
});
