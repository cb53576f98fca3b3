// A day on which a fifth of all attempts meets a fault, and the program is killed twice; a ledger outside of it judges. By
// default in small, in seconds; SVC_DAY=full plays 24 hours with the program's own waits, at sixty times their speed.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../support/appliance.ts";
import { inFull, inSmall, isUndeliverable, startDay, type Day, type Sent } from "../support/day.ts";
import type { ReceivedMail } from "../support/smtp-receiver.ts";

const full = process.env["SVC_DAY"] === "full";
const seed = Number(process.env["SVC_DAY_SEED"] ?? 1);
/** Of receivers' answers a kill may take along those that were not kept yet: one of each connection. */
const answersInFlight = 200;
/** Only a hang is to meet it: the day in small takes seconds, and minutes on a machine with much other work. */
const patienceMs = full ? 3_600_000 : 900_000;

interface Event {
  event: string;
  event_id: string;
  data: { message_id: string; to: string; attempt: number; bounce_type?: string };
}
/** One recipient of one message, by the sender's book. */
interface Entry {
  message: Sent;
  recipient: string;
}

let day: Day;
let events: Event[];
let acknowledged: Entry[];
let copies: Map<string, (ReceivedMail & { index: number })[]>;

const tokenOf = (mail: ReceivedMail): string =>
  /token-\d+-/.exec(mail.data.toString("latin1"))?.[0] ?? "none";
const keyOf = (token: string, recipient: string): string => `${token} ${recipient}`;
const copiesOf = ({ message, recipient }: Entry) => copies.get(keyOf(message.token, recipient)) ?? [];
const terminal = ["message.delivered", "message.bounced"];

beforeAll(async () => {
  day = await startDay(full ? inFull : inSmall, seed);
  await day.play();
  await settled();
  events = await allEvents();
  acknowledged = day.sent
    .filter(({ id }) => id !== null)
    .flatMap((message) => message.recipients.map((recipient) => ({ message, recipient })));
  copies = Map.groupBy(
    day.taken.map((mail, index) => ({ ...mail, index })),
    (mail) => keyOf(tokenOf(mail), mail.rcptTo.join()),
  );
  console.info(JSON.stringify(figures()));
}, patienceMs);
afterAll(() => day?.stop());

/** The queue has run empty, and the endpoint has what was recorded. */
async function settled(): Promise<void> {
  const quiet = async (): Promise<boolean> => {
    const { status, json } = await day.svc.admin("GET", "/v1/status");
    return status === 200 && json.queue.queued + json.queue.deferred + json.queue.sending === 0;
  };
  await eventually(quiet, patienceMs, "the queue running empty");
  const delivered = async (): Promise<boolean> => {
    const { status, json } = await day.svc.admin("GET", "/v1/events?delivery_status=pending&limit=1");
    return status === 200 && json.data.length === 0;
  };
  await eventually(delivered, patienceMs, "the endpoint having every event");
  await day.slowDown();
}

async function allEvents(): Promise<Event[]> {
  const all: Event[] = [];
  for (let cursor = ""; ;) {
    const { json } = await day.svc.admin("GET", `/v1/events?limit=1000${cursor}`);
    all.push(...json.data);
    if (!json.has_more) return all;
    cursor = `&cursor=${encodeURIComponent(json.next_cursor)}`;
  }
}

function figures(): object {
  const of = (type: string): number => events.filter(({ event }) => event === type).length;
  const attempts = of("message.delivered") + of("message.deferred");
  const extra = [...copies.values()].reduce((sum, all) => sum + all.length - 1, 0);
  return {
    acknowledged: day.sent.filter(({ id }) => id !== null).length,
    recipients: acknowledged.length,
    delivered: of("message.delivered"),
    deferred: of("message.deferred"),
    bounced: of("message.bounced"),
    faultShare: Number((of("message.deferred") / attempts).toFixed(3)),
    copies: day.taken.length,
    extra,
    lostReplies: day.faults.lostReplies.size,
    kills: day.killedAfter.length,
    webhooks: day.hook.requests.length,
    faults: Object.fromEntries(day.faults.met),
  };
}

const isNearKill = (index: number): boolean =>
  day.killedAfter.some((arrived) => index < arrived && arrived - index <= answersInFlight);

/** How many copies before the last have a cause: a lost reply, which a mail meets once, or a kill that took the reply along. */
async function causesOf(all: readonly (ReceivedMail & { index: number })[], token: string): Promise<number> {
  const lost = all.some(({ mailFrom }) => day.faults.lostReplies.has(mailFrom)) ? 1 : 0;
  const killed = all
    .slice(0, -1)
    .filter(({ index }) =>
      day.killedAfter.some((arrived) => index < arrived && arrived - index <= answersInFlight),
    ).length;
  if (all.length - 1 <= lost || killed === 0) return lost;
  // The program knows which attempts it did not see the end of.
  const id = day.sent.find((message) => message.token === token)?.id;
  if (id == null) return lost + killed;
  const { json } = await day.svc.admin("GET", `/v1/messages/${id}/attempts`);
  const interrupted = (json.data as { recipient: string; outcome: string; ambiguous: boolean }[]).filter(
    ({ recipient, outcome, ambiguous }) =>
      recipient === all[0]?.rcptTo.join() && outcome === "interrupted" && ambiguous,
  );
  return lost + Math.min(killed, interrupted.length);
}

describe(`a day of which a fifth fails (seed ${seed}${full ? ", 24 hours" : ""})`, () => {
  test("a fifth of the attempts met a fault, of each place where one can be", () => {
    const deferred = events.filter(({ event }) => event === "message.deferred").length;
    const delivered = events.filter(({ event }) => event === "message.delivered").length;
    const { begun, failed } = day.faults.attempts;
    expect(failed / begun).toBeGreaterThan(0.18);
    expect(deferred / (deferred + delivered)).toBeGreaterThan(0.1); // some faults end in another host, or in clear
    expect(day.faults.lostReplies.size).toBeGreaterThan(0);
    expect(day.killedAfter).toHaveLength(2);
  });

  test("L1, L4: each recipient of an acknowledged message has one final event, and its state is that event's", async () => {
    const byRecipient = Map.groupBy(events, ({ data }) => keyOf(data.message_id, data.to));
    const wrong: string[] = [];
    for (const message of day.sent) {
      if (message.id === null) continue;
      const { json } = await day.svc.admin("GET", `/v1/messages/${message.id}`);
      for (const { email, status } of json.recipients) {
        const own = byRecipient.get(keyOf(message.id, email)) ?? [];
        const ends = own.filter(({ event }) => terminal.includes(event)).map(({ event }) => event);
        if (ends.join() !== `message.${status}`)
          wrong.push(`${message.id} ${email} is ${status}: ${ends.join()}`);
        // A day in full is long enough for mail to expire, where each of its attempts met a fault.
        const expired = full && own.at(-1)?.data.bounce_type === "soft";
        const expected = isUndeliverable(email) || expired ? "bounced" : "delivered";
        if (status !== expected) wrong.push(`${message.id} ${email} is ${status}, expected ${expected}`);
      }
      if (json.recipients.length !== message.recipients.length) wrong.push(`${message.id} lacks recipients`);
    }
    expect(wrong).toEqual([]);
  });

  test("the events of a recipient are in order: deferrals, each of a later attempt, then the end", () => {
    const wrong: string[] = [];
    for (const [recipient, own] of Map.groupBy(events, ({ data }) => keyOf(data.message_id, data.to))) {
      const attempts = own.map(({ data }) => data.attempt);
      const rising = attempts.every((attempt, i) => i === 0 || attempt > (attempts[i - 1] ?? 0));
      const early = own.slice(0, -1).every(({ event }) => event === "message.deferred");
      const last = own.at(-1)?.event ?? "";
      if (!rising || !early || !terminal.includes(last))
        wrong.push(`${recipient}: ${own.map(({ event, data }) => `${event} ${data.attempt}`).join(", ")}`);
    }
    expect(wrong).toEqual([]);
  });

  test("L1: what was delivered has a copy at its receiver, what bounced has none whose reply was not lost", () => {
    const delivered = new Set(
      events
        .filter(({ event }) => event === "message.delivered")
        .map(({ data }) => keyOf(data.message_id, data.to)),
    );
    const isDelivered = ({ message, recipient }: Entry): boolean =>
      delivered.has(keyOf(message.id ?? "", recipient));
    const wrong = acknowledged.filter((entry) => {
      const own = copiesOf(entry);
      if (isDelivered(entry)) return own.length === 0;
      return own.some(({ mailFrom, index }) => !day.faults.lostReplies.has(mailFrom) && !isNearKill(index));
    });
    expect(wrong.map(({ message, recipient }) => keyOf(message.token, recipient))).toEqual([]);
  });

  test("L2: what was never acknowledged came only from a sender without an answer", () => {
    const tokens = new Set(
      day.sent.flatMap(({ token, recipients }) => recipients.map((to) => keyOf(token, to))),
    );
    expect([...copies.keys()].filter((key) => !tokens.has(key))).toEqual([]);
    const ids = new Set(day.sent.map(({ id }) => id));
    const unknown = new Set(events.map(({ data }) => data.message_id).filter((id) => !ids.has(id)));
    expect(unknown.size).toBeLessThanOrEqual(day.sent.filter(({ id }) => id === null).length);
  });

  test("L3: a second copy came only where the final reply was lost, with the same Message-ID", async () => {
    const wrong: string[] = [];
    for (const [key, all] of copies) {
      const [token = ""] = key.split(" ");
      const ids = new Set(all.map(({ data }) => /^Message-ID: (.*)$/im.exec(data.toString("latin1"))?.[1]));
      if (all.length - 1 > (await causesOf(all, token)) || ids.size !== 1)
        wrong.push(`${key}: ${all.length} copies, ${ids.size} Message-IDs`);
    }
    expect(wrong).toEqual([]);
  });

  test("L5: the endpoint got each event, byte for byte the same each time, and no other", () => {
    expect(day.hook.requests.filter(({ problem }) => problem !== null)).toEqual([]);
    const got = Map.groupBy(day.hook.requests, ({ eventId }) => eventId);
    expect([...got.keys()].toSorted()).toEqual(events.map(({ event_id }) => event_id).toSorted());
    for (const { deliveries: _, ...event } of events as (Event & { deliveries: unknown })[]) {
      const bodies = new Set(got.get(event.event_id)?.map(({ body }) => body.toString()));
      expect([...bodies].map((body) => JSON.parse(body))).toEqual([event]);
    }
  });

  test("L6: the program is well at the end of it", async () => {
    expect(day.svc.process.exitCode).toBeNull();
    expect((await day.svc.admin("GET", "/v1/status")).status).toBe(200);
    expect(day.svc.log()).not.toMatch(/"level":"(?:fatal|error)"/);
  });
});
