import { expect, test } from "vitest";
import { Refusal } from "../../src/errors.ts";
import { plainToken, startRelay } from "../support/relay.ts";
import { connectSmtp } from "../support/smtp-client.ts";
import type { SmtpClient } from "../support/smtp-client.ts";

test("the 20th bad command is 421 4.7.0, and what was pipelined behind it is not executed", async () => {
  await using house = await startRelay();
  const client = await house.loggedIn();
  const bad = [
    "FOO",
    "MAIL FROM:a",
    "RCPT TO:<b@x.test>",
    "DATA",
    "EHLO",
    "XCLIENT NAME=x",
    "BDAT 1",
    "AUTH PLAIN x",
  ];
  for (let i = 0; i < 19; i++)
    expect((await client.command(bad[i % bad.length] ?? "")).code).toBeGreaterThanOrEqual(500);
  client.send("FOO\r\nNOOP\r\n");
  expect((await client.answer()).text).toBe("421 4.7.0 Too many bad commands");
  await client.closed;
  expect(client.unread).toEqual([]);
});

test("failed logins count among the 20, refused recipients do not", async () => {
  await using house = await startRelay();
  house.on.recipient = async () => new Refusal("recipient_suppressed", "No");
  const sender = await house.loggedIn();
  await sender.command("MAIL FROM:<a@ok.test>");
  for (let i = 0; i < 40; i++) expect((await sender.command(`RCPT TO:<r${i}@x.test>`)).code).toBe(550);

  const guesser = await house.tlsClient();
  for (let i = 0; i < 19; i++) expect((await guesser.command("AUTH PLAIN AGEAYg==")).code).toBe(535);
  expect(await guesser.text("AUTH PLAIN AGEAYg==")).toBe("421 4.7.0 Too many bad commands");
});

test("a line of more than 12,288 bytes is 500 5.5.2 and ends the session", async () => {
  await using house = await startRelay();
  const client = await house.tlsClient();
  expect(await client.text(`AUTH PLAIN ${"A".repeat(13_000)}`)).toBe("500 5.5.2 Line too long");
  await client.closed;
});

test("HTTP on the port is refused with one 421", async () => {
  await using house = await startRelay();
  const client = await house.client();
  expect(await client.text("POST / HTTP/1.1\r\nHost: x\r\n\r\n")).toMatch(/^421 4\.7\.0 /);
  await client.closed;
});

test("connections beyond the limit of a peer get 421 4.7.0 as their banner, those of others do not", async () => {
  await using house = await startRelay({ maxConnectionsPerIp: 2, maxConnections: 3 });
  const first = await house.loggedIn();
  await house.loggedIn();
  for (const options of [{ port: house.ports.starttls }, { port: house.ports.tls, tls: true }]) {
    const third = await connectSmtp(options);
    expect((await third.answer()).text).toMatch(/^421 4\.7\.0 /);
    await third.closed;
  }
  const other = await connectSmtp({ port: house.ports.starttls, localAddress: "127.0.0.2" });
  expect((await other.answer()).code).toBe(220);
  const beyondAll = await connectSmtp({ port: house.ports.starttls, localAddress: "127.0.0.3" });
  expect((await beyondAll.answer()).code).toBe(421);

  first.send("QUIT\r\n");
  await first.closed;
  expect((await (await lastPlace(house.ports.starttls)).command("NOOP")).code).toBe(250);
});

test("a place is given back once, also after STARTTLS and a reset", async () => {
  await using house = await startRelay({ maxConnectionsPerIp: 1 });
  for (let i = 0; i < 5; i++) {
    const client = await lastPlace(house.ports.starttls);
    if (i % 2 === 0) await client.startTls();
    const second = await connectSmtp({ port: house.ports.starttls });
    expect((await second.answer()).code).toBe(421);
    client.reset();
  }
  expect((await (await lastPlace(house.ports.starttls)).command("NOOP")).code).toBe(250);
});

/** A place is free some moments after its client has gone; the test's own limit ends the asking. */
async function lastPlace(port: number): Promise<SmtpClient> {
  for (;;) {
    const client = await connectSmtp({ port });
    if ((await client.answer()).code === 220) return client;
  }
}

test("five minutes without a command are 421 4.4.2, however its bytes trickle in", async () => {
  await using house = await startRelay();
  const [silent, slow, busy] = [await house.loggedIn(), await house.loggedIn(), await house.loggedIn()];
  for (let minute = 0; minute < 5; minute++) {
    slow.send("N");
    await busy.command("NOOP");
    await house.clock.advance(60_000);
  }
  expect((await silent.answer()).text).toMatch(/^421 4\.4\.2 /);
  expect((await slow.answer()).text).toMatch(/^421 4\.4\.2 /);
  expect((await busy.command("NOOP")).code).toBe(250);
});

test("data may take as long as it comes at 1 KB a second", async () => {
  await using house = await startRelay();
  const client = await house.loggedIn();
  for (const line of ["MAIL FROM:<a@ok.test>", "RCPT TO:<b@x.test>", "DATA"]) await client.command(line);
  client.send("line\r\n".repeat(50_000));
  // What the relay has read is seen in what it has answered: here nothing, so the upload is still on.
  await settleReads(house);
  await house.clock.advance(500_000);
  expect(client.unread).toEqual([]);
  await house.clock.advance(200_000);
  expect((await client.answer()).text).toMatch(/^421 4\.4\.2 /);
  await client.closed;
  expect(house.mails).toEqual([]);
});

/** The relay has read what was sent on other connections when a later one has had its reply. */
async function settleReads(house: {
  client(): Promise<{ command(line: string): Promise<unknown>; end(): void }>;
}): Promise<void> {
  for (let i = 0; i < 20; i++) {
    const probe = await house.client();
    await probe.command("NOOP");
    probe.end();
  }
}

test("a store that takes its time is waited for", async () => {
  await using house = await startRelay();
  const commit = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  house.on.commit = () => (begun.resolve(), commit.promise);
  const client = await house.client();
  await client.startTls();
  await client.command(`AUTH PLAIN ${plainToken}`);
  const answer = client.submit("a@ok.test", ["b@x.test"], "Subject: x\r\n\r\nhi\r\n.\r\n");
  await begun.promise;
  await house.clock.advance(900_000);
  commit.resolve();
  expect((await answer).code).toBe(250);
});

test("1,000 resets in the middle of data leave no mail and no error, and the next client is served", async () => {
  await using house = await startRelay({ trusted: [{ network: "127.0.0.0/8", account: "default" }] });
  const chunk = "line\r\n".repeat(1_700);
  const one = async (): Promise<void> => {
    const client = await house.client();
    client.send("EHLO c.test\r\nMAIL FROM:<a@ok.test>\r\nRCPT TO:<b@x.test>\r\nDATA\r\n");
    await client.answers(4);
    client.send(chunk);
    client.reset();
  };
  for (let i = 0; i < 40; i++) await Promise.all(Array.from({ length: 25 }, one));
  const client = await house.loggedIn();
  expect((await client.submit("a@ok.test", ["b@x.test"], "Subject: x\r\n\r\nhi\r\n.\r\n")).code).toBe(250);
  expect(house.mails).toHaveLength(1);
  expect(house.logged.filter((line) => line.startsWith("error"))).toEqual([]);
});

test("a client that is gone after the dot has its mail stored once", async () => {
  await using house = await startRelay();
  const stored = Promise.withResolvers<void>();
  house.on.commit = async () => stored.resolve();
  const client = await house.loggedIn();
  for (const line of ["MAIL FROM:<a@ok.test>", "RCPT TO:<b@x.test>", "DATA"]) await client.command(line);
  client.send("Subject: x\r\n\r\nhi\r\n.\r\nQUIT\r\n");
  client.end();
  await stored.promise;
  expect((await (await house.client()).command("NOOP")).code).toBe(250);
  expect(house.mails).toHaveLength(1);
});
