// Submission while the account is paused, and in maintenance.
import { expect, test } from "vitest";
import { Refusal } from "../../src/errors.ts";
import { newAccount } from "../support/account.ts";
import { account, startRelay } from "../support/relay.ts";
import { connectSmtp } from "../support/smtp-client.ts";

const paused = { pausedAt: 1, pauseReason: "12.5 % hard bounces" };

test("a paused account's MAIL is 451 4.7.1 with why, and the session goes on", async () => {
  await using house = await startRelay();
  const client = await house.loggedIn();
  house.on.renew = async (login) => ({ ...login, account: { ...account, ...paused } });
  expect(await client.text("MAIL FROM:<a@ok.test>")).toBe(
    "451 4.7.1 Sending is paused: 12.5 % hard bounces. The operator ends that with: svc accounts resume default (account_paused)",
  );
  house.on.renew = async (login) => ({ ...login, account });
  expect(await client.text("MAIL FROM:<a@ok.test>")).toMatch(/^250 /);
});

test("so is that of a trusted network", async () => {
  await using house = await startRelay({ trusted: [{ network: "127.0.0.0/8", account: "default" }] });
  house.on.accounts = [newAccount(paused)];
  const client = await house.client();
  await client.command("EHLO client.test");
  expect(await client.text("MAIL FROM:<a@ok.test>")).toMatch(/^451 4\.7\.1 .*\(account_paused\)$/);
});

test("in maintenance a new session is greeted with 421 4.3.2 and closed; one that stands hears it at its next MAIL", async () => {
  await using house = await startRelay();
  const busy = await house.loggedIn();
  await busy.command("MAIL FROM:<a@ok.test>");
  house.on.closed = new Refusal("maintenance", "The service is in maintenance.");
  for (const tls of [false, true]) {
    const client = await connectSmtp({ port: tls ? house.ports.tls : house.ports.starttls, tls });
    expect((await client.answer()).text).toMatch(/^421 4\.3\.2 In maintenance/);
    await client.closed;
  }
  expect(await busy.text("RCPT TO:<b@x.test>")).toMatch(/^250 /);
  await busy.command("DATA");
  busy.send("From: a@ok.test\r\nSubject: x\r\n\r\nhello\r\n.\r\n");
  expect((await busy.answer()).code).toBe(250);
  expect(await busy.text("MAIL FROM:<a@ok.test>")).toMatch(/^421 4\.3\.2 .*\(maintenance\)$/);
  await busy.closed;
  house.on.closed = null;
  expect(await (await house.loggedIn()).text("MAIL FROM:<a@ok.test>")).toMatch(/^250 /);
});
