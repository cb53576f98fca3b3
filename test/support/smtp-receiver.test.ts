import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { startReceiver } from "./smtp-receiver.ts";

async function talk(port: number, text: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let heard = "";
  socket.on("data", (chunk) => (heard += chunk.toString()));
  socket.write(text);
  await once(socket, "close");
  return heard;
}

test("the test receiver takes pipelined mail byte by byte, undoes dot-stuffing and answers by local part", async () => {
  const receiver = await startReceiver();
  const body = "a\r\n..\r\n...x\r\n";
  const heard = await talk(
    receiver.port,
    `EHLO c\r\nMAIL FROM:<s@x.test> SIZE=3\r\nRCPT TO:<tempfail@x.test>\r\nRCPT TO:<ok@x.test>\r\nDATA\r\n${body}.\r\n` +
      "MAIL FROM:<s@x.test>\r\nRCPT TO:<unknown@x.test>\r\nDATA\r\nRSET\r\nQUIT\r\n",
  );
  expect(heard.match(/^\d{3} .*$/gm)?.map((line) => line.trim().slice(0, 9))).toEqual([
    "220 recei",
    "250 ENHAN",
    "250 2.1.0",
    "451 4.3.0",
    "250 2.1.5",
    "354 end w",
    "250 2.0.0",
    "250 2.1.0",
    "550 5.1.1",
    "503 5.5.1",
    "250 2.0.0",
    "221 2.0.0",
  ]);
  const [mail] = await receiver.waitForMails(1);
  expect(mail).toMatchObject({
    mailFrom: "s@x.test",
    mailParameters: "SIZE=3",
    rcptTo: ["ok@x.test"],
    connection: 1,
  });
  expect(mail?.data.toString()).toBe("a\r\n.\r\n..x\r\n");
  expect(mail?.raw.toString()).toBe(`${body}.\r\n`);
  await receiver.stop();
});
