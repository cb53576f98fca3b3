import { expect, test } from "vitest";
import { startReceiver } from "../support/smtp-receiver.ts";
import { message, rig } from "./rig.ts";

test("delivers a message with its signature on top and keeps the connection for the next", async () => {
  const receiver = await startReceiver();
  const { send, delivery } = rig({ port: receiver.port });
  const first = await send("a@x.test", { signature: "DKIM-Signature: v=1\r\n" });
  expect(first).toMatchObject({
    kind: "delivered",
    reply: { code: 250, status: "2.0.0", text: "2.0.0 taken" },
  });
  await send("b@x.test");
  expect(receiver.connections).toBe(1);
  expect(receiver.mails.map((mail) => mail.rcptTo)).toEqual([["a@x.test"], ["b@x.test"]]);
  expect(receiver.mails[0]?.data.toString()).toBe(`DKIM-Signature: v=1\r\n${message}`);
  expect(receiver.mails[0]?.mailFrom).toBe("b+1@bounce.ok.test");
  await delivery.stop();
  expect(receiver.commands.at(-1)).toBe("QUIT");
  await receiver.stop();
});
