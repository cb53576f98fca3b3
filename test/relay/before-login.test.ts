// What a peer may do before it has logged in, and for how long: slots held without a login shut nobody out.
import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { Refusal } from "../../src/errors.ts";
import { newAccount } from "../support/account.ts";
import { account, plainToken, startRelay } from "../support/relay.ts";
import type { RelayHarness } from "../support/relay.ts";
import { connectSmtp, SmtpClient } from "../support/smtp-client.ts";

const tooLate = "421 4.7.0 No login within 60 seconds; connect again and log in";
const trusted = { trusted: [{ network: "127.0.0.0/8", account: "default" }] };
const mail = "Subject: x\r\n\r\nhi\r\n.\r\n";

/** Half a minute and twenty seconds, in steps of five, with a command on each client at every step. */
async function passWith(house: RelayHarness, ms: number, clients: [SmtpClient, string][]): Promise<void> {
  for (let gone = 0; gone < ms; gone += 5_000) {
    for (const [client, line] of clients) await client.command(line);
    await house.clock.advance(5_000);
  }
}

test("a session without a login ends after 60 seconds, whatever it says meanwhile", async () => {
  await using house = await startRelay();
  const noop = await house.client();
  const ehlo = await house.tlsClient();
  const wrong = await house.tlsClient();
  await passWith(house, 55_000, [
    [noop, "NOOP"],
    [ehlo, "EHLO again.test"],
    [wrong, "AUTH PLAIN AGEAYg=="],
  ]);
  for (const client of [noop, ehlo, wrong]) expect((await client.command("RSET")).code).toBe(250);
  await house.clock.advance(5_000);
  for (const client of [noop, ehlo, wrong]) {
    expect((await client.answer()).text).toBe(tooLate);
    await client.closed;
  }
});

test("STARTTLS does not begin the 60 seconds again, and a handshake left open ends with them", async () => {
  await using house = await startRelay();
  const client = await house.client();
  const stuck = await house.client();
  await passWith(house, 50_000, [
    [client, "NOOP"],
    [stuck, "EHLO a.test"],
  ]);
  await client.startTls();
  await stuck.command("STARTTLS");
  await house.clock.advance(10_000);
  expect((await client.answer()).text).toBe(tooLate);
  await stuck.closed;
  expect(stuck.unread).toEqual([]);
});

test("on the port under TLS the 60 seconds begin with the connection, not with the end of the handshake", async () => {
  await using house = await startRelay();
  const tcp = connect({ port: house.ports.tls, host: "127.0.0.1" });
  await once(tcp, "connect");
  // A reply on another connection: this one has been accepted.
  await house.client();
  await house.clock.advance(20_000);
  const client = new SmtpClient(tcp);
  await client.secure();
  await client.answer();
  await passWith(house, 40_000, [[client, "NOOP"]]);
  expect((await client.answer()).text).toBe(tooLate);
});

test("a login ends the deadline; a login that was revoked begins it again", async () => {
  await using house = await startRelay();
  const client = await house.loggedIn();
  await passWith(house, 250_000, [[client, "NOOP"]]);
  house.on.renew = async () => {
    throw new Refusal("invalid_api_key", "revoked");
  };
  expect((await client.command("MAIL FROM:<a@ok.test>")).code).toBe(535);
  await passWith(house, 60_000, [[client, "NOOP"]]);
  expect((await client.command("NOOP")).code).toBe(250);
  await house.clock.advance(5_000);
  expect((await client.answer()).text).toBe(tooLate);
});

test("a trusted network has no deadline to log in, but one between its commands", async () => {
  await using house = await startRelay(trusted);
  const client = await house.client();
  await passWith(house, 120_000, [[client, "EHLO a.test"]]);
  expect((await client.submit("a@ok.test", ["b@x.test"], mail)).code).toBe(250);
  await house.clock.advance(300_000);
  expect((await client.answer()).text).toMatch(/^421 4\.4\.2 /);
});

test("100 replies without a login end the session; with one, or in a trusted network, they do not", async () => {
  await using house = await startRelay();
  const client = await house.client();
  client.send("NOOP\r\n".repeat(150));
  const answers = await client.answers(100);
  expect(answers.slice(0, 99).every(({ code }) => code === 250)).toBe(true);
  expect(answers[99]?.text).toBe("421 4.7.0 Too many commands without a login");
  await client.closed;
  expect(client.unread).toEqual([]);

  const sender = await house.loggedIn();
  for (let i = 0; i < 150; i++) expect((await sender.command("NOOP")).code).toBe(250);
  await using other = await startRelay(trusted);
  const known = await other.client();
  for (let i = 0; i < 150; i++) expect((await known.command("NOOP")).code).toBe(250);
});

test("many sources that log in nowhere do not shut out one who does, on either port", async () => {
  await using house = await startRelay({ maxConnections: 40, maxConnectionsPerIp: 10 });
  const held: SmtpClient[] = [];
  for (let source = 2; source <= 4; source++)
    for (let i = 0; i < 10; i++) held.push(await house.client({ localAddress: `127.0.0.${source}` }));
  const first = await connectSmtp({ port: house.ports.starttls, localAddress: "127.0.0.5" });
  expect((await first.answer()).code).toBe(220);
  first.end();
  const refused = await connectSmtp({ port: house.ports.starttls, localAddress: "127.0.0.4" });
  expect((await refused.answer()).text).toMatch(/^421 4\.7\.0 /);
  await house.clock.advance(2_000);

  const senders = [await house.loggedIn()];
  const starttls = await house.client();
  await starttls.startTls();
  expect((await starttls.command(`AUTH PLAIN ${plainToken}`)).code).toBe(235);
  senders.push(starttls);
  for (const sender of senders) expect((await sender.submit("a@ok.test", ["b@x.test"], mail)).code).toBe(250);
  expect((await held[0]?.answer())?.text).toBe(
    "421 4.7.0 Too many sessions without a login; try again later",
  );
  await held[0]?.closed;
});

test("handshakes left open on the port under TLS do not shut out others", async () => {
  await using house = await startRelay({ maxConnections: 8, maxConnectionsPerIp: 4 });
  const silent = [];
  for (const localAddress of ["127.0.0.2", "127.0.0.3"])
    for (let i = 0; i < 4; i++) {
      const socket = connect({ port: house.ports.tls, host: "127.0.0.1", localAddress });
      await once(socket, "connect");
      silent.push(once(socket, "close"));
    }
  await house.client();
  await house.clock.advance(2_000);
  const client = await house.loggedIn();
  expect((await client.submit("a@ok.test", ["b@x.test"], mail)).code).toBe(250);
  await silent[0];
});

test("one of several accounts has half of what the others leave; the only account has all", async () => {
  await using house = await startRelay({ maxConnections: 8 });
  const operations = newAccount({ key: 3, name: "operations" });
  house.on.accounts = [account, operations];
  const login = async (): Promise<string> => {
    const client = await house.tlsClient();
    return client.text(`AUTH PLAIN ${plainToken}`);
  };
  for (let i = 0; i < 5; i++) expect(await login()).toMatch(/^235 /);
  house.on.accounts = [account, operations, newAccount({ key: 2, name: "other" })];
  expect(await login()).toBe(
    "421 4.7.0 The account has 5 open sessions, its share of the limit; close some, or try again later",
  );
  expect(house.logged.some((line) => line.includes("is at its share of the session limit"))).toBe(true);
});
