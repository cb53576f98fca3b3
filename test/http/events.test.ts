// Events over a real store: pulled by cursor, and streamed to the operator.
import { request } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { mint, newEvent } from "../store/fixtures.ts";
import type { ManualClock } from "../support/clock.ts";
import { list, startHttp, text } from "./harness.ts";
import { startStored, type Stored } from "./stored.ts";

let http: Stored;
let store: Store;
let clock: ManualClock;
let accountKey: number;
let ask: Stored["call"];

beforeAll(async () => {
  http = await startStored();
  ({ store, clock, call: ask } = http);
  accountKey = http.account.key;
});
afterAll(() => http.stop());
beforeEach(() => http.clock.advance(1000));

describe("events", () => {
  test("a record is the stored envelope byte for byte, with its deliveries", async () => {
    const made = newEvent({ accountKey, receivedAt: clock.now(), type: "message.delivered" });
    const body = made.body
      .replace('"subject":"Webhook test"', '"subject":"\\u00e9 } ]"')
      .replace('"delivery_time_ms":1200', '"delivery_time_ms":1.2e3');
    const event = { ...made, body };
    await store.recordEvent(event);
    const { text } = await ask("GET", `/v1/events?event_id=${event.id}`);
    expect(text).toContain(
      `{"data":[${body.slice(0, -1)},"deliveries":[]}],"has_more":false,"next_cursor":"`,
    );
  });

  test("polling the last cursor tails the stream, and types are chosen by a list or by repetition", async () => {
    const end = async () => text((await ask("GET", "/v1/events?limit=1000")).json["next_cursor"]);
    const cursor = await end();
    for (const type of ["message.bounced", "message.delivered", "message.deferred"]) {
      await store.recordEvent(newEvent({ accountKey, receivedAt: clock.now(), type }));
    }
    const types = async (query: string) =>
      list((await ask("GET", `/v1/events?cursor=${cursor}${query}`)).json["data"]).map((row) => row["event"]);
    expect(await types("")).toEqual(["message.bounced", "message.delivered", "message.deferred"]);
    expect(await types("&event=message.bounced,message.deferred")).toEqual([
      "message.bounced",
      "message.deferred",
    ]);
    expect(await types("&event=message.deferred&event=message.bounced")).toEqual([
      "message.bounced",
      "message.deferred",
    ]);
    expect((await ask("GET", `/v1/events?cursor=${await end()}`)).json).toMatchObject({
      data: [],
      has_more: false,
    });
  });
});

describe("the stream of events", () => {
  /** Lines of a stream as they come. */
  function tail(query: string) {
    const lines: string[] = [];
    let rest = "";
    let status = 0;
    let ended = false;
    const req = request({ socketPath: http.socket, path: `/v1/events/tail${query}` }, (res) => {
      status = res.statusCode ?? 0;
      res.on("data", (chunk: Buffer) => {
        const parts = (rest + chunk.toString()).split("\n");
        rest = parts.pop() ?? "";
        lines.push(...parts);
      });
      res.on("close", () => (ended = true));
    });
    req.on("error", () => (ended = true));
    req.end();
    const until = async (condition: () => boolean) => {
      const end = performance.now() + 100_000;
      while (!condition() && performance.now() < end) await new Promise((resolve) => setImmediate(resolve));
      expect(condition()).toBe(true);
    };
    return { lines, until, close: () => req.destroy(), status: () => status, ended: () => ended };
  }
  const record = async (type = "message.delivered") => {
    const event = newEvent({ accountKey, receivedAt: clock.now(), type });
    const body = event.body.replace(
      '"data"',
      `"occurred_at":"${new Date(clock.now()).toISOString()}","data"`,
    );
    await store.recordEvent({ ...event, body });
    return event.id;
  };
  const idOf = (line: string) => (JSON.parse(line) as { event_id: string }).event_id;

  test("begins now, brings what is committed, beats every 15 seconds", async () => {
    await record();
    const stream = tail("");
    await stream.until(() => stream.lines.length === 1);
    expect([stream.status(), stream.lines]).toEqual([200, [""]]);
    const id = await record();
    await stream.until(() => stream.lines.length === 2);
    expect(idOf(stream.lines[1] ?? "")).toBe(id);
    await clock.advance(15_000);
    await stream.until(() => stream.lines.length === 3);
    expect(stream.lines[2]).toBe("");
    stream.close();
  });

  test("resumes after an event or a cursor, and shows the types that are asked for", async () => {
    const first = await record();
    const bounced = await record("message.bounced");
    const last = await record();
    const all = tail(`?after=${first}`);
    await all.until(() => all.lines.length === 3);
    expect(all.lines.slice(1).map(idOf)).toEqual([bounced, last]);
    all.close();
    const some = tail(`?after=${first}&event=message.bounced`);
    await some.until(() => some.lines.length === 2);
    expect(some.lines.slice(1).map(idOf)).toEqual([bounced]);
    some.close();
    for (const query of [
      "?after=evt_01jd0000000000000000000000",
      "?after=nonsense",
      "?event=lost",
      "?colour=red",
    ]) {
      expect((await http.ask({ path: `/v1/events/tail${query}`, admin: true })).status).toBe(400);
    }
  });

  test("is told in its own words where it cannot begin: --after takes an event", async () => {
    for (const after of ["nonsense", "evt_x", ""]) {
      const { status, json } = await ask("GET", `/v1/events/tail?after=${after}`, undefined, { admin: true });
      expect([status, json["code"], json["field"], json["detail"]]).toEqual([
        400,
        "invalid_request",
        "after",
        "after is neither an event's id (evt_ and 26 characters) nor a cursor of this list.",
      ]);
    }
    const gone = await ask("GET", `/v1/events/tail?after=${mint("evt", clock.now())}`, undefined, {
      admin: true,
    });
    expect([gone.status, gone.json["detail"]]).toEqual([400, "There is no such event."]);
  });

  test("a long backlog comes whole and in order", async () => {
    const first = await record();
    const ids: string[] = [];
    for (let i = 0; i < 450; i++) ids.push(await record());
    const stream = tail(`?after=${first}`);
    await stream.until(() => stream.lines.length >= 451);
    expect(stream.lines.slice(1).map(idOf)).toEqual(ids);
    stream.close();
  });

  test("lets go of everything when its reader goes", async () => {
    const before = clock.pending;
    const stream = tail("");
    await stream.until(() => stream.lines.length === 1);
    expect(clock.pending).toBe(before + 1); // the heartbeat
    stream.close();
    await stream.until(() => clock.pending === before);
  });

  test("ends when the server stops", async () => {
    const own = await startHttp({
      store: {
        listEvents: () => Promise.resolve({ rows: [], next: "n", hasMore: false }),
        onCommit: () => () => undefined,
      },
    });
    const ended = own.ask({ path: "/v1/events/tail", admin: true });
    while (own.clock.pending === 0) await new Promise((resolve) => setImmediate(resolve));
    await own.stop();
    expect(await ended).toMatchObject({ status: 200, text: "\n" });
  });

  test("is not there for an API key", async () => {
    expect((await ask("GET", "/v1/events/tail")).status).toBe(404);
  });
});
