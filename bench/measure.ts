// One measurement of one party: mails in by SMTP, until the sink has all of them. What each party used of the
// processors comes from its group; who else was busy on the machine is told, and spoils a run above a limit.
import { availableParallelism } from "node:os";
import { setTimeout as wait } from "node:timers/promises";
import { createGroup, machineBusySeconds, type Group } from "./group.ts";
import type { Running } from "./parties/party.ts";
import {
  ports,
  runSmtpSource,
  runSource,
  type ClientWays,
  type Login,
  type Sink,
  type SourceResult,
  type Tools,
} from "./tools.ts";

export interface Load extends Omit<ClientWays, "login"> {
  messages: number;
  sizeBytes: number;
  sessions: number;
  newConnections: boolean;
  destinations: number;
  /** Mails begun in a second; 0: as many as go. */
  perSecond: number;
  /** Each session logs in, as the party says. */
  logsIn?: boolean;
  /** The client is our own, as it is anyway where smtp-source cannot do the work. */
  ownClient?: boolean;
}

export interface Measured {
  messages: number;
  /** From the first mail until the sink has answered the last one. */
  perSecond: number;
  acceptedPerSecond: number;
  perCpuSecond: number;
  cpuMicros: number;
  userMicros: number;
  systemMicros: number;
  /** Of the generator and of the sink, per message. */
  generatorMicros: number;
  sinkMicros: number;
  peakBytes: number;
  /** Milliseconds from our 250 to the receiver's; null where mails have no number. */
  latencyP50: number | null;
  latencyP99: number | null;
  /** Milliseconds of an API request. */
  answerP50?: number;
  answerP99?: number;
  sinkConnections?: number;
  signaturesPerMessage?: number;
  /** Share of the machine that none of ours used. */
  others: number;
  /** Share of the processors that all of it used. */
  busy: number;
  /** What makes it worthless; null: it counts. */
  fault: string | null;
}

const othersMost = 0.12;
const stallMs = 30_000;

export interface Counted {
  party: { user: number; system: number };
  generator: { user: number; system: number };
  sink: { user: number; system: number };
  busySeconds: number;
}

export async function measureSmtp(
  running: Running,
  sink: Sink,
  tools: Tools,
  load: Load,
  signatures: number,
): Promise<Measured> {
  await sink.reset();
  const generator = createGroup("generator");
  try {
    const memory = watchMemory(running.group);
    const before = count(running.group, generator, sink.group);
    const { logsIn = false, ownClient = false, ...work } = load;
    const own = ownClient || load.pipelined || load.tls || load.destinations > 1 || load.perSecond > 0;
    const result: SourceResult & { acceptedNs?: BigUint64Array } = own
      ? await runSource(generator, tools, load.tls ? ports.smtps : ports.smtp, {
          ...work,
          ...(logsIn ? { login: loginOf(running) } : {}),
          firstNumber: 0,
        })
      : await runSmtpSource(generator, ports.smtp, load);
    const missing = await allAnswered(sink, load.messages);
    const after = count(running.group, generator, sink.group);
    const stats = sink.stats();
    const latencies =
      result.acceptedNs === undefined
        ? []
        : latenciesOf(result.acceptedNs, sink.deliveredNs(0, load.messages));
    const signed = stats.signatures / Math.max(1, stats.messages);
    const fault = missing
      ? `the sink has ${stats.messages} of ${load.messages}`
      : signed + 1e-9 < signatures
        ? `${signed} signatures a message`
        : null;
    return {
      ...figures(before, after, result, load.messages, Math.max(stats.answeredNs, result.beganNs + 1)),
      peakBytes: memory.stop(),
      latencyP50: percentile(latencies, 0.5),
      latencyP99: percentile(latencies, 0.99),
      sinkConnections: stats.connections,
      signaturesPerMessage: signed,
      ...(fault === null ? {} : { fault }),
    };
  } finally {
    await generator.end();
  }
}

function loginOf({ login }: Running): Login {
  if (login === undefined) throw new Error("it knows no login: its setting lacks submission");
  return login;
}

/** So many mails at once, each by a sender of its own. */
export async function measureLarge(
  running: Running,
  sink: Sink,
  messages: number,
  sizeBytes: number,
): Promise<Measured> {
  await sink.reset();
  const generator = createGroup("generator");
  try {
    const memory = watchMemory(running.group);
    const before = count(running.group, generator, sink.group);
    const one = { messages: 1, sizeBytes, sessions: 1, newConnections: true };
    const all = await Promise.all(
      Array.from({ length: messages }, () => runSmtpSource(generator, ports.smtp, one)),
    );
    const result = {
      beganNs: Math.min(...all.map(({ beganNs }) => beganNs)),
      endedNs: Math.max(...all.map(({ endedNs }) => endedNs)),
    };
    const missing = await allAnswered(sink, messages);
    const after = count(running.group, generator, sink.group);
    const measured = figures(before, after, result, messages, sink.stats().answeredNs);
    const fault = missing ? `the sink has ${sink.stats().messages} of ${messages}` : measured.fault;
    return { ...measured, peakBytes: memory.stop(), fault };
  } finally {
    await generator.end();
  }
}

export function count(party: Group, generator: Group, sink: Group): Counted {
  return {
    party: party.cpu(),
    generator: generator.cpu(),
    sink: sink.cpu(),
    busySeconds: machineBusySeconds(),
  };
}

type Figures = Omit<Measured, "peakBytes">;

/** What follows from times and processors alone. */
export function figures(
  before: Counted,
  after: Counted,
  { beganNs, endedNs }: SourceResult,
  messages: number,
  deliveredNs: number,
): Figures {
  const used = (name: "party" | "generator" | "sink") => ({
    user: after[name].user - before[name].user,
    system: after[name].system - before[name].system,
  });
  const [party, generator, sink] = [used("party"), used("generator"), used("sink")];
  const sum = (cpu: { user: number; system: number }): number => cpu.user + cpu.system;
  const seconds = (Math.max(endedNs, deliveredNs) - beganNs) / 1e9;
  const ours = (sum(party) + sum(generator) + sum(sink)) / 1e6;
  const all = after.busySeconds - before.busySeconds;
  const capacity = seconds * availableParallelism();
  const others = Math.max(0, all - ours) / capacity;
  return {
    messages,
    perSecond: messages / ((deliveredNs - beganNs) / 1e9),
    acceptedPerSecond: messages / ((endedNs - beganNs) / 1e9),
    perCpuSecond: messages / (sum(party) / 1e6),
    cpuMicros: sum(party) / messages,
    userMicros: party.user / messages,
    systemMicros: party.system / messages,
    generatorMicros: sum(generator) / messages,
    sinkMicros: sum(sink) / messages,
    latencyP50: null,
    latencyP99: null,
    others,
    busy: all / capacity,
    fault: others > othersMost ? `others used ${Math.round(others * 100)} % of the machine` : null,
  };
}

/** True where it gave up: nothing came for a while. */
export async function allAnswered(sink: Sink, messages: number): Promise<boolean> {
  let [seen, since] = [-1, performance.now()];
  for (;;) {
    const { messages: accepted, deferred } = sink.stats();
    if (accepted + deferred >= messages) return false;
    if (accepted + deferred !== seen) [seen, since] = [accepted + deferred, performance.now()];
    else if (performance.now() - since > stallMs) return true;
    await wait(5);
  }
}

function latenciesOf(accepted: BigUint64Array, delivered: BigUint64Array): number[] {
  const result: number[] = [];
  accepted.forEach((at, i) => {
    const arrived = delivered[i] ?? 0n;
    if (at > 0n && arrived > 0n) result.push(Math.max(0, Number(arrived - at) / 1e6));
  });
  return result.toSorted((a, b) => a - b);
}

export function percentile(sorted: number[], share: number): number | null {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null;
}

/** Looks four times a second. */
export function watchMemory(group: Group): { stop(): number } {
  let peak = group.residentBytes();
  const timer = setInterval(() => (peak = Math.max(peak, group.residentBytes())), 250);
  return {
    stop() {
      clearInterval(timer);
      return Math.max(peak, group.residentBytes());
    },
  };
}

/** Waits for a second in which the machine has little to do, at most so long. */
export async function quiet(mostSeconds: number): Promise<void> {
  for (let i = 0; i < mostSeconds; i++) {
    const before = machineBusySeconds();
    await wait(1_000);
    if (machineBusySeconds() - before < 0.1 * availableParallelism()) return;
  }
}
