// Metrics from the outside: what Prometheus reads equals what became of the mail.
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, freePort } from "../support/appliance.ts";
import { startSending, type Sending } from "../support/sending.ts";

let sending: Sending;
let port = 0;

beforeAll(async () => {
  port = await freePort();
  sending = await startSending(
    "one.test",
    { address: "127.0.0.23" },
    { config: { metrics: { listen: [`127.0.0.1:${port}`] } } },
  );
});
afterAll(() => sending?.stop());

const page = async (path = "/metrics") => {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`);
  return { status: answer.status, type: answer.headers.get("content-type"), text: await answer.text() };
};
const valueOf = (text: string, series: string): number | undefined => {
  const line = text.split("\n").find((one) => one.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length));
};

test("the counters begin with 0 and then equal the ledger: accepted, delivered, deferred, bounced, suppressed", async () => {
  const { svc, key } = sending;
  const before = (await page()).text;
  for (const series of ["svc_recipients_accepted_total", 'svc_recipients_bounced_total{type="hard"}'])
    expect(valueOf(before, series)).toBe(0);
  const send = (...to: string[]) =>
    svc.api(key, "POST", "/v1/messages", { from: "shop@ok.test", to, subject: "Hello", text: "Hi" });
  expect((await send("a@one.test", "b@one.test", "permfail@one.test", "tempfail@one.test")).status).toBe(202);
  const tried = ["svc_recipients_delivered_total", 'svc_recipients_bounced_total{type="hard"}'];
  let text = "";
  await eventually(
    async () => {
      ({ text } = await page());
      return (
        tried.every((series) => (valueOf(text, series) ?? 0) > 0) &&
        valueOf(text, "svc_attempts_deferred_total") === 1 &&
        valueOf(text, "svc_recipients_delivered_total") === 2
      );
    },
    20_000,
    "four outcomes",
  );
  expect(valueOf(text, "svc_recipients_accepted_total")).toBe(4);
  expect(valueOf(text, 'svc_recipients_bounced_total{type="hard"}')).toBe(1);
  expect(valueOf(text, 'svc_recipients_bounced_total{type="soft"}')).toBe(0);
  expect(valueOf(text, 'svc_queue_recipients{status="deferred"}')).toBe(1);
  expect(valueOf(text, "svc_ready")).toBe(1);
  expect(valueOf(text, "svc_certificate_not_after_seconds")).toBeGreaterThan(Date.now() / 1000);
  expect((await send("permfail@one.test")).status).toBe(422);
  await eventually(
    async () => valueOf((await page()).text, "svc_recipients_suppressed_total") === 1,
    20_000,
    "the refusal",
  );
});

test("the page is Prometheus' text format, and the listener shows nothing else", async () => {
  const { status, type, text } = await page();
  expect({ status, type }).toEqual({ status: 200, type: "text/plain; version=0.0.4; charset=utf-8" });
  for (const name of ["svc_build_info", "process_cpu_seconds_total", "nodejs_eventloop_lag_p99_seconds"])
    expect(text).toContain(`# TYPE ${name} `);
  expect((await page("/v1/accounts")).status).toBe(404);
  expect((await page("/healthz")).status).toBe(404);
});

test("the operator's socket has it, the public listener does not", async () => {
  const { svc, key } = sending;
  expect((await svc.admin("GET", "/metrics")).text).toContain("svc_recipients_accepted_total 4\n");
  expect((await svc.api(key, "GET", "/metrics")).status).toBe(404);
});
