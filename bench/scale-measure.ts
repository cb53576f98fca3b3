// The measurements of one filled directory. Those of a running product: start to the first delivery, CPU of a
// message, memory, pages of lists, one message, POST. Those of the store's own statements: the suppression check,
// and what retention costs.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { databaseName, openReading, openWriting } from "../src/store/sqlite/engine/open.ts";
import { prepareLookups } from "../src/store/sqlite/nouns.ts";
import { createWriter } from "../src/store/sqlite/writer.ts";
import { machineBusySeconds } from "./group.ts";
import { allAnswered, percentile, quiet, watchMemory } from "./measure.ts";
import { startProduct, type RunningProduct } from "./parties/product.ts";
import { createKey } from "./rest.ts";
import {
  historyId,
  personAddress,
  queuePrefix,
  receivers,
  suppressedAddress,
  type Filled,
} from "./scale-fill.ts";
import { anyAddress, postMessages, sendMails } from "./scale-load.ts";
import { median } from "./table.ts";
import { startSink, type Sink, type Tools } from "./tools.ts";
import { raisedLimits } from "./webhooks.ts";

export interface RunFigures {
  /** From the call to start until the first of the due mails was answered with 250. */
  firstDeliveryMs: number;
  cpuMicros: number;
  perSecond: number;
  idleBytes: number;
  peakBytes: number;
  others: number;
  /** Milliseconds: of each kind of page the median of a few, and of single messages. */
  pages: Record<string, number>;
  oneMessage: { median: number; p99: number };
  post: { median: number; p99: number };
}

export const start = (tools: Tools, dataDir: string): Promise<RunningProduct> =>
  startProduct({ signed: true, route: "mx", destinations: receivers }, tools, {
    config: {
      data_dir: dataDir,
      limits: { ...raisedLimits, min_free_space: "0%", max_queue: 100_000_000 },
    },
  });

/** One waiting mail of each domain with a receiver becomes due; the domain of the next start is not there yet. */
function prepare(dataDir: string): void {
  const db = openWriting(join(dataDir, databaseName));
  db.prepare("DELETE FROM domains WHERE name = 'example.test'").run();
  const due = db.prepare(
    `UPDATE recipients SET due_at = ? WHERE key = (SELECT key FROM recipients INDEXED BY recipients_waiting
       WHERE queue_name = ? AND due_at IS NOT NULL AND state = 'deferred' ORDER BY due_at LIMIT 1)`,
  );
  for (let n = 0; n < receivers; n++) due.run(Date.now() - 1000, `${queuePrefix}d${n}.test`);
  db.close();
}

/** Reads the trees that are met at random places, as days of traffic would have: the system keeps them, if it has room. */
export function warmUp(dataDir: string): void {
  const db = openReading(join(dataDir, databaseName), 4096);
  db.prepare("SELECT count(*) FROM suppressions").get();
  db.prepare("SELECT count(*) FROM recipients INDEXED BY recipients_address").get();
  db.close();
}

export function dropCaches(): void {
  writeFileSync("/proc/sys/vm/drop_caches", "3");
}

export async function startOnly(tools: Tools, filled: Filled, cold: boolean): Promise<number> {
  const sink = await startSink(tools, { addresses: receivers });
  try {
    const { running, firstDeliveryMs } = await startDue(tools, sink, filled.dataDir, cold);
    await running.stop();
    return firstDeliveryMs;
  } finally {
    await sink.stop();
  }
}

async function startDue(
  tools: Tools,
  sink: Sink,
  dataDir: string,
  cold: boolean,
): Promise<{ running: RunningProduct; firstDeliveryMs: number }> {
  prepare(dataDir);
  if (cold) dropCaches();
  else warmUp(dataDir);
  const began = performance.now();
  const starting = start(tools, dataDir);
  let firstDeliveryMs = 0;
  const watch = (async () => {
    while (sink.stats().messages === 0 && performance.now() - began < 60_000) await wait(2);
    firstDeliveryMs = performance.now() - began;
  })();
  const [running] = await Promise.all([starting, watch]);
  while (sink.stats().messages < receivers && performance.now() - began < 60_000) await wait(20);
  return { running, firstDeliveryMs };
}

export async function measureRun(tools: Tools, filled: Filled, messages: number): Promise<RunFigures> {
  const sink = await startSink(tools, { addresses: receivers });
  try {
    const { running, firstDeliveryMs } = await startDue(tools, sink, filled.dataDir, false);
    try {
      const idleBytes = running.group.residentBytes();
      await relay(sink, filled, Math.min(2000, messages));
      await quiet(10);
      const memory = watchMemory(running.group);
      const [before, ofSink, busy] = [running.group.cpu(), sink.group.cpu(), machineBusySeconds()];
      const [own, began] = [process.cpuUsage(), performance.now()];
      await relay(sink, filled, messages);
      const seconds = (performance.now() - began) / 1000;
      const sum = (cpu: { user: number; system: number }): number => cpu.user + cpu.system;
      const party = sum(running.group.cpu()) - sum(before);
      const ours = party + sum(sink.group.cpu()) - sum(ofSink) + sum(process.cpuUsage(own));
      const others = Math.max(0, machineBusySeconds() - busy - ours / 1e6) / (2 * seconds);
      const pages = await measurePages(running, filled);
      const oneMessage = await measureOne(running, filled);
      const times = await postMessages(await createKey(running), 3000, filled.people);
      const post = { median: percentile(times, 0.5) ?? NaN, p99: percentile(times, 0.99) ?? NaN };
      return {
        firstDeliveryMs,
        cpuMicros: party / messages,
        perSecond: messages / seconds,
        idleBytes,
        peakBytes: memory.stop(),
        others,
        pages,
        oneMessage,
        post,
      };
    } finally {
      await running.stop();
    }
  } finally {
    await sink.stop();
  }
}

async function relay(sink: Sink, filled: Filled, messages: number): Promise<void> {
  await sink.reset();
  await sendMails(messages, 4096, filled.people);
  if (await allAnswered(sink, messages))
    throw new Error(`the sink has ${sink.stats().messages} of ${messages}`);
}

const day = 86_400_000;
/** A message of the younger half: an earlier run may have removed some of the other. */
const younger = ({ messages }: Filled): number => Math.floor((messages * (1 + Math.random())) / 2);

/** Filters that find what they look for, and such that find nothing and walk as far as a page may. */
function pagePaths(filled: Filled): Record<string, () => string> {
  const person = (): string => personAddress(Math.floor(Math.random() * filled.people));
  const id = (): string => historyId(younger(filled));
  const time = (): string => new Date(Date.now() - (6 + Math.random() * 20) * day).toISOString();
  return {
    "messages, newest": () => "/v1/messages?limit=200",
    "messages of an address": () => `/v1/messages?to=${person()}`,
    "messages of a day": () => `/v1/messages?created_before=${time()}&limit=200`,
    "messages, status that none has": () => `/v1/messages?status=canceled&created_before=${time()}`,
    "messages, tag that none has": () => `/v1/messages?tag=none&created_before=${time()}`,
    "messages, domain that none has": () => `/v1/messages?to_domain=none.test&created_before=${time()}`,
    "messages, words that none has": () => `/v1/messages?subject=none&created_before=${time()}`,
    "events, oldest": () => "/v1/events?limit=1000",
    "events, newest": () => "/v1/events?order=desc&limit=1000",
    "events of an address": () => `/v1/events?to=${person()}`,
    "events of a message": () => `/v1/events?message_id=${id()}`,
    "events, type that none has": () => "/v1/events?event=message.complained&order=desc",
    "events, tag that none has": () => "/v1/events?tag=none&order=desc",
    "events, IP address that none has": () => "/v1/events?ip_address=192.0.2.99",
    "events, delivery state that none has": () => "/v1/events?delivery_status=pending&order=desc",
    "suppressions, first": () => "/v1/suppressions",
    "suppressions by start": () =>
      `/v1/suppressions?email_prefix=${Math.floor(Math.random() * 0xff).toString(16)}`,
    "suppressions, domain that none has": () => "/v1/suppressions?domain=none.test",
  };
}

async function measurePages(running: RunningProduct, filled: Filled): Promise<Record<string, number>> {
  const result: Record<string, number> = {};
  for (const [name, path] of Object.entries(pagePaths(filled))) {
    const times: number[] = [];
    for (let i = 0; i < 5; i++) {
      const began = performance.now();
      const { status, text } = await running.admin("GET", path());
      times.push(performance.now() - began);
      if (status !== 200 && filled.messages > 0) throw new Error(`${name}: ${status} ${text}`);
    }
    result[name] = median(times);
  }
  return result;
}

async function measureOne(running: RunningProduct, filled: Filled): Promise<RunFigures["oneMessage"]> {
  const times: number[] = [];
  for (let i = 0; filled.messages > 0 && i < 1000; i++) {
    const id = historyId(younger(filled));
    const began = performance.now();
    const { status } = await running.admin("GET", `/v1/messages/${id}`);
    times.push(performance.now() - began);
    if (status !== 200) throw new Error(`GET of ${id}: ${status}`);
  }
  times.sort((a, b) => a - b);
  return { median: percentile(times, 0.5) ?? NaN, p99: percentile(times, 0.99) ?? NaN };
}

export interface CheckFigures {
  medianMicros: number;
  p99Micros: number;
}

/** The loop's own look-up; half of the keys are on the list. Warm: the same keys a second time. */
export function measureSuppression(filled: Filled, keys: number, cold: boolean): CheckFigures {
  if (cold) dropCaches();
  const db = openReading(join(filled.dataDir, databaseName), 4096);
  const { suppression } = prepareLookups(db);
  const addresses = Array.from({ length: keys }, (_, i) =>
    i % 2 === 0 && filled.suppressed > 0
      ? suppressedAddress(Math.floor(Math.random() * filled.suppressed), filled.suppressed)
      : anyAddress(filled.people),
  );
  let found = 0;
  const pass = (): number[] =>
    addresses.map((address) => {
      const began = process.hrtime.bigint();
      if (suppression(1, address, 0)) found++;
      return Number(process.hrtime.bigint() - began) / 1000;
    });
  if (!cold) pass();
  found = 0;
  const times = pass().toSorted((a, b) => a - b);
  db.close();
  if (filled.suppressed > 0 && found !== Math.ceil(keys / 2))
    throw new Error(`${found} of ${keys} were found`);
  return { medianMicros: percentile(times, 0.5) ?? NaN, p99Micros: percentile(times, 0.99) ?? NaN };
}

export interface PurgeFigures {
  messages: number;
  events: number;
  /** A message with its recipient, attempt and events. */
  microsPerMessage: number;
  pieceMedianMs: number;
  pieceP99Ms: number;
}

/** Removes the oldest `messages` of the history with their events, in pieces of `limit` rows as the job does. */
export function measurePurge(filled: Filled, messages: number, limit: number): PurgeFigures {
  const db = openWriting(join(filled.dataDir, databaseName));
  const { commands } = createWriter(db);
  const nth = db.prepare<[number, number], { at: number }>(
    "SELECT created_at AS at FROM messages WHERE key > ? ORDER BY key LIMIT 1 OFFSET ?",
  );
  const before = nth.get(filled.base, messages)?.at ?? 0;
  const times: number[] = [];
  const sum = { messages: 0, events: 0 };
  for (let more = true; more;) {
    const began = performance.now();
    db.exec("BEGIN IMMEDIATE");
    const bounds = { contentBefore: 0, messagesBefore: before, eventsBefore: before, auditBefore: 0 };
    const purged = commands.purge({ now: Date.now(), limit, ...bounds });
    db.exec("COMMIT");
    times.push(performance.now() - began);
    sum.messages += purged.messages;
    sum.events += purged.events;
    ({ more } = purged);
    if (times.length % 50 === 0) db.pragma("wal_checkpoint(PASSIVE)");
  }
  db.close();
  const all = times.reduce((a, b) => a + b, 0);
  times.sort((a, b) => a - b);
  return {
    ...sum,
    microsPerMessage: (all * 1000) / Math.max(1, sum.messages),
    pieceMedianMs: percentile(times, 0.5) ?? NaN,
    pieceP99Ms: percentile(times, 0.99) ?? NaN,
  };
}
