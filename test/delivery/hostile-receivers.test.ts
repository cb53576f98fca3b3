// A receiver that wants to stop other mail: that of a provider whose hosts it names as its own.
import { afterAll, beforeAll, expect, test } from "vitest";
import { minute, startSender, type Sender } from "./sender.ts";

let sender: Sender;
beforeAll(async () => {
  sender = await startSender({ "big.test": "127.0.0.48", "evil.test": "127.0.0.49" });
  sender.dns.set("evil.test", "MX", ["10 gone.big.test", "20 mx.evil.test"]);
});
afterAll(() => sender?.stop());

test("a domain that names a host of a provider before its own, which hangs, takes none of the provider's connections", async () => {
  sender.receiver("evil.test").options.stall = "banner";
  await sender.send({ to: Array.from({ length: 20 }, (_, i) => `r${i}@evil.test`) });
  const evil = sender.receiver("evil.test");
  await evil.waitFor(() => evil.open === 10);
  const id = await sender.send({ to: "a@big.test" });
  await sender.receiver("big.test").waitForMails(1);
  expect(await sender.events(id, 1)).toMatchObject([{ event: "message.delivered" }]);
  expect(evil.open).toBe(10);
  delete evil.options.stall;
  evil.hangUp();
});

test("nor does it slow the provider's mail down by saying that we are too fast", async () => {
  const evil = sender.receiver("evil.test");
  evil.options.reply = { mail: "421 4.7.28 too many connections from you" };
  sender.clock.skip(10 * minute);
  for (let i = 0; i < 8; i++) {
    await sender.events(await sender.send({ to: `s${i}@evil.test` }), 1);
    sender.clock.skip(6_000);
  }
  const big = sender.receiver("big.test");
  big.options.stall = "banner";
  await sender.send({ to: Array.from({ length: 20 }, (_, i) => `r${i}@big.test`) });
  await big.waitFor(() => big.open === 10);
  delete big.options.stall;
  big.hangUp();
});
