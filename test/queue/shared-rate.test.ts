// Ready queues that send from one address share the rate of its limiter: each gets its turn, however long another's backlog.
import { expect, test } from "vitest";
import { makeJob } from "../support/jobs.ts";
import { bench, from, type Bench } from "./runner-rig.ts";

const shaping = { groups: { "x.test": { connections: 100, per_second: 5 } } };

async function backlogs(options: Parameters<typeof bench>[0], queueNames: string[]): Promise<Bench> {
  const rig = bench({ groupOf: () => "x.test", shaping, ...options });
  for (const [n, queueName] of queueNames.entries())
    for (let i = 0; i < 400; i++)
      rig.queue.add(makeJob(1000 * n + i, { domain: "x.test", queueName }), rig.clock.now());
  await rig.runner.start();
  return rig;
}
const sentOf = ({ begun }: Bench, queueName: string): number =>
  begun.filter((job) => job.queueName === queueName).length;

test.each([0, 30, 200, 1300])(
  "accounts share the rate of an address where an attempt takes %i ms",
  async (ms) => {
    const names = ["1.default/x.test", "2.default/x.test", "3.default/x.test"];
    const rig = await backlogs(
      {
        readyQueueOf: (name) => `x.test ${name[0]}`,
        accountOf: (name) => Number(name[0]),
        takes: () => ({ ms }),
      },
      names,
    );
    await rig.clock.advance(60_000);
    expect(rig.begun.length).toBeGreaterThan(300);
    for (const name of names) expect(sentOf(rig, name)).toBeGreaterThan(95);
  },
);

test("mail for hosts of one family does not stop that for both, which shares an address with it", async () => {
  const [four, six] = [from("192.0.2.1"), from("2001:db8::1")];
  const [one, both] = [[four], [four, six]];
  const rig = await backlogs(
    {
      readyQueueOf: (name) => name,
      sources: (name) => (name.endsWith("four.test") ? one : both),
      takes: () => ({ ms: 30 }),
    },
    ["1.default/four.test", "1.default/both.test"],
  );
  await rig.clock.advance(60_000);
  expect(sentOf(rig, "1.default/four.test")).toBeGreaterThan(140);
  expect(sentOf(rig, "1.default/both.test")).toBeGreaterThan(280);
});
