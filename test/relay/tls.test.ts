import { once } from "node:events";
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";
import { expect, test } from "vitest";
import { largeClientHello, octetByOctet, openHandshakes, renegotiations } from "../support/hostile-tls.ts";
import { plainToken, renewedCertificate, startRelay } from "../support/relay.ts";
import { connectSmtp } from "../support/smtp-client.ts";

test("what was pipelined behind STARTTLS in clear text is discarded", async () => {
  await using house = await startRelay({ trusted: [{ network: "127.0.0.0/8", account: "default" }] });
  for (const injected of [
    "NOOP\r\nMAIL FROM:<x@ok.test>\r\n",
    "EHLO evil.test\r\nMAIL FROM:<x@ok.test>\r\nRCPT TO:<v@x.test>\r\nDATA\r\n",
    "NOOP\r\n".repeat(500),
  ]) {
    const client = await house.client();
    await client.command("EHLO client.test");
    client.send(`STARTTLS\r\n${injected}`);
    expect((await client.answer()).code).toBe(220);
    await client.secure();
    // The first reply is that to the first command under TLS, and nothing of before is known.
    expect(await client.text("RCPT TO:<b@x.test>")).toMatch(/^503 5\.5\.1 .*EHLO/);
    await client.command("EHLO client.test");
    expect(await client.text("RCPT TO:<b@x.test>")).toMatch(/^503 5\.5\.1 .*MAIL/);
    expect(client.unread).toEqual([]);
    client.end();
  }
  expect(house.mails).toEqual([]);
});

test("a session starts over under TLS: EHLO and AUTH come after it", async () => {
  await using house = await startRelay();
  const client = await house.client();
  await client.command("EHLO client.test");
  await client.command("STARTTLS");
  await client.secure();
  expect(await client.text("MAIL FROM:<a@ok.test>")).toMatch(/^503 /);
  expect(await client.text(`AUTH PLAIN ${plainToken}`)).toMatch(/^503 /);
});

test("refuses TLS 1.1 and takes TLS 1.2 on both kinds of port", async () => {
  await using house = await startRelay();
  const old = { minVersion: "TLSv1.1", maxVersion: "TLSv1.1", ciphers: "ALL@SECLEVEL=0" } as const;
  const refused = connectTls({ port: house.ports.tls, host: "127.0.0.1", rejectUnauthorized: false, ...old });
  await expect(once(refused, "secureConnect")).rejects.toThrow();

  const client = await house.client();
  await client.command("EHLO client.test");
  await client.command("STARTTLS");
  await expect(client.secure(old)).rejects.toThrow();

  const fine = connectTls({
    port: house.ports.tls,
    host: "127.0.0.1",
    rejectUnauthorized: false,
    maxVersion: "TLSv1.2",
  });
  await once(fine, "secureConnect");
  expect(fine.getProtocol()).toBe("TLSv1.2");
  fine.destroy();
  const other = await house.client();
  await other.command("EHLO client.test");
  await other.command("STARTTLS");
  expect((await other.secure({ maxVersion: "TLSv1.2" })).getProtocol()).toBe("TLSv1.2");
});

test("a new certificate is shown from the next handshake on and drops no session", async () => {
  await using house = await startRelay();
  const subject = async (): Promise<unknown[]> => {
    const client = await house.client();
    await client.command("EHLO client.test");
    await client.command("STARTTLS");
    const upgraded = await client.secure();
    const direct = connectTls({ port: house.ports.tls, host: "127.0.0.1", rejectUnauthorized: false });
    await once(direct, "secureConnect");
    const found = [upgraded.getPeerCertificate().subject.CN, direct.getPeerCertificate().subject.CN];
    direct.destroy();
    client.end();
    return found;
  };
  const session = await house.loggedIn();
  expect(await subject()).toEqual(["mail.test", "mail.test"]);
  house.setCertificate(renewedCertificate);
  expect(await subject()).toEqual(["renewed.test", "renewed.test"]);
  expect((await session.command("NOOP")).code).toBe(250);
});

test("a handshake that is never finished after STARTTLS ends within 30 s, whatever trickles in", async () => {
  await using house = await startRelay();
  const client = await house.client();
  await client.command("EHLO client.test");
  await client.command("STARTTLS");
  client.send(Buffer.from("1603010200", "hex"));
  await house.clock.advance(20_000);
  client.send(Buffer.from("01", "hex"));
  await house.clock.advance(10_000);
  await client.closed;
});

test("two hundred clients that never finish the handshake after STARTTLS are gone within 30 s, and a session stays", async () => {
  await using house = await startRelay();
  const session = await house.loggedIn();
  const clients = await Promise.all(
    Array.from({ length: 200 }, async () => {
      const client = await house.client();
      await client.command("EHLO client.test");
      await client.command("STARTTLS");
      return client;
    }),
  );
  await house.clock.advance(30_000);
  await Promise.all(clients.map((client) => client.closed));
  expect((await session.command("NOOP")).code).toBe(250);
});

test("two hundred clients that never finish their handshake on the port under TLS are gone within 30 s, and a session stays", async () => {
  await using house = await startRelay();
  const { closed, trickle } = await openHandshakes(house.ports.tls, 200);
  const session = await house.loggedIn(); // behind them in the line: they have been accepted
  await house.clock.advance(20_000);
  trickle();
  await session.command("NOOP");
  await house.clock.advance(10_000);
  await closed;
  expect((await session.command("NOOP")).code).toBe(250);
});

test("a reset in the handshake, on both kinds of port, leaves the relay at work", async () => {
  await using house = await startRelay();
  for (let i = 0; i < 50; i++) {
    const client = await house.client();
    await client.command("EHLO client.test");
    await client.command("STARTTLS");
    if (i % 2 === 0) client.send(Buffer.from("160301020001", "hex"));
    client.reset();
    const direct = await connectSmtp({ port: house.ports.tls });
    direct.send(Buffer.from("160301020001", "hex"));
    direct.reset();
  }
  expect((await (await house.loggedIn()).command("NOOP")).code).toBe(250);
});

test("clear text on the port under TLS ends the connection at once, without a reply in clear", async () => {
  await using house = await startRelay();
  const socket = connect(house.ports.tls, "127.0.0.1");
  let heard = "";
  socket.on("error", () => undefined).on("data", (chunk: Buffer) => (heard += chunk.toString("latin1")));
  socket.write("EHLO client.test\r\n");
  await once(socket, "close");
  expect(heard).not.toMatch(/220|250/);
});

test("a renegotiation is refused", async () => {
  await using house = await startRelay();
  expect(await renegotiations(house.ports.tls)).toBe(0);
  expect((await (await house.loggedIn()).command("NOOP")).code).toBe(250);
});

test("a ClientHello of 16 MB is cut off at its beginning", async () => {
  await using house = await startRelay();
  await largeClientHello(house.ports.tls);
  expect((await (await house.loggedIn()).command("NOOP")).code).toBe(250);
});

test("records of one octet are read as any others", async () => {
  await using house = await startRelay();
  const { socket, send } = await octetByOctet(house.ports.tls);
  let heard = "";
  socket.on("data", (chunk: Buffer) => (heard += chunk.toString()));
  await once(socket, "data"); // the greeting
  send(`EHLO client.test\r\n${"NOOP\r\n".repeat(20)}QUIT\r\n`);
  await once(socket, "close");
  expect(heard.match(/^250 2\.0\.0/gm)).toHaveLength(20);
  expect(heard).toMatch(/^221 /m);
});

test("the replies to a pipelined group leave together, in one record, and alone those to what comes alone", async () => {
  await using house = await startRelay();
  const client = await house.client();
  await client.command("EHLO client.test");
  await client.command("STARTTLS");
  const socket = await client.secure();
  await client.command("EHLO client.test");
  await client.command(`AUTH PLAIN ${plainToken}`);
  const records: string[] = [];
  socket.on("data", (bytes: Buffer) =>
    records.push(bytes.toString().replaceAll(/[^\r\n]*?(\d{3}) [^\r\n]*\r\n/g, "$1 ")),
  );
  client.send("MAIL FROM:<a@ok.test>\r\nRCPT TO:<b@x.test>\r\nDATA\r\n");
  await client.answers(3);
  client.send("Subject: x\r\n\r\nx\r\n.\r\n");
  await client.answer();
  await client.command("NOOP");
  client.send("RSET\r\nQUIT\r\n");
  await client.answers(2);
  expect(records).toEqual(["250 250 354 ", "250 ", "250 ", "250 221 "]);
});
