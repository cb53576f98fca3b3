// The reply to each command that is refused before any rule on mail: code, enhanced status and words, as RFC 5321, 3463 and
// 4954 have them, wherever the library beneath would say otherwise.
import { expect, test } from "vitest";
import { plainToken, startRelay } from "../support/relay.ts";

const unknown = "500 5.5.2 Command not recognized; EHLO lists the supported ones";
const absent = (verb: string): string => `502 5.5.1 ${verb} is not supported; EHLO lists what is`;

const inClear: [command: string, reply: string][] = [
  ["AUTH PLAIN AAAA", "530 5.7.0 Authentication requires TLS; send STARTTLS first"],
  ["AUTH", "530 5.7.0 Authentication requires TLS; send STARTTLS first"],
  ["MAIL FROM:<a@ok.test>", "530 5.7.0 Authentication required: send STARTTLS, then AUTH"],
  ["VRFY ann", "252 2.0.0 Cannot verify the address, but will accept the mail and attempt delivery"],
  ["EXPN list", absent("EXPN")],
  ["TURN", absent("TURN")],
  ["ETRN ok.test", absent("ETRN")],
  ["BDAT 5", absent("BDAT")],
  ["SEND FROM:<a@ok.test>", absent("SEND")],
  ["WIZ", unknown],
  ["KILL", unknown],
  ["LHLO client.test", unknown],
  ["XCLIENT ADDR=127.0.0.1", unknown],
  ["FOO", unknown],
  ["STARTTLS now", "501 5.5.4 STARTTLS takes no parameter"],
  ["EHLO", "501 EHLO needs the name of your host"],
  ["HELO", "501 HELO needs the name of your host"],
];

test("what is refused in clear has the code that its RFC gives it", async () => {
  await using house = await startRelay();
  for (const [command, reply] of inClear) {
    const client = await house.client();
    await client.command("EHLO client.test");
    expect([command, await client.text(command)]).toEqual([command, reply]);
  }
});

const afterLogin: [command: string, reply: RegExp][] = [
  [`AUTH PLAIN ${plainToken}`, /^503 5\.5\.1 /],
  ["STARTTLS", /^503 5\.5\.1 /],
  ["RCPT TO:<b@x.test>", /^503 5\.5\.1 /],
  ["DATA", /^503 5\.5\.1 /],
  ["MAIL FROM:<a@ok.test> SIZE=99999999999", /^552 5\.3\.4 /],
  ["MAIL FROM:<a@ok.test> SIZE=x", /^501 5\.5\.4 /],
  ["MAIL FROM:<a@ok.test> BODY=FOO", /^501 5\.5\.4 /],
  ["MAIL FROM:<a@ok.test> RET=FULL", /^555 5\.5\.4 /],
  ["MAIL FROM:a", /^501 5\.1\.7 /],
];

test("what is refused under TLS, after a login, has the code that its RFC gives it", async () => {
  await using house = await startRelay();
  for (const [command, reply] of afterLogin) {
    const client = await house.client();
    await client.startTls();
    expect(await client.text(`AUTH PLAIN ${plainToken}`)).toMatch(/^235 /);
    expect(await client.text(command), command).toMatch(reply);
  }
});
