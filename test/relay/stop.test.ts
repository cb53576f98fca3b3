import { connect } from "node:net";
import { once } from "node:events";
import { expect, test } from "vitest";
import { startRelay } from "../support/relay.ts";

const body = "Subject: x\r\n\r\nhi\r\n.\r\n";
const farewell = "421 4.3.2 Shutting down; try again later";

test("at shutdown idle sessions get 421 at once and no new ones are taken", async () => {
  await using house = await startRelay();
  const clear = await house.client();
  const secure = await house.loggedIn();
  const stopped = house.relay.stop();
  for (const client of [clear, secure]) {
    expect((await client.answer()).text).toBe(farewell);
    await client.closed;
  }
  await stopped;
  await expect(once(connect(house.ports.starttls, "127.0.0.1"), "connect")).rejects.toThrow("ECONNREFUSED");
});

test("at shutdown a mail that is being stored gets its 250 first, then the farewell", async () => {
  await using house = await startRelay();
  const commit = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  house.on.commit = () => (begun.resolve(), commit.promise);
  const client = await house.loggedIn();
  const answer = client.submit("a@ok.test", ["b@x.test"], body);
  await begun.promise;
  const stopped = house.relay.stop();
  await house.clock.advance(60_000);
  commit.resolve();
  expect((await answer).text).toBe("250 2.0.0 queued as msg_1");
  expect((await client.answer()).text).toBe(farewell);
  await stopped;
  expect(house.mails).toHaveLength(1);
});

test("at shutdown a busy session gets the farewell in place of its next reply", async () => {
  await using house = await startRelay();
  const recipient = Promise.withResolvers<null>();
  const asked = Promise.withResolvers<void>();
  house.on.recipient = () => (asked.resolve(), recipient.promise);
  const client = await house.loggedIn();
  await client.command("MAIL FROM:<a@ok.test>");
  client.send("RCPT TO:<b@x.test>\r\nNOOP\r\n");
  await asked.promise;
  const stopped = house.relay.stop();
  recipient.resolve(null);
  expect((await client.answer()).text).toBe(farewell);
  await client.closed;
  await stopped;
  expect(client.unread).toEqual([]);
});

test("at shutdown an upload may end within ten seconds, and is to be sent again", async () => {
  await using house = await startRelay();
  const uploader = await house.loggedIn();
  const staller = await house.loggedIn();
  for (const client of [uploader, staller]) {
    for (const line of ["MAIL FROM:<a@ok.test>", "RCPT TO:<b@x.test>", "DATA"]) await client.command(line);
    client.send("Subject: x\r\n\r\n");
  }
  const stopped = house.relay.stop();
  await house.clock.advance(5_000);
  expect(uploader.unread).toEqual([]);
  uploader.send("hi\r\n.\r\n");
  expect((await uploader.answer()).text).toBe(farewell);
  await house.clock.advance(6_000);
  expect((await staller.answer()).text).toBe(farewell);
  await stopped;
  expect(house.mails).toEqual([]);
});

test("at shutdown an unfinished handshake and a peer that does not hang up delay nothing", async () => {
  await using house = await startRelay();
  const upgrading = await house.client();
  await upgrading.command("EHLO client.test");
  await upgrading.command("STARTTLS");
  const handshaking = connect(house.ports.tls, "127.0.0.1");
  const stubborn = connect({ port: house.ports.starttls, host: "127.0.0.1", allowHalfOpen: true });
  stubborn.on("error", () => undefined);
  handshaking.on("error", () => undefined);
  await Promise.all([once(handshaking, "connect"), once(stubborn, "data")]);
  const stopped = house.relay.stop();
  await house.clock.advance(12_000);
  await stopped;
  stubborn.destroy();
});

test("a port that is taken fails the start and leaves no other open", async () => {
  await using house = await startRelay();
  const taken = { host: "127.0.0.1", port: house.ports.starttls };
  await expect(startRelay({ starttls: [{ host: "127.0.0.1", port: 0 }, taken] })).rejects.toThrow(
    "EADDRINUSE",
  );
});
