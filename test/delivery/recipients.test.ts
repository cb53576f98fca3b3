// What becomes of each recipient by what its receiver says: its events, the suppression list and the next send.
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { startSender, type Sender } from "./sender.ts";

let sender: Sender;
beforeAll(async () => {
  sender = await startSender({ "x.test": "127.0.0.41", "y.test": "127.0.0.42", "evil.test": "127.0.0.43" });
});
afterAll(() => sender?.stop());
beforeEach(() => {
  for (const domain of ["x.test", "y.test"]) {
    const { options } = sender.receiver(domain);
    delete options.onRcpt;
    delete options.onData;
    delete options.reply;
  }
});

const suppressed = async (address: string): Promise<string[]> => {
  const { data } = (await sender.program.admin("GET", `/v1/suppressions?limit=200`)) as {
    data: { email: string }[];
  };
  return data.map(({ email }) => email).filter((email) => email.toLowerCase().includes(address));
};
const copies = (domain: string, to: string): number =>
  sender.receiver(domain).mails.filter(({ rcptTo }) => rcptTo.includes(to)).length;

test("of one message to three, one is delivered, one bounced and one deferred: each has its own reply, and one copy", async () => {
  const x = sender.receiver("x.test");
  let refusals = 1;
  x.options.onRcpt = (to) => {
    if (to === "b1@x.test") return "550 5.1.1 no such user";
    return to === "c1@x.test" && refusals-- > 0 ? "451 4.3.0 later" : undefined;
  };
  const id = await sender.send({ to: ["a1@x.test", "b1@x.test", "c1@x.test"] });
  await sender.events(id, 3);
  expect(await sender.events(id, 1, "a1@x.test")).toMatchObject([{ event: "message.delivered" }]);
  expect(await sender.events(id, 1, "b1@x.test")).toMatchObject([
    { event: "message.bounced", data: { smtp_code: "550", smtp_status: "5.1.1", suppressed: true } },
  ]);
  expect(await sender.events(id, 1, "c1@x.test")).toMatchObject([
    { event: "message.deferred", data: { smtp_code: "451", smtp_status: "4.3.0" } },
  ]);
  expect(await sender.next(id, "c1@x.test")).toMatchObject({ event: "message.delivered" });
  expect(["a1@x.test", "b1@x.test", "c1@x.test"].map((to) => copies("x.test", to))).toEqual([1, 0, 1]);
  expect(await suppressed("1@x.test")).toEqual(["b1@x.test"]);
});

test("of two that are refused before the data, each keeps its own code and text", async () => {
  sender.receiver("x.test").options.onRcpt = (to) =>
    to === "a2@x.test" ? "450 4.2.1 busy" : "550 5.1.1 no such user";
  const id = await sender.send({ to: ["a2@x.test", "b2@x.test"] });
  await sender.events(id, 2);
  expect(await sender.events(id, 1, "a2@x.test")).toMatchObject([
    {
      event: "message.deferred",
      data: { smtp_code: "450", smtp_status: "4.2.1", smtp_response: "4.2.1 busy" },
    },
  ]);
  expect(await sender.events(id, 1, "b2@x.test")).toMatchObject([
    {
      event: "message.bounced",
      data: { smtp_code: "550", smtp_status: "5.1.1", smtp_response: "5.1.1 no such user" },
    },
  ]);
});

test("a hard bounce of one recipient suppresses that one, and the other may be sent to", async () => {
  sender.receiver("y.test").options.onRcpt = () => "550 5.1.1 no such user";
  const id = await sender.send({ to: ["a3@x.test", "b3@y.test"] });
  await sender.events(id, 2);
  expect(await suppressed("3@")).toEqual(["b3@y.test"]);
  await sender.events(await sender.send({ to: "a3@x.test" }), 1);
  expect(copies("x.test", "a3@x.test")).toBe(2);
});

test("a receiver that blocks our address for its reputation suppresses none of twenty recipients", async () => {
  const x = sender.receiver("x.test");
  x.options.onRcpt = () =>
    "550-5.7.1 [192.0.2.1] Our system has detected that this message is\r\n" +
    "550-5.7.1 likely unsolicited mail. To reduce the amount of spam, this message\r\n" +
    "550 5.7.1 has been blocked. - gsmtp";
  const to = Array.from({ length: 20 }, (_, i) => `blocked${i}@x.test`);
  const events = await sender.events(await sender.send({ to }), 20);
  for (const { event, data } of events) {
    expect(event).toBe("message.bounced");
    expect(data).toMatchObject({ smtp_code: "550", smtp_status: "5.7.1", suppressed: false });
    expect(data.bounce_classification).not.toBe("invalid_recipient");
    expect(data.smtp_response).toContain("likely unsolicited mail. To reduce");
  }
  expect(await suppressed("blocked")).toEqual([]);
  delete x.options.onRcpt;
  expect(await sender.events(await sender.send({ to }), 20)).toMatchObject(
    Array(20).fill({ event: "message.delivered" }),
  );
});

test.each(["RCPT", "the dot"])(
  "550 5.1.1 at %s is one attempt, one bounce, and a 422 on the next send",
  async (where) => {
    const to = where === "RCPT" ? "at-rcpt@x.test" : "at-dot@x.test";
    const { options } = sender.receiver("x.test");
    if (where === "RCPT") options.onRcpt = () => "550 5.1.1 no such user";
    else options.onData = () => "550 5.1.1 no such user";
    const id = await sender.send({ to });
    await sender.events(id, 1);
    sender.clock.skip(3_600_000);
    expect(await sender.events(id, 1)).toMatchObject([
      {
        event: "message.bounced",
        data: { attempt: 1, bounce_classification: "invalid_recipient", suppressed: true },
      },
    ]);
    const answer = await sender.ask({ to });
    expect(answer.status).toBe(422);
    expect(JSON.parse(answer.text)).toMatchObject({
      code: "recipient_suppressed",
      suppressed_recipients: [{ email: to }],
    });
  },
);

test("fifty bounces of one address at once are one entry, found in every spelling", async () => {
  sender.dns.set("xn--bcher-kva.test", "MX", ["10 mx.x.test"]);
  sender.receiver("x.test").options.onRcpt = () => "550 5.1.1 no such user";
  const send_at = new Date(sender.clock.now() + 3_600_000).toISOString();
  const ids = await Promise.all(
    Array.from({ length: 50 }, (_, i) =>
      sender.send({ to: i % 2 === 0 ? "User@Bücher.Test" : "user@xn--bcher-kva.test", send_at }),
    ),
  );
  sender.clock.skip(3_600_000);
  await Promise.all(ids.map((id) => sender.events(id, 1)));
  expect(await suppressed("user@")).toHaveLength(1);
  for (const to of ["user@bücher.test", "USER@xn--bcher-kva.TEST", "User@BÜCHER.test"]) {
    expect((await sender.ask({ to })).status, to).toBe(422);
    await sender.program.admin("GET", `/v1/suppressions/${encodeURIComponent(to)}`);
  }
  await sender.program.admin("DELETE", `/v1/suppressions/${encodeURIComponent("USER@bücher.test")}`);
  expect(await suppressed("user@")).toEqual([]);
});

test("a recipient that is suppressed before its time is not attempted, and its event says why", async () => {
  const send_at = new Date(sender.clock.now() + 3_600_000).toISOString();
  const id = await sender.send({ to: ["a4@x.test", "b4@x.test"], send_at });
  await sender.program.admin("POST", "/v1/suppressions", { emails: ["b4@x.test"] });
  sender.clock.skip(3_600_000);
  await sender.events(id, 2);
  expect(await sender.events(id, 1, "a4@x.test")).toMatchObject([{ event: "message.delivered" }]);
  expect(await sender.events(id, 1, "b4@x.test")).toMatchObject([
    { event: "message.bounced", data: { bounce_classification: "suppressed", source: "local" } },
  ]);
  expect(sender.receiver("x.test").commands.join()).not.toContain("b4@x.test");
});

test.each([
  `"x@evil.test y"@x.test`,
  `"foo@evil.test> ORCPT=rfc822;admin@a.test"@x.test`,
  `"a>\\" NOTIFY=NEVER"@x.test`,
])("the quoted local part of %s goes to x.test as it is, or is refused", async (to) => {
  const answer = await sender.ask({ to });
  expect([202, 422]).toContain(answer.status);
  if (answer.status === 202) {
    await sender.events(JSON.parse(answer.text).id, 1);
    expect(sender.receiver("x.test").commands).toContain(`RCPT TO:<${to}>`);
  }
  expect(sender.receiver("evil.test").connections).toBe(0);
});

test.each([
  "a@xn--",
  "a@gmail.xn--com-0da",
  "a@-x.test",
  "a@x..test",
  `a@${"x".repeat(64)}.test`,
  "us\u2060er@x.test",
  "user@x\u200b.test",
  "user\u00a0@x.test",
])("%j is refused, or bounces as a domain that does not exist", async (to) => {
  const answer = await sender.ask({ to });
  if (answer.status === 202) {
    const [told] = await sender.events(JSON.parse(answer.text).id, 1);
    expect(told).toMatchObject({
      event: "message.bounced",
      data: { smtp_code: "550", smtp_status: "5.1.2" },
    });
  } else expect(answer.status).toBe(422);
});

test("mail to an international domain goes to the MX of its A-label", async () => {
  sender.dns.set("xn--mnchen-3ya.test", "MX", ["10 mx.y.test"]);
  await sender.events(await sender.send({ to: "a@münchen.test" }), 1);
  expect(sender.receiver("y.test").mails.at(-1)?.rcptTo).toEqual(["a@xn--mnchen-3ya.test"]);
});

test("a hostile reply is kept as one safe line of JSON, in the event as in the attempt", async () => {
  sender.receiver("x.test").options.onRcpt = () =>
    `550 5.7.1 \u001b[2J\u001b]0;pwned\u0007<script>\u0000\u202e\u2028\r\n`.trimEnd() + "x".repeat(8_000);
  const id = await sender.send({ to: "hostile@x.test" });
  const [told] = await sender.events(id, 1);
  const attempts = (await sender.program.admin("GET", `/v1/messages/${id}/attempts`)) as unknown;
  for (const text of [told?.data.smtp_response as string, JSON.stringify(attempts)]) {
    expect(text).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
    expect(text).not.toMatch(/\\u00(?:1b|00|07)/);
  }
  expect(told?.data.smtp_response.length).toBeLessThanOrEqual(2_000);
});

test("lines that are dots, or begin with them, arrive as they were sent", async () => {
  const text = "hello\n.\nhello\n..x\n\n.\n.";
  const before = sender.receiver("x.test").mails.length;
  await sender.events(await sender.send({ to: "dots@x.test", text }), 1);
  const mails = sender.receiver("x.test").mails.slice(before);
  expect(mails).toHaveLength(1);
  const raw = mails[0]?.data.toString() ?? "";
  expect(raw.slice(raw.indexOf("\r\n\r\n") + 4).trimEnd()).toBe(text.replaceAll("\n", "\r\n"));
});
