// The log of the running program: one line an outcome, with the ids by which it is found again.
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../support/appliance.ts";
import { startSending, type Sending } from "../support/sending.ts";

let sending: Sending;
beforeAll(async () => {
  sending = await startSending("one.test", { address: "127.0.0.84" }, { outbound: { retry: ["1s"] } });
});
afterAll(() => sending?.stop());

test("each outcome is one line, with message, recipient, attempt and the reply; none of the mail's content", async () => {
  const { svc, key, receiver } = sending;
  receiver.options.reply = { rcpt: "451 4.7.1 later" };
  const body = { from: "a@ok.test", to: "ann@one.test", subject: "x", text: "confidential" };
  const { json } = await svc.api(key, "POST", "/v1/messages", body);
  const outcomes = () =>
    svc
      .log()
      .split("\n")
      .filter((line) => line.includes(json.id))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  await eventually(async () => outcomes().length > 0);
  receiver.options.reply = {};
  await eventually(async () => outcomes().some(({ msg }) => msg === "delivered"));
  const common = { level: "info", component: "queue", message: json.id, to: "ann@one.test" };
  expect(outcomes()[0]).toMatchObject({
    ...common,
    msg: "deferred",
    attempt: 1,
    code: 451,
    status: "4.7.1",
    next_attempt_at: expect.stringMatching(/^20/),
  });
  expect(outcomes().at(-1)).toMatchObject({ ...common, msg: "delivered", code: 250, address: "127.0.0.84" });
  expect(outcomes().map(({ attempt }) => attempt)).toEqual(outcomes().map((_, n) => n + 1));
  expect(svc.log()).not.toContain("confidential");
  expect(svc.log()).not.toContain(key);
});
