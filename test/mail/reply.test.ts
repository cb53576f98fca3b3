import fc from "fast-check";
import { expect, test } from "vitest";
import { ReplyParser, ReplySyntaxError, type Reply } from "../../src/mail/reply.ts";

const read = (text: string | Buffer): Reply[] => [...new ReplyParser().push(Buffer.from(text as string))];

test("reads one line, several lines and several replies", () => {
  expect(read("250 2.0.0 OK queued\r\n")).toEqual([
    { code: 250, status: "2.0.0", lines: ["2.0.0 OK queued"], text: "2.0.0 OK queued" },
  ]);
  expect(
    read("250-mx.test\r\n250-SIZE 1000\r\n250 HELP\r\n354 go\r\n").map((one) => [one.code, one.lines]),
  ).toEqual([
    [250, ["mx.test", "SIZE 1000", "HELP"]],
    [354, ["go"]],
  ]);
  expect(read("250\r\n")).toEqual([{ code: 250, status: null, lines: [""], text: "" }]);
});

test("reads lines that end in LF alone as those that end in CRLF", () => {
  for (const text of [
    "250-mx.test\n250-SIZE 1\n250 2.0.0 OK\n354 go\n",
    "250-mx.test\r\n250-SIZE 1\n250 2.0.0 OK\r\n354 go\n",
  ])
    expect(read(text)).toEqual(read("250-mx.test\r\n250-SIZE 1\r\n250 2.0.0 OK\r\n354 go\r\n"));
  expect(read("250\n")).toEqual(read("250\r\n"));
});

test("joins lines into sentences and says the status once", () => {
  const [reply] = read(
    "550-5.7.1 [192.0.2.1] Our system has detected that this message is\r\n" +
      "550-5.7.1 likely unsolicited mail. See\r\n550 5.7.1  https://x.test - gsmtp\r\n",
  );
  expect(reply?.text).toBe(
    "5.7.1 [192.0.2.1] Our system has detected that this message is likely unsolicited mail. See https://x.test - gsmtp",
  );
});

test.each([
  ["550-5.1.1 no\r\n450 later\r\n", 450, "5.1.1"],
  ["550-no\r\n550 5.1.1 user\r\n", 550, "5.1.1"],
  ["550-5.1.1 a\r\n550-4.2.1 b\r\n550 c\r\n", 550, "4.2.1"],
  ["550 4.2.1 contradiction\r\n", 550, "4.2.1"],
  ["550 #5.1.0 Address rejected\r\n", 550, "5.1.0"],
  ["451 4.7.500 Server busy\r\n", 451, "4.7.500"],
  ["550 192.0.2.1 is blocked\r\n", 550, null],
  ["550 5.1.1.2 is no status\r\n", 550, null],
  ["550 3.1.1 is no class\r\n", 550, null],
  ["571 odd second digit\r\n", 571, null],
])("%j has code %i and status %s", (text, code, status) => {
  expect(read(text)).toMatchObject([{ code, status }]);
});

test.each([
  ["nothing before an LF", "\n"],
  ["a CR alone", "250 OK\r250 OK\n250OK\n"],
  ["150", "150 OK\r\n"],
  ["999", "999 OK\r\n"],
  ["600", "600 OK\r\n"],
  ["four digits", "2501 OK\r\n"],
  ["two digits", "25\r\n"],
  ["a tab", "250\tOK\r\n"],
  ["no code", "OK\r\n"],
  ["a space in front", " 250 OK\r\n"],
  ["nothing", "\r\n"],
  ["full-width digits", "２５０ OK\r\n"],
  ["another protocol", "SSH-2.0-OpenSSH_9.2\r\n"],
])("a reply with %s is none", (_, text) => {
  expect(() => read(text)).toThrow(ReplySyntaxError);
});

test("takes 100 lines and no more, 64 KB and no more, with or without a line end", () => {
  expect(read(`${"250-x\r\n".repeat(99)}250 x\r\n`)[0]?.lines).toHaveLength(100);
  expect(() => read("250-x\r\n".repeat(100))).toThrow("100 lines");
  expect(() => read(`250-${"x".repeat(1_000)}\r\n`.repeat(66))).toThrow("64 KB");
  const parser = new ReplyParser();
  expect([...parser.push(Buffer.from(`250 ${"x".repeat(60_000)}`))]).toEqual([]);
  expect(() => [...parser.push(Buffer.alloc(10_000, "x"))]).toThrow("64 KB");
});

test("makes any bytes one line of safe UTF-8 of at most 2,000 characters", () => {
  const [reply] = read(Buffer.from("550 a\0b\x1b[31mc\xff\xfe d\u2028e\u202ef\u0085g<b>\r\n", "utf8"));
  expect(reply?.text).toBe("a b [31mcÿþ d e f g<b>");
  expect(read(Buffer.from("550 caf\xe9\r\n", "latin1"))[0]?.text).toBe("caf\ufffd");
  const long = read(`550 ${"x".repeat(1_999)}😊${"y".repeat(6_000)}\r\n`)[0]?.text ?? "";
  expect(long).toBe("x".repeat(1_999));
  expect(long.isWellFormed()).toBe(true);
});

test("any split of the bytes gives the same replies", () => {
  const stream = Buffer.from(
    "220 mx ESMTP\r\n250-é\r\n250-SIZE\r\n250 OK\r\n550-5.1.1 a\r\n550 5.1.1 b\r\n25",
  );
  fc.assert(
    fc.property(fc.array(fc.nat(9), { maxLength: 80 }), (cuts) => {
      const parser = new ReplyParser();
      const replies: Reply[] = [];
      let at = 0;
      for (const cut of cuts) replies.push(...parser.push(stream.subarray(at, (at += cut))));
      replies.push(...parser.push(stream.subarray(at)));
      expect(replies).toEqual(read(stream));
      expect(parser.pending).toBe(true);
    }),
  );
});

test("a reply that is whole counts, whatever nonsense follows it in the same packet", () => {
  const seen: number[] = [];
  expect(() => {
    for (const reply of new ReplyParser().push(Buffer.from("250 2.0.0 ok\r\nHTTP/1.1 400\r\n")))
      seen.push(reply.code);
  }).toThrow("no SMTP reply");
  expect(seen).toEqual([250]);
});
