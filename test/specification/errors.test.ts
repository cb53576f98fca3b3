// The specification of the API, "Errors": the two shapes, the HTTP status codes, the application error codes and the
// retry decision matrix. Every row is held against answers that were really produced (refusals.ts).
import { beforeAll, describe, expect, test } from "vitest";
import { mail, startCustomer, type Answer } from "./customer.ts";
import { checkEnds, failAll, whileTimePasses, produceAll, type Produced } from "./refusals.ts";

let produced: Produced[];
beforeAll(async () => {
  produced = await produceAll();
});

const envelopeStatuses = [401, 403, 429];
const isEnvelope = ({ status }: { status: number }): boolean => envelopeStatuses.includes(status);
/** What the body says, whichever its shape. */
const said = ({ status, json }: Answer) => (isEnvelope({ status }) ? json.error : json);

/** code, status, conditions by their number; those behind the line are not of the table. */
const codes: [code: string, status: number, conditions: number][] = [
  ["invalid_request", 400, 3],
  ["invalid_api_key", 401, 4],
  ["scope_insufficient", 403, 1],
  ["key_disabled", 403, 2],
  ["resource_not_found", 404, 4],
  ["duplicate_idempotency_key", 409, 1],
  ["message_too_large", 413, 1],
  ["invalid_email_address", 422, 2],
  ["sender_not_verified", 422, 1],
  ["recipient_suppressed", 422, 1],
  ["ip_pool_not_found", 422, 1],
  ["scheduling_window_exceeded", 422, 1],
  ["invalid_attachment", 422, 3],
  ["tracking_disabled", 422, 2],
  ["rate_limit_exceeded", 429, 3],
  ["internal_error", 500, 1],
  ["upstream_error", 502, 1],
  ["service_overloaded", 503, 1],
  ["maintenance", 503, 1],
  // Beyond the table.
  ["ip_not_allowed", 403, 1],
  ["source_ip_locked", 403, 1],
  ["account_paused", 403, 1],
  ["method_not_allowed", 405, 1],
  ["conflict", 409, 1],
  ["message_not_cancelable", 409, 1],
  ["unsupported_media_type", 415, 2],
  ["validation_failed", 422, 1],
  ["upstream_timeout", 504, 1],
];

describe("application error codes", () => {
  test.each(codes)("%s is %i", (code, status, conditions) => {
    const found = produced.filter((one) => one.code === code);
    expect(found).toHaveLength(conditions);
    for (const { when, answer, asProblem } of found) {
      expect([when, answer.status, said(answer).code]).toEqual([when, status, code]);
      expect([when, asProblem.status, asProblem.json.code]).toEqual([when, status, code]);
    }
  });

  test("recipient_suppressed lists which, with why and since when", () => {
    const { json } = one("recipient_suppressed").answer;
    expect(json.suppressed_recipients).toEqual([
      { email: "gone@far.test", reason: "manual", created_at: expect.stringMatching(/^2026-.*\.\d{3}Z$/) },
    ]);
  });

  test("sender_not_verified names the domain", () => {
    const { json } = one("sender_not_verified").answer;
    expect(json).toMatchObject({ domain: "none.test", field: "from" });
  });
});

describe("HTTP status codes", () => {
  test.each([
    [400, "client"],
    [401, "client"],
    [403, "client"],
    [404, "client"],
    [405, "client"],
    [409, "client"],
    [413, "client"],
    [415, "client"],
    [422, "client"],
    [429, "client"],
    [500, "server"],
    [502, "server"],
    [503, "server"],
    [504, "server"],
  ])("%i is mended by the %s", (status, who) => {
    const found = produced.filter(({ answer }) => answer.status === status);
    expect(found.length).toBeGreaterThan(0);
    for (const { answer } of found) {
      expect(status < 500 ? "client" : "server").toBe(who);
      expect(said(answer).request_id).toBe(answer.headers["x-request-id"]);
    }
  });

  test("405 says which methods there are", () => {
    const { headers } = one("method_not_allowed").answer;
    expect(String(headers.allow).split(", ").sort()).toEqual(["GET", "HEAD", "POST"]);
  });

  test("401 says how to authenticate, and at which host", () => {
    for (const { answer } of produced.filter(({ status }) => status === 401))
      expect(answer.headers["www-authenticate"]).toBe('Bearer realm="mail.svc.test"');
  });
});

describe("shapes", () => {
  const requestId = /^req_[0-9a-z]{26}$/;
  const expectProblem = ({ code, status, path }: Produced, { headers, json }: Answer): void => {
    expect(headers["content-type"]).toBe("application/problem+json");
    expect(json).toMatchObject({ status, code, instance: path.split("?")[0] });
    for (const field of ["title", "detail"]) expect(json[field]).toMatch(/\S/);
    expect(new URL(json.type).pathname).toBe(`/errors/${code}`);
    expect(json.request_id).toMatch(requestId);
    expect(json.request_id).toBe(headers["x-request-id"]);
  };

  test("A, problem details: every refusal that is not 401, 403 or 429", () => {
    const found = produced.filter((one) => !isEnvelope(one));
    expect(found.length).toBeGreaterThan(20);
    for (const row of found) expectProblem(row, row.answer);
  });

  test("B, the envelope: 401, 403 and 429", () => {
    const found = produced.filter(isEnvelope);
    expect(new Set(found.map(({ status }) => status))).toEqual(new Set(envelopeStatuses));
    for (const { code, answer } of found) {
      expect(answer.headers["content-type"]).toBe("application/json");
      expect(Object.keys(answer.json)).toEqual(["error"]);
      const { error } = answer.json;
      expect(error).toMatchObject({ code, message: expect.stringMatching(/\S/) });
      expect(error.request_id).toMatch(requestId);
      expect(error.request_id).toBe(answer.headers["x-request-id"]);
    }
  });

  test("whoever accepts application/problem+json gets A for those three too, with the same extensions", () => {
    for (const row of produced) expectProblem(row, row.asProblem);
    for (const { code, answer, asProblem } of produced.filter(isEnvelope)) {
      const { code: _code, message: _message, request_id: _id, ...extensions } = answer.json.error;
      expect(asProblem.json, code).toMatchObject(extensions);
    }
  });

  test.each([
    ["required_scope", ["scope_insufficient"], "send"],
    ["bucket", ["rate_limit_exceeded"], expect.stringMatching(/^(events-read|account|quota)$/)],
    [
      "retry_after_seconds",
      ["rate_limit_exceeded", "service_overloaded", "maintenance", "source_ip_locked"],
      expect.any(Number),
    ],
    [
      "field",
      [
        "validation_failed",
        "invalid_email_address",
        "sender_not_verified",
        "recipient_suppressed",
        "ip_pool_not_found",
        "scheduling_window_exceeded",
        "invalid_attachment",
        "tracking_disabled",
      ],
      expect.stringMatching(/^(attachements|from|to(\[0\])?|ip_pool|send_at|attachments\[0\]|track)/),
    ],
  ])("%s stands in %j and nowhere else where it means nothing", (name, bearers, value) => {
    for (const { code, when, answer } of produced) {
      const found = said(answer)[name];
      if (bearers.includes(code)) expect(found, `${code}, ${when}`).toEqual(value);
      else if (name !== "field") expect(found, `${code}, ${when}`).toBeUndefined();
    }
  });

  test("errors lists every problem of a request at once, and the first of them gives code and field", async () => {
    const customer = await startCustomer();
    const { json } = await customer.ask("POST", "/v1/messages", {
      body: {
        from: "a@none.test",
        to: ["fine@far.test", "not an address"],
        subject: "a\r\nBcc: b@far.test",
        text: "t",
        attachments: [{ filename: "a.exe", content: "aGk=" }],
        ip_pool: "none",
        track_opens: true,
        tags: "shop",
        send_at: customer.at(100 * 3_600_000),
        colour: "red",
      },
    });
    await customer.stop();
    for (const row of json.errors) expect(Object.keys(row).sort()).toEqual(["code", "field", "issue"]);
    const rows: [string, string][] = json.errors.map((row: { field: string; code: string }) => [
      row.field,
      row.code,
    ]);
    expect(rows.map(([field]) => field.replace(/\..*/, ""))).toEqual(
      expect.arrayContaining([
        "from",
        "to[1]",
        "subject",
        "attachments[0]",
        "ip_pool",
        "track_opens",
        "tags",
        "send_at",
        "colour",
      ]),
    );
    expect([json.field, json.code]).toEqual(rows[0]);
    expect(rows[0]).toEqual(["from", "sender_not_verified"]);
  });

  test("type is a page that is really served, to anybody", async () => {
    const customer = await startCustomer();
    for (const { asProblem } of produced) {
      const { origin, pathname } = new URL(asProblem.json.type);
      if (pathname !== `/errors/${asProblem.json.code}`) throw new Error(pathname);
      expect(origin).toMatch(/^https:\/\/mail\./);
      const page = await customer.ask("GET", pathname, { key: null });
      expect([page.status, page.headers["content-type"]]).toEqual([200, "text/html; charset=utf-8"]);
    }
    await customer.stop();
  });
});

describe("retry decision matrix", () => {
  const retryAfter = ({ headers }: Answer): number | null =>
    headers["retry-after"] === undefined ? null : Number(headers["retry-after"]);

  test.each([400, 401, 403, 404, 409, 413, 415, 422, 500, 502, 504])("%i names no time to wait", (status) => {
    for (const { answer, asProblem } of produced.filter((row) => row.status === status))
      expect([retryAfter(answer), retryAfter(asProblem)]).toEqual([null, null]);
  });

  test.each([429, 503])("%i says how long to wait, in the header and in the body", (status) => {
    for (const { answer, asProblem } of produced.filter((row) => row.status === status)) {
      expect(retryAfter(answer)).toBeGreaterThanOrEqual(1);
      expect(said(answer).retry_after_seconds).toBe(retryAfter(answer));
      expect(asProblem.json.retry_after_seconds).toBe(retryAfter(asProblem));
    }
  });

  test("503 maintenance says until when", () => {
    expect(retryAfter(one("maintenance").answer)).toBe(3600);
  });

  test("409: once the conflict of bodies is resolved, the key gives the first answer again", async () => {
    const customer = await startCustomer();
    const wish = (subject: string) => ({
      key: "test",
      body: { ...mail, subject },
      headers: { "idempotency-key": "7b0f" },
    });
    const first = await customer.ask("POST", "/v1/messages", wish("one"));
    expect((await customer.ask("POST", "/v1/messages", wish("two"))).status).toBe(409);
    const again = await customer.ask("POST", "/v1/messages", wish("one"));
    await customer.stop();
    expect([again.status, again.text]).toEqual([202, first.text]);
  });

  test("500, 502 and 504: the same request with its Idempotency-Key is tried again, for no failure is kept", async () => {
    const customer = await startCustomer({ config: { dns: { timeout: "6s", tries: 2 } } });
    const seen: unknown[] = [];
    for (const how of ["servfail", "timeout", null] as const) {
      await failAll(customer, how);
      const asked = customer.ask("POST", "/v1/domains/ok.test/verify", {
        headers: { "idempotency-key": "v-1" },
      });
      // A name server that answers does so in its own time, while the product's stands still.
      const { status, headers } = await whileTimePasses(customer, how === "timeout" ? 500 : 0, asked);
      seen.push([status, headers["idempotency-replayed"]]);
      await checkEnds(customer);
    }
    await customer.stop();
    expect(seen).toEqual([
      [502, undefined],
      [504, undefined],
      [200, undefined],
    ]);
  });
});

function one(code: string): Produced {
  const found = produced.find((row) => row.code === code);
  if (!found) throw new Error(`${code} was not produced`);
  return found;
}
