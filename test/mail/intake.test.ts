import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { BodyHasher } from "../../src/mail/dkim.ts";
import { MailSyntaxError, parseHeaderSection } from "../../src/mail/header.ts";
import { maxMessageBytes, MailIntake, MailTooLarge, type IntakeSummary } from "../../src/mail/intake.ts";

interface Taken {
  section: string;
  body: string;
  summary: IntakeSummary;
}

function take(chunks: Buffer[]): Taken {
  const intake = new MailIntake();
  const sections: Buffer[] = [];
  const bodies: Buffer[] = [];
  for (const chunk of chunks) {
    const step = intake.push(chunk);
    if (step.section !== null) sections.push(step.section);
    bodies.push(step.body);
  }
  const last = intake.end();
  if (last.section !== null) sections.push(last.section);
  bodies.push(last.body);
  expect(sections).toHaveLength(1);
  return {
    section: Buffer.concat(sections).toString("latin1"),
    body: Buffer.concat(bodies).toString("latin1"),
    summary: last.summary,
  };
}

const bytes = (text: string): Buffer => Buffer.from(text, "latin1");

function failure(chunks: Buffer[]): string {
  try {
    take(chunks);
  } catch (error) {
    if (error instanceof MailSyntaxError) return error.code;
    throw error;
  }
  return "none";
}

/** The relaxed body in the plainest words of RFC 6376 §3.4.4. */
function plainBodyHash(body: string): string {
  const lines = body.split("\r\n").map((line) => line.replace(/[ \t]+/g, " ").replace(/ $/, ""));
  while (lines.at(-1) === "") lines.pop();
  const canonical = lines.map((line) => `${line}\r\n`).join("");
  return createHash("sha256").update(canonical, "latin1").digest("hex");
}

test("parts header and body, and counts what came", () => {
  const taken = take([bytes("Subject: x\r\nTo: a@b.test\r\n\r\nHello\r\n.\r\n\r\nb\xe9\r\n")]);
  expect(taken.section).toBe("Subject: x\r\nTo: a@b.test\r\n\r\n");
  expect(taken.body).toBe("Hello\r\n.\r\n\r\nb\xe9\r\n");
  expect(taken.summary).toMatchObject({
    sizeBytes: 44,
    bodyBytes: 16,
    eightBit: true,
  });
});

test("a mail without a body is all header, one without a header all body", () => {
  expect(take([bytes("Subject: x\r\n")])).toMatchObject({ section: "Subject: x\r\n\r\n", body: "" });
  expect(take([bytes("Subject: x")])).toMatchObject({ section: "Subject: x\r\n\r\n", body: "" });
  expect(take([bytes("\r\nHello")])).toMatchObject({ section: "\r\n", body: "Hello\r\n" });
  expect(take([])).toMatchObject({ section: "\r\n", body: "" });
});

test("the result is the same however the bytes are split", () => {
  const piece = fc.constantFrom(
    "a",
    " ",
    "\t",
    "\r\n",
    "\r\n\r\n",
    ".",
    "\xe4",
    "Subject: x\r\n",
    "  ",
    "\r",
    "\n",
    "\0",
  );
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 40 }),
      fc.array(fc.nat(8), { maxLength: 60 }),
      (pieces, cuts) => {
        const mail = bytes(pieces.join(""));
        const chunks: Buffer[] = [];
        let at = 0;
        for (const cut of cuts) chunks.push(mail.subarray(at, (at += cut)));
        chunks.push(mail.subarray(at));
        const whole = failure([mail]);
        expect(failure(chunks)).toBe(whole);
        if (whole !== "none") return;
        const once = take([mail]);
        expect(take(chunks)).toEqual(once);
        expect(once.summary.bodyHash.toString("hex")).toBe(plainBodyHash(once.body));
        expect(once.summary.sizeBytes).toBe(once.section.length + once.body.length);
      },
    ),
    { numRuns: 1_000 },
  );
});

test("the body hash of an empty body is that of nothing", () => {
  expect(new BodyHasher().digest().toString("base64")).toBe("47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
  const onlyLines = new BodyHasher();
  onlyLines.update(bytes("\r\n \t\r\n".repeat(5_000)));
  expect(onlyLines.digest().toString("base64")).toBe("47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
});

test("the body hash keeps thousands of empty lines that something follows", () => {
  const body = `a\r\n${"\r\n".repeat(9_000)} \t\r\nb\tc \r\n`;
  const hasher = new BodyHasher();
  for (let i = 0; i < body.length; i += 1_000) hasher.update(bytes(body.slice(i, i + 1_000)));
  expect(hasher.digest().toString("hex")).toBe(plainBodyHash(body));
});

test.each(["\n.\n", "\n.\r\n", "\r.\r", "\r\n.\r", "\r.\n", "\n.\r", "\r\r\n.\r\n", "\r\n.\n"])(
  "refuses a body with the smuggled ending %j",
  (ending) => {
    const mail = bytes(`Subject: x\r\n\r\nHello${ending}MAIL FROM:<boss@ok.test>\r\n`);
    expect(failure([mail])).toBe("bare_line_end");
    expect(failure([...mail].map((byte) => Buffer.from([byte])))).toBe("bare_line_end");
  },
);

test("refuses a lone line end in the header, at the very end, and NUL", () => {
  expect(failure([bytes("Subject: x\nBcc: y\r\n\r\n")])).toBe("bare_line_end");
  expect(failure([bytes("Subject: x\r\n\r\nHello\r")])).toBe("bare_line_end");
  expect(failure([bytes("Subject: x\r\n\r\nHello\r\n\0.\r\n")])).toBe("nul");
});

test("tells of a line of more than 998 octets in the body, at any split", () => {
  const isLong = (octets: number): boolean =>
    take([
      bytes(`S: ${"x".repeat(2_000)}\r\n\r\n`),
      bytes("x".repeat(500)),
      bytes("x".repeat(octets - 500)),
      bytes("\r\nx\r\n"),
    ]).summary.longLine;
  expect(isLong(998)).toBe(false);
  expect(isLong(999)).toBe(true);
});

test("refuses a header section over 100 KB though its lines are short", () => {
  expect(failure([bytes("X-A: b\r\n".repeat(20_000))])).toBe("header_too_large");
});

test("refuses the first byte over 26,214,400 and takes the last one below", () => {
  const lines = bytes(`${"x".repeat(62)}\r\n`.repeat(16_384));
  const intake = new MailIntake();
  intake.push(bytes(`S: ${"x".repeat(57)}\r\n\r\n`));
  for (let i = 0; i < 24; i++) intake.push(lines);
  intake.push(lines.subarray(128));
  expect(() => intake.push(lines.subarray(0, 128))).toThrow(MailTooLarge);
  intake.push(lines.subarray(0, 64));
  expect(intake.end().summary.sizeBytes).toBe(maxMessageBytes);
});

test("reads fields with their bytes, folding and order, and the space before a colon", () => {
  const section = bytes(
    "From : a@b.test\r\nSubject: one\r\n\ttwo\r\n  three\r\nX-\xe9: n\r\n\r\nBody: no\r\n",
  );
  expect(() => parseHeaderSection(section)).toThrow(MailSyntaxError);
  const good = bytes("From : a@b.test\r\nSubject: one\r\n\ttwo\r\n  three \r\nX-Empty:\r\n\r\nBody: no\r\n");
  const fields = parseHeaderSection(good);
  expect(fields.map((field) => [field.name, field.lower, field.value])).toEqual([
    ["From", "from", "a@b.test"],
    ["Subject", "subject", "one\ttwo  three"],
    ["X-Empty", "x-empty", ""],
  ]);
  expect(Buffer.concat(fields.map((field) => field.raw)).toString("latin1")).toBe(
    good.toString("latin1").replace("\r\nBody: no\r\n", ""),
  );
});

test.each([
  "no colon\r\n\r\n",
  " folded first\r\n\r\n",
  ": no name\r\n\r\n",
  "Fr om: a@b.test\r\n\r\n",
  "Fr\r\n om: x\r\n\r\n",
])("refuses the header section %j", (section) => {
  expect(() => parseHeaderSection(bytes(section))).toThrow(expect.objectContaining({ code: "bad_header" }));
});

test("an octet that must not be there is seen wherever it stands, and whatever the bytes lie behind", () => {
  for (let length = 1; length <= 24; length++)
    for (let before = 0; before < 8; before++)
      for (let at = 0; at < length; at++)
        for (const octet of ["\0", "\r", "\n"]) {
          const body = `${"\xff".repeat(at)}${octet}${"\x0e".repeat(length - at - 1)}`;
          const memory = Buffer.alloc(before + length);
          memory.write(body, before, "latin1");
          const chunks = [bytes("A: b\r\n\r\n"), memory.subarray(before), bytes("c\r\n")];
          expect(failure(chunks)).toBe(octet === "\0" ? "nul" : "bare_line_end");
        }
});
