import { expect, test } from "vitest";
import { Refusal } from "../../src/errors.ts";
import { MailSyntaxError } from "../../src/mail/header.ts";
import { MailTooLarge } from "../../src/mail/intake.ts";
import { StoreUnavailable } from "../../src/store/store.ts";
import { plainToken, startRelay } from "../support/relay.ts";
import type { RelayHarness } from "../support/relay.ts";
import type { SmtpClient } from "../support/smtp-client.ts";

const body = "From: a@ok.test\r\nSubject: x\r\n\r\nhello\r\n.\r\n";

test("takes a mail after STARTTLS and AUTH, and says 250 with its id", async () => {
  await using house = await startRelay();
  const client = await house.client();
  await client.startTls();
  await client.command(`AUTH PLAIN ${plainToken}`);
  const answer = await client.submit("a@ok.test", ["b@x.test", "c@y.test"], body);
  expect(answer.text).toBe("250 2.0.0 queued as msg_1");
  expect(house.mails[0]).toMatchObject({
    mailFrom: "a@ok.test",
    rcptTo: [{ email: "b@x.test" }, { email: "c@y.test" }],
    smtpUtf8: false,
    arrival: { ip: "127.0.0.1", helo: "client.test", protocol: "ESMTPSA" },
  });
  expect(house.mails[0]?.data.toString()).toBe(body.slice(0, -3));
  expect(await client.text("QUIT")).toMatch(/^221 /);
  await client.closed;
});

test("says 250 only after the commit", async () => {
  await using house = await startRelay();
  const commit = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  house.on.commit = () => (begun.resolve(), commit.promise);
  const client = await house.loggedIn();
  const answer = client.submit("a@ok.test", ["b@x.test"], body);
  await begun.promise;
  client.send("NOOP\r\n");
  expect(client.unread).toEqual([]);
  commit.resolve();
  expect((await answer).code).toBe(250);
  expect((await client.answer()).text).toBe("250 2.0.0 OK");
});

test("takes the null sender, local senders and a quoted local part; refuses what is not a sender", async () => {
  await using house = await startRelay();
  const client = await house.loggedIn();
  for (const sender of [
    "<>",
    "<root@localhost>",
    "<a@[127.0.0.1]>",
    "<a@[IPv6:::1]>",
    '<"a> b"@x.test>',
    "<@r.test:a@x.test>",
  ]) {
    expect(await client.text(`MAIL FROM:${sender}`)).toBe("250 2.1.0 Accepted");
    await client.command("RSET");
  }
  expect(await client.text("MAIL FROM:<a@b@c>")).toMatch(/^553 5\.1\.7 /);
  expect(await client.text("MAIL FROM:a@x.test")).toMatch(/^501 5\.1\.7 /);
});

test("refuses a recipient that is not an address with 553 5.1.3, and the session goes on", async () => {
  await using house = await startRelay();
  const client = await house.loggedIn();
  await client.command("MAIL FROM:<a@ok.test>");
  for (const bad of [
    "<a@b@c>",
    "<@x.test>",
    "<a b@x.test>",
    "<postmaster>",
    "<a@[127.0.0.1]>",
    "<a\u0000@x.test>",
  ])
    expect(await client.text(`RCPT TO:${bad}`)).toMatch(/^553 5\.1\.3 /);
  expect(await client.text("RCPT TO:<>")).toMatch(/^501 5\.1\.3 /);
  expect(await client.text('RCPT TO:<"info@"@x.test>')).toBe("250 2.1.5 Accepted");
  await client.command("DATA");
  client.send(body);
  expect((await client.answer()).code).toBe(250);
  expect(house.mails[0]?.rcptTo.map((one) => one.local)).toEqual(['"info@"']);
});

test("an address that is not ASCII needs SMTPUTF8", async () => {
  await using house = await startRelay();
  const client = await house.loggedIn();
  await client.command("MAIL FROM:<a@ok.test>");
  expect(await client.text("RCPT TO:<jörg@x.test>")).toMatch(/^553 5\.6\.7 /);
  await client.command("RSET");
  await client.command("MAIL FROM:<a@ok.test> SMTPUTF8");
  expect(await client.text("RCPT TO:<jörg@x.test>")).toBe("250 2.1.5 Accepted");
  await client.command("DATA");
  client.send(body);
  await client.answer();
  expect(house.mails[0]).toMatchObject({ smtpUtf8: true, arrival: { protocol: "UTF8SMTPSA" } });
});

test("a refused MAIL with SMTPUTF8 leaves nothing behind for the next", async () => {
  await using house = await startRelay();
  const client = await house.loggedIn();
  house.on.full = true;
  await client.command("MAIL FROM:<a@ok.test> SMTPUTF8");
  house.on.full = false;
  await client.submit("a@ok.test", ["b@x.test"], body);
  expect(house.mails[0]?.smtpUtf8).toBe(false);
});

test("judges the parameters of MAIL and RCPT", async () => {
  await using house = await startRelay();
  const client = await house.loggedIn();
  expect(await client.text("MAIL FROM:<a@ok.test> SIZE=26214401")).toMatch(/^552 5\.3\.4 /);
  expect(await client.text("MAIL FROM:<a@ok.test> SIZE=x")).toMatch(/^501 /);
  expect(await client.text("MAIL FROM:<a@ok.test> RET=HDRS")).toMatch(/^555 5\.5\.4 /);
  expect(await client.text("MAIL FROM:<a@ok.test> REQUIRETLS")).toMatch(/^555 5\.5\.4 /);
  expect(await client.text("MAIL FROM:<a@ok.test> SIZE=26214400 BODY=8BITMIME AUTH=<>")).toMatch(/^250 /);
  expect(await client.text("RCPT TO:<b@x.test> NOTIFY=NEVER")).toMatch(/^555 5\.5\.4 /);
});

test("a refused recipient does not stop the others", async () => {
  await using house = await startRelay();
  house.on.recipient = async (address) =>
    address.local === "gone"
      ? new Refusal("recipient_suppressed", "The address is on the suppression list")
      : null;
  const client = await house.loggedIn();
  await client.command("MAIL FROM:<a@ok.test>");
  expect(await client.text("RCPT TO:<gone@x.test>")).toBe(
    "550 5.7.1 The address is on the suppression list (recipient_suppressed)",
  );
  expect(await client.text("RCPT TO:<b@x.test>")).toBe("250 2.1.5 Accepted");
  await client.command("DATA");
  client.send(body);
  expect((await client.answer()).code).toBe(250);
  expect(house.mails[0]?.rcptTo.map((one) => one.email)).toEqual(["b@x.test"]);
});

test("after refused recipients, a nested MAIL or an early DATA the session goes on with RSET", async () => {
  await using house = await startRelay();
  const client = await house.loggedIn();
  house.on.recipient = async () => new Refusal("recipient_suppressed", "No");
  await client.command("MAIL FROM:<a@ok.test>");
  await client.command("RCPT TO:<b@x.test>");
  expect(await client.text("MAIL FROM:<a@ok.test>")).toMatch(/^503 5\.5\.1 /);
  expect(await client.text("DATA")).toMatch(/^503 5\.5\.1 /);
  expect(await client.text("RSET")).toMatch(/^250 /);
  house.on.recipient = async () => null;
  expect((await client.submit("a@ok.test", ["b@x.test"], body)).code).toBe(250);
});

test("EHLO in the middle of a transaction ends it", async () => {
  await using house = await startRelay();
  const client = await house.loggedIn();
  await client.command("MAIL FROM:<a@ok.test>");
  await client.command("RCPT TO:<b@x.test>");
  await client.command("EHLO client.test");
  expect(await client.text("RCPT TO:<b@x.test>")).toMatch(/^503 5\.5\.1 /);
  expect(await client.text("DATA")).toMatch(/^503 5\.5\.1 /);
});

test("a name in EHLO that no host has does not reach the Received field", async () => {
  await using house = await startRelay();
  const client = await house.loggedIn();
  for (const name of ["x(y)<z>", "a;b", "jörg", "-"]) {
    expect((await client.command(`EHLO ${name}`)).code).toBe(250);
    expect((await client.submit("a@ok.test", ["b@x.test"], body)).code).toBe(250);
  }
  expect(house.mails.map((mail) => mail.arrival.helo)).toEqual([null, null, null, null]);
});

test("names each mailbox once and refuses the 101st with 452 4.5.3", async () => {
  await using house = await startRelay();
  const client = await house.loggedIn();
  await client.command("MAIL FROM:<a@ok.test>");
  for (let i = 0; i < 99; i++) expect((await client.command(`RCPT TO:<r${i}@x.test>`)).code).toBe(250);
  expect(await client.text("RCPT TO:<R1@X.test>")).toBe("250 2.1.5 Accepted");
  expect(await client.text('RCPT TO:<"r2"@x.test>')).toBe("250 2.1.5 Accepted");
  expect(await client.text("RCPT TO:<one-more@x.test>")).toMatch(/^452 4\.5\.3 /);
  expect(await client.text("RCPT TO:<r5@x.test>")).toBe("250 2.1.5 Accepted");
  await client.command("DATA");
  client.send(body);
  expect((await client.answer()).code).toBe(250);
  expect(house.mails[0]?.rcptTo).toHaveLength(99);
});

test("no room in the store is 452 4.3.1 at MAIL", async () => {
  await using house = await startRelay();
  house.on.full = true;
  const client = await house.loggedIn();
  expect(await client.text("MAIL FROM:<a@ok.test>")).toMatch(/^452 4\.3\.1 /);
});

const failures: [string, () => Error, RegExp][] = [
  [
    "an unverified sender",
    () => new Refusal("sender_not_verified", "x", { domain: "shop.test" }),
    /^550 5\.7\.1 The domain shop\.test is not verified for sending; verify it with: svc domains verify shop\.test \(sender_not_verified\)$/,
  ],
  [
    "a sender whose domain the account does not have",
    () =>
      new Refusal("sender_not_verified", "x", {
        domain: "shop.test",
        errors: [
          { field: "from", code: "sender_not_verified", issue: "Not yours. Run: svc domains add shop.test" },
        ],
      }),
    /^550 5\.7\.1 Not yours\. Run: svc domains add shop\.test \(sender_not_verified\)$/,
  ],
  [
    "a sender whose domain the operator has stopped",
    () => {
      const issue = "shop.test is suspended: the operator has stopped mail from it";
      return new Refusal("sender_not_verified", "x", {
        domain: "shop.test",
        errors: [{ field: "from", code: "sender_not_verified", issue }],
      });
    },
    /^550 5\.7\.1 shop\.test is suspended: the operator has stopped mail from it \(sender_not_verified\)$/,
  ],
  [
    "an unverified sender with a long list of faults",
    () =>
      new Refusal("sender_not_verified", "x", {
        domain: "shop.test",
        errors: [
          {
            field: "from",
            code: "sender_not_verified",
            issue: `${"x".repeat(400)} svc domains verify shop.test`,
          },
        ],
      }),
    /^550 5\.7\.1 .*svc domains verify shop\.test \(sender_not_verified\)$/,
  ],
  [
    "two problems",
    () =>
      new Refusal("validation_failed", "x", {
        errors: [{ field: "X-Svc-Tags", code: "validation_failed", issue: "is too long" }],
      }),
    /^550 5\.6\.0 X-Svc-Tags: is too long \(validation_failed\)$/,
  ],
  [
    "a long and multi-line detail",
    () => new Refusal("conflict", `é\r\n250 ok ${"x".repeat(900)}`),
    /^550 5\.7\.1 \? 250 ok x+ \(conflict\)$/,
  ],
  [
    "a bare LF",
    () => new MailSyntaxError("bare_line_end", "A line ends in a bare LF"),
    /^550 5\.5\.2 A line/,
  ],
  ["a NUL", () => new MailSyntaxError("nul", "A NUL"), /^550 5\.6\.0 A NUL$/],
  ["two From fields", () => new MailSyntaxError("field_repeated", "Two From"), /^550 5\.6\.0 Two From$/],
  ["a loop", () => new MailSyntaxError("too_many_hops", "In a loop"), /^554 5\.4\.6 In a loop$/],
  ["too much", () => new MailTooLarge(), /^552 5\.3\.4 /],
  ["a full disk", () => new StoreUnavailable("full", "ENOSPC"), /^452 4\.3\.1 /],
  ["a broken disk", () => new StoreUnavailable("failed", "EIO at /var/lib"), /^451 4\.3\.0 (?!.*EIO)/],
  [
    "a bug",
    () => new TypeError("undefined is not a function"),
    /^451 4\.3\.0 Internal error; report \S+ to the operator$/,
  ],
];

test.each(failures)(
  "%s has one reply after the dot, and the next mail goes through",
  async (_name, failure, reply) => {
    await using house = await startRelay();
    const client = await house.loggedIn();
    for (const place of ["begin", "commit"] as const) {
      house.on[place] = async () => Promise.reject(failure());
      const answer = await client.submit("a@ok.test", ["b@x.test"], body);
      expect(answer.text).toMatch(reply);
      expect(Buffer.byteLength(answer.text)).toBeLessThanOrEqual(510);
      house.on[place] = async () => undefined;
    }
    expect(house.mails).toEqual([]);
    expect((await client.submit("a@ok.test", ["b@x.test"], body)).code).toBe(250);
  },
);

test("a bug is logged under the id that the reply names", async () => {
  await using house = await startRelay();
  house.on.commit = async () => Promise.reject(new TypeError("broken"));
  const client = await house.loggedIn();
  const answer = await client.submit("a@ok.test", ["b@x.test"], body);
  const id = /report (\S+) to/.exec(answer.text)?.[1] ?? "none";
  expect(house.logged.some((line) => line.includes(id))).toBe(true);
});

test("26,214,400 bytes pass and one more is 552 5.3.4 after the dot", async () => {
  await using house = await startRelay();
  const client = await house.loggedIn();
  const head = "Subject: x\r\n\r\n";
  const filler = (bytes: number): Buffer =>
    Buffer.from(`${head}${"x".repeat(bytes - head.length - 2)}\r\n.\r\n`);
  expect((await client.submit("a@ok.test", ["b@x.test"], filler(26_214_400))).code).toBe(250);
  expect((await client.submit("a@ok.test", ["b@x.test"], filler(26_214_401))).text).toMatch(/^552 5\.3\.4 /);
  expect(house.mails.map((mail) => mail.data.length)).toEqual([26_214_400]);
  expect((await client.command("NOOP")).code).toBe(250);
});

test("the rest of a mail that is refused at its first byte is thrown away", async () => {
  await using house = await startRelay();
  house.on.begin = async () => Promise.reject(new Refusal("account_paused", "Paused"));
  const client = await house.loggedIn();
  const answer = await client.submit(
    "a@ok.test",
    ["b@x.test"],
    Buffer.from(`${"line\r\n".repeat(400_000)}.\r\n`),
  );
  expect(answer.text).toBe("451 4.7.1 Paused (account_paused)");
  expect((await client.command("NOOP")).code).toBe(250);
});

test("200 pipelined commands of every kind get one reply each, in order", async () => {
  await using house = await startRelay();
  house.on.recipient = async (address) =>
    address.local === "gone" ? new Refusal("recipient_suppressed", "No") : null;
  house.on.commit = async (mail) =>
    mail.mailFrom === "bad@ok.test" ? Promise.reject(new Refusal("sender_not_verified", "No")) : undefined;
  const client = await house.loggedIn();
  const round = (from: string): string =>
    [
      `MAIL FROM:<${from}>`,
      "RCPT TO:<gone@x.test>",
      "RCPT TO:<a@b@c>",
      "RCPT TO:<b@x.test>",
      "DATA",
      body + "NOOP",
      "RSET",
      "VRFY b@x.test",
      "",
    ].join("\r\n");
  const expected = (final: number): number[] => [250, 550, 553, 250, 354, final, 250, 250, 252];
  let sent = "";
  const codes: number[] = [];
  for (let i = 0; i < 22; i++) {
    sent += round(i % 2 === 0 ? "good@ok.test" : "bad@ok.test");
    codes.push(...expected(i % 2 === 0 ? 250 : 550));
  }
  client.send(sent);
  expect((await client.answers(codes.length)).map((answer) => answer.code)).toEqual(codes);
  client.send("QUIT\r\n");
  expect((await client.answer()).code).toBe(221);
  await client.closed;
  expect(client.unread).toEqual([]);
  expect(house.mails).toHaveLength(11);
});

test("a pipelined group whose replies are more than the socket holds is answered to its end", async () => {
  await using house = await startRelay();
  const client = await house.loggedIn();
  client.send(`${"EHLO client.test\r\n".repeat(3000)}QUIT\r\n`);
  const codes = (await client.answers(3001)).map((answer) => answer.code);
  expect(codes.findIndex((code) => code !== 250)).toBe(3000);
  expect(codes.at(-1)).toBe(221);
});

test("VRFY tells nothing of an address, in plain words", async () => {
  await using house = await startRelay();
  const client = await house.loggedIn();
  expect(await client.text("VRFY b@x.test")).toMatch(
    /^252 \d\.\d\.\d Cannot verify the address, but will accept the mail and attempt delivery$/,
  );
});

/** Sends `text` in two packets, parted at `at`. */
async function inTwo(client: SmtpClient, text: string, at: number): Promise<void> {
  client.send(text.slice(0, at));
  await new Promise((resolve) => setImmediate(resolve));
  client.send(text.slice(at));
}

test("dots and line ends are read the same wherever the data is split", async () => {
  await using house: RelayHarness = await startRelay();
  const client = await house.loggedIn();
  const data = "Subject: x\r\n\r\n..\r\n...\r\n..a\r\n\r\n.\r\n";
  const expected = "Subject: x\r\n\r\n.\r\n..\r\n.a\r\n\r\n";
  for (let at = 1; at < data.length; at++) {
    for (const line of ["MAIL FROM:<a@ok.test>", "RCPT TO:<b@x.test>", "DATA"]) await client.command(line);
    await inTwo(client, data, at);
    expect((await client.answer()).code).toBe(250);
  }
  for (const mail of house.mails) expect(mail.data.toString()).toBe(expected);
});
