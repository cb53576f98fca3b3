import { describe, expect, test } from "vitest";
import { isSimulated, sandboxOutcome, simulatedNames } from "../../src/sandbox/simulator.ts";
import { suppresses } from "../../src/suppressions/policy.ts";
import { makeJob } from "../support/jobs.ts";

const outcomeOf = (rcptTo: string, attempt = 1) => {
  const domain = rcptTo.slice(rcptTo.lastIndexOf("@") + 1);
  const job = makeJob(1, { rcptTo, to: rcptTo, domain, queueName: "~sandbox", attempt });
  return { job, outcome: sandboxOutcome(job, 5_000) };
};

test("the simulator is one domain and no other", () => {
  expect(isSimulated("simulator.svc")).toBe(true);
  for (const domain of ["x.simulator.svc", "simulator.svc.test", "xsimulator.svc"])
    expect(isSimulated(domain)).toBe(false);
  expect(simulatedNames).toEqual([
    "delivered",
    "bounce",
    "softbounce",
    "blocked",
    "defer",
    "complaint",
    "unsubscribe",
    "open",
    "click",
  ]);
});

describe("each name plays its outcome, every time", () => {
  const plays: [string, object][] = [
    ["delivered", { kind: "delivered", reply: { code: 250, status: "2.0.0" } }],
    [
      "bounce",
      {
        kind: "bounced",
        source: "smtp",
        reply: { code: 550, status: "5.1.1" },
        classification: "invalid_recipient",
      },
    ],
    [
      "softbounce",
      {
        kind: "bounced",
        source: "smtp",
        reply: { code: 452, status: "4.2.2" },
        classification: "mailbox_full",
      },
    ],
    [
      "blocked",
      {
        kind: "bounced",
        source: "smtp",
        reply: { code: 550, status: "5.7.1" },
        classification: "reputation_block",
      },
    ],
  ];
  for (const [name, outcome] of plays) {
    test(`${name}@`, () => {
      for (const attempt of [1, 2, 9])
        for (const spelling of [name, name.toUpperCase()])
          expect(outcomeOf(`${spelling}@simulator.svc`, attempt).outcome).toMatchObject(outcome);
    });
  }

  test("defer@ is deferred once and then taken, and its trace says so", () => {
    const first = outcomeOf("defer@simulator.svc").outcome;
    expect(first).toMatchObject({
      kind: "deferred",
      reply: { code: 451, status: "4.7.1" },
      classification: "greylisted",
      retryAfterMs: null,
      trace: { dialogue: [{ from: "them", text: `451 ${first.reply.text}` }] },
    });
    const second = outcomeOf("defer@simulator.svc", 2).outcome;
    expect(second).toMatchObject({
      kind: "delivered",
      trace: { dialogue: [{ from: "them", text: `250 ${second.reply.text}` }] },
    });
  });
});

test("a reply has the form that a real server's has: its text begins with the status, not with the code", () => {
  for (const name of simulatedNames) {
    const { reply } = outcomeOf(`${name}@simulator.svc`).outcome;
    expect(reply.text).toMatch(new RegExp(`^${String(reply.status)} [A-Z]`));
  }
});

test("nothing that the simulator plays puts a recipient on the suppression list", () => {
  for (const name of simulatedNames) {
    const { job, outcome } = outcomeOf(`${name}@simulator.svc`);
    expect(suppresses(job, outcome)).toBe(false);
  }
});

test("mail to any other address is taken, whatever its name", () => {
  for (const rcptTo of ["bounce@x.test", "constructor@x.test", "constructor@simulator.svc"])
    expect(outcomeOf(rcptTo).outcome.kind).toBe("delivered");
});

test("the trace names no host of this world", () => {
  expect(outcomeOf("a@x.test").outcome.trace).toMatchObject({
    startedAt: 5_000,
    endedAt: 5_000,
    host: "sandbox",
    sendingIp: null,
    address: null,
    mx: [],
    tls: null,
    ambiguous: false,
  });
  expect(outcomeOf("bounce@simulator.svc").outcome.trace.host).toBe("mx.simulator.svc");
});
