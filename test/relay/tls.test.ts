import { once } from "node:events";
import { connect as connectTls } from "node:tls";
import { expect, test } from "vitest";
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
