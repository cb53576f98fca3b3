import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { arfMail, dsnMail } from "../support/reports.ts";
import { scratch, svc } from "./world.ts";

const nowhere = { socket: "/nonexistent/admin.sock" };

test.each([
  [
    "550-5.7.26 Unauthenticated email from x.test is not accepted",
    "hard",
    "authentication_failed",
    "sender",
    false,
  ],
  ["550 5.1.1 no such user", "hard", "invalid_recipient", "recipient", true],
  ["452 4.2.2 mailbox full", "soft", "mailbox_full", "recipient", false],
  ["no such user", "undetermined", "invalid_recipient", "recipient", false],
])("a reply is explained without a daemon: %s", async (text, type, classification, fault, suppresses) => {
  const { code, out } = await svc(["--json", "bounces", "explain", text], nowhere);
  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject({
    bounce_type: type,
    bounce_classification: classification,
    suppresses,
    whose_fault: fault,
    advice: expect.stringMatching(/\.$|DOMAIN$|ADDRESS$/),
  });
  expect(Object.keys(JSON.parse(out) as object)).toEqual([
    "bounce_type",
    "bounce_classification",
    "bounce_category",
    "suppresses",
    "whose_fault",
    "advice",
  ]);
});

test("commands are named by the name that the program was called by", async () => {
  const called = { ...nowhere, env: { npm_command: "exec" } };
  const { out } = await svc(["bounces", "explain", "550-5.7.26 Unauthenticated email"], called);
  expect(out).toContain(" npx svc domains verify DOMAIN");
  const { err } = await svc(["bounces", "explain"], called);
  expect(err).toContain("For example: npx svc bounces explain ");
});

test("a returned mail is explained, with the rule that decided", async () => {
  const file = join(scratch(), "bounce.eml");
  writeFileSync(file, dsnMail({ to: "b+x@rp.test", recipient: "ann@far.test", status: "5.2.2" }));
  const { code, out } = await svc(["bounces", "explain", "--file", file], nowhere);
  expect(code).toBe(0);
  expect(out).toMatch(/recipient +ann@far\.test/);
  expect(out).toMatch(/cause +mailbox_full \(recipient\)/);
  expect(out).toMatch(/because of +status X X\.2\.2/);
  expect(out).toMatch(/suppresses +no/);
});

test("what is not a bounce is exit 1 and says what it is", async () => {
  const file = join(scratch(), "mail.eml");
  writeFileSync(file, arfMail({ to: "fbl@mail.test" }));
  const complaint = await svc(["bounces", "explain", "--file", file], nowhere);
  expect(complaint).toMatchObject({ code: 1, out: "" });
  expect(complaint.err).toContain("complaint (abuse)");
  writeFileSync(file, "Subject: Re: hello\n\nThanks!\n");
  expect((await svc(["bounces", "explain", "--file", file], nowhere)).err).toContain("not a bounce");
});

test.each([[[]], [["text", "--file", "x.eml"]]])("text or a file, one of both: %j", async (args) => {
  expect((await svc(["bounces", "explain", ...args], nowhere)).code).toBe(2);
});
