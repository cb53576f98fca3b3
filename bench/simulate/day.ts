// One day, played against the queue's own code: ready queues with their limiters, throttles and slots (queue/ready-queues.ts)
// and the retry schedule (queue/schedule.ts) decide when a message is tried and from where; receivers.ts answers. Each
// message is played by itself. Left out: the store, the name servers and this program's own time, as if they took none.
import { systemSources, type Source } from "../../src/pools/sources.ts";
import { createWarmupCounts } from "../../src/pools/warmup-counts.ts";
import { capWaitUntil } from "../../src/pools/warmup.ts";
import { createReadyQueues, type ReadyQueue, type Slot } from "../../src/queue/ready-queues.ts";
import type { Destination } from "../../src/queue/routing.ts";
import { nextAttemptAt, type RetrySchedule } from "../../src/queue/schedule.ts";
import { createShaping, localGroup } from "../../src/queue/shaping.ts";
import { addressesOf } from "./addresses.ts";
import { createSimulatedTime, EventHeap } from "./events.ts";
import { createLedger, type Day, type Done } from "./ledger.ts";
import { fates, Messages, none } from "./messages.ts";
import { createRandom } from "./random.ts";
import { createReceivers, type Receiver, type Reply } from "./receivers.ts";
import { trafficOf } from "./traffic.ts";

export interface DayOptions {
  messages: number;
  addresses: number;
  /** The day of their warm-up; null: they are warm. */
  warmupDay: number | null;
  seed: number;
  /** Times the receivers' assumed rates and connections. */
  caps: number;
  schedule: RetrySchedule;
  /** Content of a shaping file; null: the built-in table. */
  shapingFile: unknown;
  /** The simulation ends here, milliseconds from midnight; what is not done then is left. */
  endMs: number;
}

/** A recipient domain, and its due messages, oldest first. */
interface Domain {
  id: number;
  receiver: Receiver;
  to: Destination;
  first: number;
  last: number;
}

interface Attempt {
  message: number;
  /** 1 for the first. */
  number: number;
  domain: Domain;
  queue: ReadyQueue;
  slot: Slot;
  reply: Reply;
}

/** The classes that RFC 5321 calls permanent. */
const permanent: ReadonlySet<string> = new Set(["unknown_user", "unknown_domain"]);

export function playDay(options: DayOptions): Day {
  const { schedule, seed } = options;
  const { clock, moveTo, nextTimerAt, runTimer } = createSimulatedTime();
  const receivers = createReceivers(seed + 1, options.caps);
  const random = createRandom(seed + 2);
  const sources = addressesOf(options.addresses, options.warmupDay);
  const ledger = createLedger();
  const messages = new Messages();
  const due = new EventHeap();
  const ends = new EventHeap();
  const running: Attempt[] = [];
  const unused: number[] = [];
  const domains: (Domain | undefined)[] = [];
  const byQueue = new Map<string, Domain>();
  const ready = createReadyQueues({
    shaping: createShaping(options.shapingFile),
    warmups: createWarmupCounts(clock),
    clock,
    random,
    run: (queue) => pump(queue),
  });

  const domainOf = (id: number): Domain => {
    const known = domains[id];
    if (known) return known;
    const receiver = receivers.create(id);
    const domain = { id, receiver, to: destinationOf(receiver, sources), first: none, last: none };
    domains[id] = domain;
    byQueue.set(domain.to.readyQueue, domain);
    return domain;
  };
  const isDeliverable = (message: number, { receiver }: Domain): boolean =>
    receiver.dead === null && messages.fate(message) === fates.delivered;

  /** The message is due: it goes to the end of its ready queue. */
  const enqueue = (message: number): void => {
    const domain = domainOf(messages.domain(message));
    messages.setNext(message, none);
    const queue = ready.of(domain.to);
    if (domain.first === none) {
      domain.first = message;
      queue.due.push({ queueName: domain.to.readyQueue, to: domain.to }); // or an idle queue would be forgotten
    } else messages.setNext(domain.last, message);
    domain.last = message;
    ledger.due(domain.id, 1);
    pump(queue);
  };

  function pump(queue: ReadyQueue): void {
    const domain = byQueue.get(queue.name);
    if (!domain) return;
    while (domain.first !== none && ready.room(queue) > 0) {
      const isOver = ready.isAtCap(queue);
      if (isOver && waitsForCap(domain, queue)) continue;
      const slot = ready.take(queue);
      if (!slot) return ready.runAtNextTurn(queue);
      const message = takeFirst(domain, queue);
      if (isOver) ledger.overCap(domain.id);
      begin(message, domain, queue, slot);
    }
  }

  const takeFirst = (domain: Domain, queue: ReadyQueue): number => {
    const message = domain.first;
    domain.first = messages.next(message);
    if (domain.first === none) queue.due.length = 0;
    return message;
  };

  /** As queue/serving.ts does it; the oldest is first, and goes over the cap before the others. */
  const waitsForCap = (domain: Domain, queue: ReadyQueue): boolean => {
    const queuedAt = messages.queuedAt(domain.first);
    const until = capWaitUntil(queuedAt, schedule.maxAgeMs, clock.now());
    if (until === null) return false;
    ledger.due(domain.id, -1);
    due.push(until, takeFirst(domain, queue));
    return true;
  };

  const begin = (message: number, domain: Domain, queue: ReadyQueue, slot: Slot): void => {
    const now = clock.now();
    const number = messages.beginAttempt(message, now);
    const age = now - messages.firstTriedAt(message);
    const reply = receivers.reached(domain.receiver, slot.source.address, messages.fate(message), age, now);
    ledger.due(domain.id, -1);
    ledger.attempted(domain.id, number, reply.answer);
    const place = unused.pop() ?? running.length;
    running[place] = { message, number, domain, queue, slot, reply };
    ends.push(now + reply.tookMs, place);
  };

  /** As queue/attempts.ts and queue/settle.ts do it. */
  const end = (place: number): void => {
    const attempt = running[place];
    unused.push(place);
    if (!attempt) return;
    const { domain, slot, queue, reply } = attempt;
    receivers.leave(domain.receiver, slot.source.address);
    if (reply.answer === "rate_limited") slot.limiter.throttle.slowDown("421 slow down");
    settle(attempt);
    ready.leave(queue, slot, true);
  };

  const settle = ({ message, number, domain, reply }: Attempt): void => {
    const now = clock.now();
    const queuedAt = messages.queuedAt(message);
    let how: Done = "expired";
    if (reply.answer === "delivered") how = "delivered";
    else if (permanent.has(reply.answer)) how = "bounced";
    else {
      const named = { delayMs: reply.namedMs, random: random() };
      const next = nextAttemptAt(schedule, number, queuedAt, now, named);
      if (next) return due.push(next.at, message);
    }
    ledger.done(domain.id, how, isDeliverable(message, domain), now - queuedAt, now);
    messages.remove(message);
  };

  const traffic = trafficOf(options.messages, createRandom(seed));
  for (let arrival = traffic.next(); ;) {
    const arrivesAt = arrival.done === true ? Number.POSITIVE_INFINITY : arrival.value.at;
    const [dueAt, endsAt, timerAt] = [due.nextAt(), ends.nextAt(), nextTimerAt()];
    const at = Math.min(arrivesAt, dueAt, endsAt, timerAt);
    if (at > options.endMs) break;
    ledger.sampleUntil(at);
    moveTo(at);
    if (endsAt === at) end(ends.pop());
    else if (timerAt === at) runTimer();
    else if (dueAt === at) enqueue(due.pop());
    else if (arrival.done !== true) {
      const { domain, fate } = arrival.value;
      const message = messages.add(domain, fate, at);
      ledger.accepted(domain, isDeliverable(message, domainOf(domain)));
      enqueue(message);
      arrival = traffic.next();
    }
  }
  ledger.sampleUntil(options.endMs);
  return ledger.day();
}

function destinationOf(receiver: Receiver, sources: readonly Source[]): Destination {
  const local = receiver.dead === "unknown_domain";
  const from = local ? systemSources.usable(null) : sources;
  return {
    group: local ? localGroup : receiver.group,
    account: 1,
    readyQueue: receiver.group,
    sources: () => from,
    sourcesOf: () => from,
    prepare: () => undefined,
    attempt: () => Promise.reject(new Error("receivers.ts answers")),
  };
}
