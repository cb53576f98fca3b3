// A day of mail and the report of it, through the whole program: sent by the queue as any mail, signed, and not counted.
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../support/appliance.ts";
import { startProgram, type Program } from "../support/program.ts";
import { startReceiver, type Receiver } from "../support/smtp-receiver.ts";
import { TravelClock } from "../support/travel-clock.ts";
import { tlsFixture } from "../delivery/rig.ts";

const clock = new TravelClock();
let program: Program;
let receiver: Receiver;

beforeAll(async () => {
  receiver = await startReceiver({ tls: tlsFixture });
  program = await startProgram({
    clock,
    config: {
      outbound: { port: receiver.port, allow_networks: ["127.0.0.0/8"], retry: ["1s"] },
      operations: { from: "reports@ok.test", email: "ops@ok.test" },
    },
  });
  program.dns.set("x.test", "MX", ["10 mail.test"]);
  program.dns.set("mail.test", "A", ["127.0.0.1"]);
  program.dns.set("_smtp._tls.x.test", "TXT", ["v=TLSRPTv1; rua=mailto:tls@x.test"]);
});
afterAll(async () => {
  await program?.stop();
  await receiver?.stop();
});

const lastRun = async (name: string): Promise<string | null> => {
  const { jobs } = await program.admin("GET", "/v1/status");
  return jobs.find((job: { name: string }) => job.name === name).last_run_at;
};

test("a domain that asks for it gets the report of the day before, once, and none about that report", async () => {
  const mail = { from: "a@ok.test", to: "ann@x.test", subject: "x", text: "x" };
  await program.admin("POST", "/v1/messages", mail);
  await receiver.waitForMails(1);
  clock.skip(61_000);
  await eventually(() => lastRun("keep-tls-results"));
  clock.skip(25 * 3_600_000);
  await receiver.waitForMails(2);
  const report = receiver.mails[1];
  const text = report?.data.toString() ?? "";
  expect(report?.rcptTo).toEqual(["tls@x.test"]);
  expect(text).toMatch(/^DKIM-Signature: /);
  expect(text).toContain('\r\nFrom: "svc on mail.svc.test" <reports@ok.test>\r\n');
  const [, base64 = ""] = /application\/tlsrpt\+gzip[^]*?\r\n\r\n([^]*?)\r\n--/.exec(text) ?? [];
  expect(JSON.parse(gunzipSync(Buffer.from(base64, "base64")).toString())).toMatchObject({
    "contact-info": "ops@ok.test",
    policies: [
      {
        policy: { "policy-type": "no-policy-found", "policy-domain": "x.test" },
        summary: { "total-successful-session-count": 1, "total-failure-session-count": 0 },
      },
    ],
  });

  const before = await lastRun("send-tls-reports");
  clock.skip(25 * 3_600_000);
  await eventually(async () => (await lastRun("send-tls-reports")) !== before);
  expect(receiver.mails.length).toBe(2);
  expect(program.failures).toEqual([]);
});

test("a report to a domain whose MTA-STS policy cannot be fetched causes no further report", async () => {
  program.dns.set("y.test", "MX", ["10 mail.test"]);
  program.dns.set("_mta-sts.y.test", "TXT", ["v=STSv1; id=1;"]);
  program.dns.set("_smtp._tls.y.test", "TXT", ["v=TLSRPTv1; rua=mailto:tls@y.test"]);
  const count = receiver.mails.length;
  await program.admin("POST", "/v1/messages", {
    from: "a@ok.test",
    to: "ann@y.test",
    subject: "x",
    text: "x",
  });
  await receiver.waitForMails(count + 1);
  const dayLater = async (): Promise<void> => {
    const before = [await lastRun("keep-tls-results"), await lastRun("send-tls-reports")];
    clock.skip(61_000);
    await eventually(async () => (await lastRun("keep-tls-results")) !== before[0]);
    clock.skip(25 * 3_600_000);
    await eventually(async () => (await lastRun("send-tls-reports")) !== before[1]);
  };
  await dayLater();
  await receiver.waitForMails(count + 2);
  expect(receiver.mails.at(-1)?.rcptTo).toEqual(["tls@y.test"]);
  await dayLater();
  await dayLater();
  expect(receiver.mails.length).toBe(count + 2);
});
