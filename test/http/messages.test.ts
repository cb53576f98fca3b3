// /v1/messages over real submission and a real store: what a list finds by each filter, what is said of a message in each
// of its states, and that validate says what a send would.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createRecorder } from "../../src/events/record.ts";
import type { Outcome } from "../../src/mail/outcome.ts";
import type { Job } from "../../src/model/queued-recipient.ts";
import { settlementOf } from "../../src/queue/settle.ts";
import type { Store } from "../../src/store/store.ts";
import { mint, newSuppression } from "../store/fixtures.ts";
import { good } from "../submission/rig.ts";
import { ManualClock } from "../support/clock.ts";
import { bouncedOutcome, deferredOutcome, deliveredOutcome, makeTrace } from "../support/jobs.ts";
import { list, text, type Answer, type Ask, type Json } from "./harness.ts";
import { startStored, submissionOver, type Stored } from "./stored.ts";

const hourMs = 3_600_000;
let clock: ManualClock;
let store: Store;
let http: Stored;
/** A domain of its own for each test, so that lists hold what it sent. */
let domain: string;
let count = 0;

beforeAll(async () => {
  http = await startStored((opened) => ({ submission: submissionOver(opened, "ok.test") }));
  ({ store, clock } = http);
});
afterAll(() => http.stop());
beforeEach(async () => {
  domain = `d${++count}.test`;
  await clock.advance(1000);
});

const path = "/v1/messages";
function ask(method: string, rest = "", body?: unknown, more: Partial<Ask> = {}): Promise<Answer> {
  return http.ask({ method, path: `${path}${rest}`, ...(body === undefined ? {} : { body }), ...more });
}
const at = (user: string): string => `${user}@${domain}`;

async function send(over: Record<string, unknown>, more: Partial<Ask> = {}): Promise<string> {
  const answer = await ask("POST", "", good(over), more);
  expect(answer.status).toBe(202);
  await clock.advance(1);
  return text(answer.json["id"]);
}

/** Everything due at the domain is in the hands of an attempt. */
async function claim(): Promise<Job[]> {
  const now = clock.now();
  const wanted = {
    owner: "boot",
    queueName: `1.default/${domain}`,
    limit: 100,
    now,
  };
  return (await store.claimDue(wanted)).jobs;
}
async function settle(jobs: Job[], outcome: (job: Job) => Outcome): Promise<void> {
  const deps = {
    recorder: createRecorder({ clock, mint }),
    mint,
    schedule: { retryMs: [60_000], maxAgeMs: 48 * hourMs },
    owner: "boot",
    random: () => 0,
    isCaught: () => false,
  };
  for (const job of jobs) await store.settle(settlementOf(deps, job, outcome(job), clock.now(), "x.test"));
}
const trace = (sendingIp = "192.0.2.1") =>
  makeTrace({ startedAt: clock.now(), endedAt: clock.now(), sendingIp });
const bounced = (code: number, status: string, ip?: string): Outcome => ({
  ...bouncedOutcome(),
  reply: { code, status, text: "No" },
  trace: trace(ip),
});

const ids = (answer: Answer): string[] => list(answer.json["data"]).map((row) => text(row["id"]));
const statusOf = async (id: string): Promise<Json | undefined> => (await ask("GET", `/${id}`)).json["status"];

describe("a list of messages", () => {
  test("is filtered by each of its fields, and by all of them together", async () => {
    const first = clock.now();
    const a = await send({ to: [at("ann"), "x@elsewhere.test"], subject: "Your Invoice 17", tags: ["bill"] });
    const middle = new Date(clock.now()).toISOString();
    const b = await send({ to: at("bob"), subject: "Hello", from: "Shop <SHOP@ok.test>" });
    const other = await send({ to: "x@elsewhere.test", from: "else@ok.test" });
    await settle(await claim(), (job) => ({
      ...deliveredOutcome(),
      trace: trace(),
      ...(job.to === at("ann") ? {} : bounced(550, "5.1.1")),
    }));

    const found = async (query: string): Promise<string[]> => ids(await ask("GET", `?${query}`));
    expect(await found(`to_domain=${domain.toUpperCase()}`)).toEqual([b, a]);
    expect(await found(`to=ANN@${domain}`)).toEqual([a]);
    expect(await found(`to_domain=${domain}&tag=bill`)).toEqual([a]);
    expect(await found(`to_domain=${domain}&subject=invoice`)).toEqual([a]);
    expect(await found(`to_domain=${domain}&from=shop@OK.test`)).toEqual([b, a]);
    expect(await found(`to_domain=${domain}&status=bounced`)).toEqual([b]);
    expect(await found(`to_domain=${domain}&status=processing`)).toEqual([a]);
    expect(await found(`to_domain=${domain}&ip_pool=default&source=api`)).toEqual([b, a]);
    expect(await found(`to_domain=${domain}&source=smtp`)).toEqual([]);
    expect(await found(`to_domain=${domain}&created_after=${middle}`)).toEqual([b]);
    expect(await found(`to_domain=${domain}&created_before=${middle}`)).toEqual([a]);
    expect(await found(`to=${at("ann")}&created_after=${middle}`)).toEqual([]);
    expect(await found(`created_after=${new Date(first).toISOString()}`)).toEqual([other, b, a]);
  });

  test.each([
    ["status=sent", "status"],
    ["created_after=soon", "created_after"],
    ["created_after=2026-02-30", "created_after"],
    ["to=nobody", "to"],
    ["to_domain=a..b", "to_domain"],
    ["source=web", "source"],
    ["limit=0", "limit"],
    ["limit=201", "limit"],
    ["limit=1e1", "limit"],
    ["cursor=x", "cursor"],
  ])("%s is a 400 that names the parameter", async (query, field) => {
    const answer = await ask("GET", `?${query}`);
    expect([answer.status, answer.json["code"], answer.json["field"]]).toEqual([
      400,
      "invalid_request",
      field,
    ]);
  });

  test("a cursor goes on in the list that gave it, and in no other; times may move", async () => {
    for (const user of ["a", "b", "c"]) await send({ to: at(user), tags: ["t"] });
    const one = await ask("GET", `?to_domain=${domain}&limit=1`);
    const cursor = text(one.json["next_cursor"]);
    const status = async (query: string): Promise<number> =>
      (await ask("GET", `?${query}&cursor=${cursor}`)).status;
    expect(await status(`to_domain=${domain}`)).toBe(200);
    expect(await status(`to_domain=${domain}&limit=2&created_after=2026-01-01`)).toBe(200);
    expect(await status(`to_domain=${domain}&tag=t`)).toBe(400);
    expect(await status("to_domain=other.test")).toBe(400);
    expect(await status(`to=${at("a")}`)).toBe(400);
    expect((await http.ask({ path: `/v1/events?cursor=${cursor}` })).status).toBe(400);
  });
});

describe("the operator's filters", () => {
  const found = async (query: string, of = path): Promise<Answer> =>
    http.ask({ path: `${of}?${query}`, admin: true });

  test("find messages by what became of a recipient, with asterisks", async () => {
    const { key, value } = await http.key("send");
    const a = await send({ to: at("ann"), tags: ["Order-17"] }, { key: value });
    const b = await send({ to: [at("bob"), at("eve")], from: "news@ok.test" });
    await settle(await claim(), (job) =>
      job.to === at("ann")
        ? { ...deliveredOutcome(), trace: trace("198.51.100.9") }
        : job.to === at("bob")
          ? bounced(552, "5.2.3", "198.51.100.10")
          : { ...deferredOutcome(), reply: { code: 451, status: "4.7.1", text: "later" }, trace: trace() },
    );
    const here = `domain=${domain}`;
    const some = async (query: string): Promise<string[]> => ids(await found(`${here}&${query}`));
    expect(ids(await found(here))).toEqual([b, a]);
    expect(ids(await found(`domain=D${count}.*`))).toEqual([b, a]);
    expect(await some("ip=198.51.100.*")).toEqual([b, a]);
    expect(await some("ip=198.51.100.9")).toEqual([a]);
    expect(await some("pool=def*")).toEqual([b, a]);
    expect(await some("pool=other")).toEqual([]);
    expect(await some("type=message.bounced")).toEqual([b]);
    expect(await some("type=*de*")).toEqual([b, a]); // delivered, deferred
    expect(await some("code=5*")).toEqual([b]);
    expect(await some("enhanced=4.7.*")).toEqual([b]);
    expect(await some(`key=${key.id}`)).toEqual([a]);
    expect(await some("key=key_*")).toEqual([b, a]);
    expect(await some("tag=order-*")).toEqual([a]);
    expect(await some("tag=order-17")).toEqual([]); // without an asterisk as it stands
    expect(await some("from=NEWS@*")).toEqual([b]);
    expect(await some(`to=*n@${domain}`)).toEqual([a]);
    expect(await some(`to=${at("eve")}&code=451`)).toEqual([b]);
    expect(await some(`to=${at("eve")}&code=552`)).toEqual([]); // that was bob's
    expect(await some("code=4*&enhanced=5.*")).toEqual([]); // no one recipient has both
    expect(await some("status=processing&code=552")).toEqual([b]);
    expect(await some("code=5?2")).toEqual([]);
    expect(await some("code=[5]*")).toEqual([]);
  });

  test("find events the same way", async () => {
    const { key, value } = await http.key("send");
    await send({ to: at("ann"), tags: ["x"] }, { key: value });
    await send({ to: at("bob"), from: "news@ok.test" });
    await settle(await claim(), (job) =>
      job.to === at("ann")
        ? { ...deliveredOutcome(), trace: trace() }
        : bounced(550, "5.1.1", "198.51.100.77"),
    );
    const who = async (query: string): Promise<unknown[]> =>
      list((await found(`domain=${domain}&${query}`, "/v1/events")).json["data"]).map(
        (row) => row["data"]?.["to"],
      );
    expect(await who("limit=5")).toEqual([at("ann"), at("bob")]);
    expect(await who("type=*bounced")).toEqual([at("bob")]);
    expect(await who("code=55*")).toEqual([at("bob")]);
    expect(await who("enhanced=5.1.*")).toEqual([at("bob")]);
    expect(await who("ip=198.51.100.7*")).toEqual([at("bob")]);
    expect(await who(`key=${key.id}`)).toEqual([at("ann")]);
    expect(await who("pool=default&tag=x*")).toEqual([at("ann")]);
    expect(await who("from=news*")).toEqual([at("bob")]);
    expect(await who("to=b*")).toEqual([at("bob")]);
    expect(await who(`to=${at("ann")}`)).toEqual([at("ann")]);
    expect(await who("order=desc")).toEqual([at("bob"), at("ann")]);
  });

  test("are the operator's only, and a parameter that there is none of is told", async () => {
    await send({ to: at("ann") });
    expect((await ask("GET", "?code=5*&limit=1")).json["data"]).toHaveLength(1); // ignored, as the unknown is
    const told = await found("cdoe=5*");
    expect([told.status, told.json["field"]]).toEqual([400, "cdoe"]);
    for (const query of ["code=", `domain=${"x".repeat(201)}*`, "to=nobody", "domain=a..b"])
      expect((await found(query)).status).toBe(400);
  });

  test("look at 20,000 messages a page at most, and the page then says where to go on", async () => {
    const oldest = await send({ to: at("deep") });
    const messages = 20_000;
    for (let i = 0; i < messages; i += 100) {
      const body = { messages: Array.from({ length: 100 }, () => good({ to: "x@shallow.test" })) };
      expect((await ask("POST", "/batch", body)).status).toBe(200);
    }
    const first = await found(`domain=${domain}`);
    expect(first.json).toMatchObject({ data: [], has_more: true });
    const next = await found(`domain=${domain}&cursor=${text(first.json["next_cursor"])}`);
    expect([ids(next), next.json["has_more"]]).toEqual([[oldest], false]);
  });
});

describe("canceling", () => {
  const cancel = (id: string): Promise<Answer> => ask("POST", `/${id}/cancel`);
  const refused = [409, "message_not_cancelable"];

  test("ends what is scheduled, queued or deferred, once", async () => {
    const scheduled = await send({ to: at("a"), send_at: new Date(clock.now() + hourMs).toISOString() });
    const queued = await send({ to: "q@queued.test" });
    const deferred = await send({ to: at("c") });
    await settle(await claim(), () => ({ ...deferredOutcome(), trace: trace() }));
    for (const [id, before] of [
      [scheduled, "scheduled"],
      [queued, "queued"],
      [deferred, "deferred"],
    ] as const) {
      expect(await statusOf(id)).toBe(before);
      const done = await cancel(id);
      expect([done.status, done.json["id"], done.json["status"]]).toEqual([200, id, "canceled"]);
      expect(done.text).toBe((await ask("GET", `/${id}`)).text);
      const again = await cancel(id);
      expect([again.status, again.json["code"]]).toEqual(refused);
    }
    await clock.advance(hourMs);
    expect(await claim()).toEqual([]);
  });

  test("is too late for what is in an attempt's hands, delivered or bounced", async () => {
    const [delivered, bouncing] = [await send({ to: at("a") }), await send({ to: at("b") })];
    const jobs = await claim();
    expect(await statusOf(delivered)).toBe("sending");
    expect((await cancel(delivered)).status).toBe(409);
    await settle(jobs, (job) =>
      job.to === at("a") ? { ...deliveredOutcome(), trace: trace() } : bounced(550, "5.1.1"),
    );
    for (const id of [delivered, bouncing]) {
      const late = await cancel(id);
      expect([late.status, late.json["code"]]).toEqual(refused);
    }
  });

  test("leaves alone what has gone out of the same message", async () => {
    const id = await send({ to: [at("a"), "b@other.test"] });
    await settle(await claim(), () => ({ ...deliveredOutcome(), trace: trace() }));
    const done = await cancel(id);
    expect([done.status, done.json["status"]]).toEqual([200, "partially_delivered"]);
    expect(list(done.json["recipients"]).map((row) => row["status"])).toEqual(["delivered", "canceled"]);
  });

  test("takes no body but an empty object", async () => {
    const id = await send({ to: at("a") });
    expect((await ask("POST", `/${id}/cancel`, { all: true })).status).toBe(422);
    expect((await ask("POST", `/${id}/cancel`, {})).status).toBe(200);
    expect((await cancel("msg_none")).status).toBe(404);
  });
});

describe("validate", () => {
  const seen = ({ status, headers, json }: Answer): unknown => {
    const { request_id: _id, instance: _path, ...rest } = json;
    return [status, headers["content-type"], rest];
  };

  test.each<[string, unknown]>([
    ["nothing", {}],
    ["no object", []],
    ["a foreign sender", good({ from: "a@foreign.test" })],
    ["a suppressed recipient", good({ to: ["s@sup.test", "a@x.test"] })],
    ["51 recipients", good({ to: Array.from({ length: 51 }, (_, i) => `r${i}@x.test`) })],
    ["999 characters", good({ subject: "x".repeat(999) })],
    ["an unknown field", good({ attachements: [] })],
    ["an unknown pool", good({ ip_pool: "gold" })],
    ["a far day", good({ send_at: "2027-01-01T00:00:00Z" })],
    ["an executable", good({ attachments: [{ filename: "a.exe", content: "AAAA" }] })],
    ["tracking", good({ track_opens: true, tracking: { clicks: true } })],
    ["a header that is ours", good({ headers: { "DKIM-Signature": "x" } })],
    [
      "many at once",
      good({ from: "x", to: ["y", "s@sup.test"], subject: "a\nb", tags: ["", 7], send_at: "soon" }),
    ],
    ["a message too large", good({ attachments: [{ filename: "a.bin", content: "A".repeat(27_000_000) }] })],
  ])("says what a send would: %s", async (_, body) => {
    await store.addSuppressions([newSuppression(http.account.key, "s@sup.test")], clock.now());
    const [sent, checked] = [await ask("POST", "", body), await ask("POST", "/validate", body)];
    expect(sent.status).toBeGreaterThanOrEqual(400);
    expect(seen(checked)).toEqual(seen(sent));
  });

  test("keeps nothing of a message that would be taken", async () => {
    const answer = await ask("POST", "/validate", good({ to: at("a") }));
    expect([answer.status, answer.json]).toEqual([200, { valid: true }]);
    expect(ids(await ask("GET", `?to_domain=${domain}`))).toEqual([]);
  });
});

test("of a batch each message has its own answer, in order, the very one that it would have alone", async () => {
  const messages = [
    good({ to: at("a") }),
    good({ to: "x" }),
    null,
    good({ to: at("b"), from: "a@foreign.test" }),
  ];
  const { status, json } = await ask("POST", "/batch", { messages });
  expect(status).toBe(200);
  const rows = list(json["data"]);
  expect(rows.map((row) => row["status"])).toEqual([202, 422, 422, 422]);
  expect(Object.keys(rows[0] ?? {}).toSorted()).toEqual([
    "created_at",
    "id",
    "message_id_header",
    "recipients",
    "send_at",
    "status",
  ]);
  for (const [i, message] of messages.entries()) {
    if (i === 0) continue;
    const alone = (await ask("POST", "", message)).json;
    expect(rows[i]?.["error"]).toMatchObject({
      code: alone["code"],
      ...(alone["errors"] === undefined ? {} : { errors: alone["errors"] }),
    });
  }
  expect(ids(await ask("GET", `?to_domain=${domain}`))).toEqual([rows[0]?.["id"]]);
  const many = await ask("POST", "/batch", { messages: Array.from({ length: 101 }, () => good()) });
  expect([many.status, list(many.json["errors"]).map((row) => row["field"])]).toEqual([422, ["messages"]]);
});
