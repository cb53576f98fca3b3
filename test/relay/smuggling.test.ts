import { expect, test } from "vitest";
import { MailIntake } from "../../src/mail/intake.ts";
import { startRelay } from "../support/relay.ts";

// CVE-2023-51764, -51765, -51766: an end of data that one server sees and the next does not.
const endings = [
  "\n.\n",
  "\n.\r\n",
  "\r\n.\n",
  "\r.\r",
  "\r\n.\r",
  "\r.\n",
  "\r\n\0.\r\n",
  "\n.\r",
  "\r\r\n.\r\n",
];
const second =
  "MAIL FROM:<boss@ok.test>\r\nRCPT TO:<victim@x.test>\r\nDATA\r\nSubject: two\r\n\r\ntwo\r\n.\r\n";

test.each(endings.map((ending) => [JSON.stringify(ending), ending]))(
  "data with %s in it brings no second mail in and is refused",
  async (_name, ending) => {
    await using house = await startRelay();
    house.on.commit = async (mail) => {
      const intake = new MailIntake();
      intake.push(mail.data);
      intake.end();
    };
    const client = await house.loggedIn();
    const answer = await client.submit(
      "a@ok.test",
      ["b@x.test"],
      `From: a@ok.test\r\n\r\none${ending}${second}QUIT\r\n`,
    );
    expect(answer.text).toMatch(ending.includes("\0") ? /^550 5\.(6\.0|5\.2) / : /^550 5\.5\.2 /);
    await client.closed;
    // Only CR CR LF . CR LF ends the data: what follows are commands of the same, logged-in sender.
    expect(house.mails.map((mail) => mail.mailFrom)).toEqual(
      ending === "\r\r\n.\r\n" ? ["boss@ok.test"] : [],
    );
  },
);

test("BDAT is not known and what follows it is not mail", async () => {
  await using house = await startRelay();
  const client = await house.loggedIn();
  await client.command("MAIL FROM:<a@ok.test>");
  await client.command("RCPT TO:<b@x.test>");
  expect(await client.text("BDAT 10 LAST")).toMatch(/^502 5\.5\.1 /);
});
