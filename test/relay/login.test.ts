import { expect, test } from "vitest";
import { Refusal } from "../../src/errors.ts";
import { StoreUnavailable } from "../../src/store/store.ts";
import { newAccount } from "../support/account.ts";
import { login, plainToken, startRelay } from "../support/relay.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");

test("offers no AUTH before TLS and answers it and MAIL with 530", async () => {
  await using house = await startRelay();
  const client = await house.client();
  const ehlo = await client.command("EHLO client.test");
  expect(ehlo.lines).toEqual([
    "mail.test",
    "PIPELINING",
    "8BITMIME",
    "SMTPUTF8",
    "ENHANCEDSTATUSCODES",
    "STARTTLS",
    "SIZE 26214400",
  ]);
  for (const command of [`AUTH PLAIN ${plainToken}`, "AUTH LOGIN", "AUTH CRAM-MD5", "AUTH"])
    expect(await client.text(command)).toBe("530 5.7.0 Authentication requires TLS; send STARTTLS first");
  expect(await client.text("MAIL FROM:<a@ok.test>")).toBe(
    "530 5.7.0 Authentication required: send STARTTLS, then AUTH",
  );
  expect(await client.text("RCPT TO:<a@ok.test>")).toMatch(/^503 5\.5\.1 /);
  expect(await client.text("DATA")).toMatch(/^503 5\.5\.1 /);
});

test("offers AUTH PLAIN LOGIN under TLS and asks for it at MAIL", async () => {
  await using house = await startRelay();
  const client = await house.client();
  const ehlo = await client.startTls();
  expect(ehlo.lines.slice(1).toSorted()).toEqual([
    "8BITMIME",
    "AUTH PLAIN LOGIN",
    "ENHANCEDSTATUSCODES",
    "PIPELINING",
    "SIZE 26214400",
    "SMTPUTF8",
  ]);
  expect(await client.text("MAIL FROM:<a@ok.test>")).toMatch(/^530 5\.7\.0 Authentication required/);
  expect(await client.text("STARTTLS")).toMatch(/^503 /);
});

test("AUTH PLAIN for another identity is refused, and so is one without a user name, whatever the password", async () => {
  await using house = await startRelay();
  const client = await house.tlsClient();
  const { username, password } = login;
  const plain = (token: string): Promise<string> => client.text(`AUTH PLAIN ${base64(token)}`);
  expect(await plain(`${username}\0\0${password}`)).toMatch(/^501 5\.5\.2 .*no user name/);
  expect(await plain(`\0\0${password}`)).toMatch(/^501 5\.5\.2 /);
  expect(await plain(`smtp_other\0${username}\0${password}`)).toMatch(
    /^535 5\.7\.8 .*authorization identity/,
  );
  expect(await client.text("MAIL FROM:<a@ok.test>")).toMatch(/^530 /);
  expect(await plain(`\0${username}\0${password}`)).toMatch(/^235 /);
});

test("takes AUTH PLAIN and LOGIN in every form that mail programs send", async () => {
  await using house = await startRelay();
  const forms: [string, string][][] = [
    [[`AUTH PLAIN ${plainToken}`, "235"]],
    [
      ["Auth Plain", "334 "],
      [plainToken, "235"],
    ],
    [
      [`auth login ${base64(login.username)}`, "334 UGFzc3dvcmQ6"],
      [base64(login.password), "235"],
    ],
    [
      ["AUTH LOGIN", "334 VXNlcm5hbWU6"],
      [base64(login.username), "334 UGFzc3dvcmQ6"],
      [base64(login.password), "235"],
    ],
    // .NET and others put the name into the authorization identity.
    [[`AUTH PLAIN ${base64(`${login.username}\0${login.username}\0${login.password}`)}`, "235"]],
  ];
  for (const form of forms) {
    const client = await house.tlsClient();
    for (const [line, start] of form) expect(await client.text(line)).toMatch(new RegExp(`^${start}`));
    expect(await client.text("MAIL FROM:<a@ok.test>")).toBe("250 2.1.0 Accepted");
    client.end();
  }
});

test("what is not base64 is 501, within an exchange too, and never asked for as a login", async () => {
  await using house = await startRelay();
  let asked = 0;
  house.on.authenticate = async () => Promise.reject(new Error(`asked ${++asked} times`));
  const client = await house.tlsClient();
  for (const opening of ["AUTH PLAIN", "AUTH LOGIN"]) {
    expect(await client.text(opening)).toMatch(/^334/);
    expect(await client.text("not base64!")).toMatch(/^501 5\.5\.2 .*base64/);
  }
  await client.command("AUTH LOGIN");
  await client.command(base64(login.username));
  expect(await client.text("abc")).toMatch(/^501 5\.5\.2 /);
  expect(await client.text("AUTH LOGIN abc")).toMatch(/^501 5\.5\.2 /);
  expect(await client.text("NOOP")).toMatch(/^250 /);
  expect(asked).toBe(0);
});

test("a revoked password or a suspended account ends the login at the next MAIL", async () => {
  await using house = await startRelay();
  const client = await house.loggedIn();
  const mail = "Subject: x\r\n\r\nhi\r\n.\r\n";
  expect((await client.submit("a@ok.test", ["b@x.test"], mail)).code).toBe(250);
  const fine = house.on.renew;
  house.on.renew = async () => Promise.reject(new Refusal("key_disabled", "The account is suspended."));
  expect(await client.text("MAIL FROM:<a@ok.test>")).toMatch(/^535 5\.7\.8 The account is suspended/);
  house.on.renew = fine;
  expect(await client.text("MAIL FROM:<a@ok.test>")).toMatch(/^530 5\.7\.0 /);
  expect((await client.command(`AUTH PLAIN ${plainToken}`)).code).toBe(235);
  expect((await client.submit("a@ok.test", ["b@x.test"], mail)).code).toBe(250);
  house.on.renew = async () => Promise.reject(new StoreUnavailable("failed", "EIO"));
  expect(await client.text("MAIL FROM:<a@ok.test>")).toMatch(/^451 4\.3\.0 /);
  house.on.renew = fine;
  expect(await client.text("MAIL FROM:<a@ok.test>")).toMatch(/^250 /);
});

test("a cancelled or malformed AUTH is 501 and the session goes on", async () => {
  await using house = await startRelay();
  const client = await house.tlsClient();
  expect(await client.text("AUTH PLAIN =")).toMatch(/^501 /);
  expect(await client.text("AUTH PLAIN *")).toMatch(/^501 /);
  expect(await client.text("AUTH PLAIN !!!!")).toMatch(/^501 /);
  expect(await client.text("AUTH PLAIN")).toBe("334 ");
  expect(await client.text("*")).toBe("501 5.0.0 Authentication cancelled");
  await client.command("AUTH LOGIN");
  expect(await client.text("*")).toBe("501 5.0.0 Authentication cancelled");
  expect(await client.text("AUTH CRAM-MD5")).toMatch(/^504 /);
  expect(await client.text(`AUTH PLAIN ${plainToken}`)).toMatch(/^235 2\.7\.0 /);
  expect(await client.text(`AUTH PLAIN ${plainToken}`)).toMatch(/^503 5\.5\.1 /);
});

test("says why a login is refused, by the code", async () => {
  await using house = await startRelay();
  const client = await house.tlsClient();
  const attempt = (password: string): Promise<string> =>
    client.text(`AUTH PLAIN ${base64(`\0${login.username}\0${password}`)}`);
  expect(await attempt("wrong")).toBe("535 5.7.8 Bad username or password (invalid_api_key)");
  expect(await attempt("svc_live_abc")).toMatch(/^535 5\.7\.8 .*API key.*svc smtp-credentials create/);
  expect(await client.text(`AUTH PLAIN ${base64("\0shop@ok.test\0x")}`)).toMatch(
    /^535 5\.7\.8 Not a user name of this server: these begin with smtp_/,
  );
  house.on.authenticate = async () => Promise.reject(new Refusal("source_ip_locked", "Locked"));
  expect(await attempt("x")).toMatch(/^454 4\.7\.0 /);
  house.on.authenticate = async () => Promise.reject(new Refusal("key_disabled", "Suspended"));
  expect(await attempt("x")).toMatch(/^535 5\.7\.8 /);
  house.on.authenticate = async () => Promise.reject(new StoreUnavailable("failed", "EIO"));
  expect(await attempt("x")).toMatch(/^454 4\.7\.0 /);
  house.on.authenticate = async () => Promise.reject(new Error("a bug: svc.db"));
  const answer = await attempt("x");
  expect(answer).toMatch(/^454 4\.7\.0 Internal error; report \S+ to the operator$/);
});

test("neither a password nor a user name is in the log", async () => {
  await using house = await startRelay();
  const client = await house.tlsClient();
  await client.command(`AUTH PLAIN ${base64(`\0${login.username}\0hunter2`)}`);
  await client.command("AUTH LOGIN");
  await client.command(base64(login.username));
  await client.command(base64("hunter2"));
  await client.command(`AUTH PLAIN ${plainToken}`);
  expect(house.logged.length).toBeGreaterThan(0);
  const text = house.logged.join("\n");
  for (const secret of ["hunter2", login.password, login.username, plainToken, base64("hunter2")])
    expect(text).not.toContain(secret);
});

test("a peer in a trusted network sends as its account without TLS and without a login", async () => {
  await using house = await startRelay({ trusted: [{ network: "127.0.0.8/30", account: "default" }] });
  const stranger = await house.client();
  await stranger.command("EHLO client.test");
  expect((await stranger.command("MAIL FROM:<a@ok.test>")).code).toBe(530);

  const client = await house.client({ localAddress: "127.0.0.9" });
  await client.command("EHLO printer.test");
  const answer = await client.submit("a@ok.test", ["b@x.test"], "Subject: x\r\n\r\nhi\r\n.\r\n");
  expect(answer.text).toBe("250 2.0.0 queued as msg_1");
  expect(house.mails[0]?.sender).toMatchObject({ account: { name: "default" }, test: false, apiKey: null });
  expect(house.mails[0]?.arrival).toEqual({ ip: "127.0.0.9", helo: "printer.test", protocol: "ESMTP" });
});

test("a trusted network whose account is missing or suspended sends nothing", async () => {
  await using house = await startRelay({ trusted: [{ network: "127.0.0.0/8", account: "default" }] });
  const client = await house.client();
  await client.command("EHLO client.test");
  house.on.accounts = [];
  expect(await client.text("MAIL FROM:<a@ok.test>")).toMatch(/^451 4\.3\.5 /);
  house.on.accounts = [newAccount({ status: "suspended" })];
  expect(await client.text("MAIL FROM:<a@ok.test>")).toMatch(/^535 5\.7\.8 /);
});

test("AUTH during a mail transaction is 503", async () => {
  await using house = await startRelay({ trusted: [{ network: "127.0.0.0/8", account: "default" }] });
  const client = await house.tlsClient();
  await client.command("MAIL FROM:<a@ok.test>");
  expect(await client.text(`AUTH PLAIN ${plainToken}`)).toMatch(/^503 5\.5\.1 /);
  await client.command("RSET");
  expect((await client.command(`AUTH PLAIN ${plainToken}`)).code).toBe(235);
});
