// The store alone: a message accepted and its delivery settled, by so many callers at once, each waiting for its
// commit. What the single writer carries, and whether its cost grows with what is stored.
import { readdirSync, readFileSync } from "node:fs";
import { systemClock } from "../src/clock.ts";
import { silentLog } from "../src/log.ts";
import { openStore } from "../src/store/sqlite/sqlite-store.ts";
import type { Store } from "../src/store/store.ts";
import { minute, mint, newEvent, newMessage, settlementOf } from "../test/store/fixtures.ts";
import { anyAddress } from "./scale-load.ts";

export interface StoreFigures {
  callers: number;
  /** Messages accepted and settled in a second: two waits for a commit each. */
  perSecond: number;
  callsPerCommit: number;
  /** All threads of this process, its loop included. */
  cpuMicros: number;
  /** Of the writer's thread alone: a second has room for 1,000,000 of them. */
  writerMicros: number;
}

const bodyBytes = 700;

export async function measureStore(
  dataDir: string,
  people: number,
  work: { callers: number; messages: number; sizeBytes: number },
): Promise<StoreFigures> {
  const lost = (detail: string): never => {
    throw new Error(detail);
  };
  const store = await openStore({
    node: "bench",
    dataDir,
    clock: systemClock,
    log: silentLog,
    mint,
    minFreeShare: 0,
    onLost: lost,
  });
  try {
    let commits = 0;
    store.onCommit(() => commits++);
    const text = `Subject: x\r\n\r\n${"x".repeat(work.sizeBytes)}`;
    await run(store, people, { ...work, text, messages: work.callers * 10 });
    commits = 0;
    const [began, cpu, writer] = [performance.now(), process.cpuUsage(), writerSeconds()];
    await run(store, people, { ...work, text });
    const seconds = (performance.now() - began) / 1000;
    const used = process.cpuUsage(cpu);
    return {
      callers: work.callers,
      perSecond: work.messages / seconds,
      callsPerCommit: (2 * work.messages) / commits,
      cpuMicros: (used.user + used.system) / work.messages,
      writerMicros: ((writerSeconds() - writer) * 1e6) / work.messages,
    };
  } finally {
    await store.close();
  }
}

async function run(
  store: Store,
  people: number,
  work: { callers: number; messages: number; text: string },
): Promise<void> {
  let begun = 0;
  const call = async (): Promise<void> => {
    while (begun++ < work.messages) {
      const at = Date.now();
      const to = anyAddress(people);
      const wishes = { accountKey: 1, at, to: [to], lease: true, text: work.text };
      const accepted = await store.acceptMessage(newMessage(wishes));
      const [job] = accepted.kind === "accepted" ? accepted.jobs : [];
      if (!job) throw new Error(`not accepted: ${accepted.kind}`);
      const event = newEvent({
        accountKey: 1,
        receivedAt: at,
        messageKey: job.message.key,
        recipient: job.canonical,
        body: `{"data":{"text":"${"x".repeat(bodyBytes)}"}}`,
      });
      await store.settle(settlementOf(job, at + minute / 100, { event }));
    }
  };
  await Promise.all(Array.from({ length: work.callers }, call));
}

/** Of the processors, by the kernel's count of hundredths. */
function writerSeconds(): number {
  let ticks = 0;
  for (const task of readdirSync("/proc/self/task")) {
    const stat = readFileSync(`/proc/self/task/${task}/stat`, "utf8");
    if (!stat.includes("(writer-thread)")) continue;
    const [user, system] = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .slice(11, 13)
      .map(Number);
    ticks += (user ?? 0) + (system ?? 0);
  }
  return ticks / 100;
}
