import { expect, test } from "vitest";
import { readPath } from "../../src/relay/path.ts";

const mail = (line: string) => readPath("MAIL FROM", Buffer.from(line));

test("reads a path and its parameters, keys in upper case", () => {
  expect(mail("mail from:<a@x.test> size=12 Body=8BITMIME smtputf8")).toEqual({
    address: "a@x.test",
    args: { SIZE: "12", BODY: "8BITMIME", SMTPUTF8: true },
  });
  expect(mail("MAIL FROM:<>")).toEqual({ address: "", args: false });
  expect(mail("MAIL FROM: <a@x.test>")).toEqual({ address: "a@x.test", args: false });
});

test("a bracket in a quoted local part does not end the path", () => {
  expect(mail('MAIL FROM:<"a> \\"b"@x.test> SIZE=1')?.address).toBe('"a> \\"b"@x.test');
});

test("ignores a source route", () => {
  expect(mail("MAIL FROM:<@one.test,@two.test:a@x.test>")?.address).toBe("a@x.test");
});

test("names a parameter that is given twice", () => {
  expect(mail("MAIL FROM:<a@x.test> SIZE=1 size=2")?.duplicate).toBe("SIZE");
});

test.each([
  "MAIL FROM:a@x.test",
  "MAIL FROM <a@x.test>",
  "MAIL FROM:<a@x.test",
  'MAIL FROM:<"a@x.test>',
  "MAIL FROM:<a@x.test>SIZE=1",
  "MAIL FROM:<a@x.test> SIZE=1\rRCPT",
  "MAIL FROM:<a@x.test> SI_ZE=1",
  "MAIL FROM:<a@x.test> SIZE=1=2",
  "RCPT TO:<a@x.test>",
])("refuses %j", (line) => {
  expect(mail(line)).toBeNull();
});

test("refuses bytes that are not UTF-8", () => {
  expect(readPath("RCPT TO", Buffer.from("RCPT TO:<\xe9@x.test>", "latin1"))).toBeNull();
  expect(readPath("RCPT TO", Buffer.from("RCPT TO:<é@x.test>"))?.address).toBe("é@x.test");
});
