// What is measured: each row is one kind of work, done by contenders in turn, with the targets that it has to
// meet. Names of rows are what --rows takes.
import { setTimeout as wait } from "node:timers/promises";
import { measureLarge, measureSmtp, watchMemory, type Load, type Measured } from "./measure.ts";
import { haraka } from "./parties/haraka.ts";
import type { Party, Running, Setting } from "./parties/party.ts";
import { postfix } from "./parties/postfix.ts";
import { product } from "./parties/product.ts";
import { measureRest } from "./rest.ts";
import type { Sink, SinkOptions, Tools } from "./tools.ts";
import { measureBacklog, productWithReceiver, raisedLimits } from "./webhooks.ts";

export interface ContenderSetup {
  running: Running;
  sink: Sink;
  tools: Tools;
}

export interface Contender {
  name: string;
  party: Party;
  setting: Setting;
  sink: SinkOptions;
  /** So many messages, once and without a warm-up; else as many as fill the time. */
  fixedMessages?: number;
  measure(setup: ContenderSetup, messages: number): Promise<Measured>;
}

export interface Target {
  /** What is compared, and the bound: `messages per CPU-second ≥ 5 × Postfix + OpenDKIM`. */
  text: string;
  /** From one round's measurements by contender. */
  value(of: (contender: string) => Measured): number;
  least?: number;
  most?: number;
}

export interface Row {
  name: string;
  title: string;
  contenders: Contender[];
  targets: Target[];
}

const sessions = 20;
const peers = {
  openDkim: "Postfix + OpenDKIM",
  postfix: "Postfix",
  haraka: "Haraka",
  harakaDkim: "Haraka + dkim",
};

type Client = Pick<Load, "pipelined" | "tls" | "logsIn" | "ownClient">;

interface SmtpWork {
  signed: boolean;
  rsaOnly?: boolean;
  sizeBytes: number;
  newConnections?: boolean;
  destinations?: number;
  client?: Client;
}

const ours = (signed: boolean, destinations = 1): Setting => ({
  signed,
  route: signed ? "mx" : "relay",
  destinations,
});

function smtp(name: string, party: Party, work: SmtpWork, more: Partial<Contender> = {}): Contender {
  const { sizeBytes, newConnections = false, destinations = 1, rsaOnly = false, client = {} } = work;
  const load: Omit<Load, "messages"> = {
    ...{ sizeBytes, sessions, newConnections, destinations, perSecond: 0 },
    ...client,
  };
  const signatures = work.signed ? (party.name === "svc" && !rsaOnly ? 2 : 1) : 0;
  return {
    name,
    party,
    setting: { ...ours(work.signed, destinations), rsaOnly, submission: client.tls ?? false },
    sink: { addresses: destinations },
    measure: ({ running, sink, tools }, messages) =>
      measureSmtp(running, sink, tools, { ...load, messages }, signatures),
    ...more,
  };
}

const beside = (work: SmtpWork): Contender[] => [
  smtp("svc", product(), work),
  smtp(work.signed ? peers.openDkim : peers.postfix, postfix, work),
  smtp(work.signed ? peers.harakaDkim : peers.haraka, haraka, work),
];

const words = { perSecond: "messages/s", perCpuSecond: "messages per CPU-second" } as const;

/** svc is at least so many times a peer. */
const times = (what: keyof typeof words, least: number, other: string): Target => ({
  text: `${words[what]} ≥ ${least} × ${other}`,
  value: (of) => of("svc")[what] / of(other)[what],
  least,
});

/** One way of svc keeps a share of what another one does. */
const share = (of: string, least: number, other: string): Target => ({
  text: `messages/s of ${of} ≥ ${least * 100} % of ${other}`,
  value: (get) => get(of).perSecond / get(other).perSecond,
  least,
});

/** At half of its own top rate, which is measured first. */
function atHalfRate(name: string, party: Party): Contender {
  const contender = smtp(name, party, { signed: true, sizeBytes: 4096 });
  const load = { sizeBytes: 4096, sessions, newConnections: false, destinations: 1 };
  const signatures = party.name === "svc" ? 2 : 1;
  return {
    ...contender,
    async measure({ running, sink, tools }, messages) {
      const top = await measureSmtp(running, sink, tools, { ...load, messages, perSecond: 0 }, signatures);
      const perSecond = Math.round(top.perSecond / 2);
      return measureSmtp(running, sink, tools, { ...load, messages, perSecond }, signatures);
    },
  };
}

const signed4k: SmtpWork = { signed: true, sizeBytes: 4096 };
const restParty = product({ config: { limits: raisedLimits } });

function accept(name: string, idempotencyKeys: boolean): Contender {
  return {
    name,
    party: restParty,
    setting: ours(true),
    sink: {},
    measure: ({ running }, messages) =>
      measureRest(running, null, { messages, sizeBytes: 4096, idempotencyKeys }),
  };
}

const html4k = (name: string, tracked: boolean): Contender => ({
  ...smtp(name, restParty, signed4k),
  measure: ({ running, sink }, messages) =>
    measureRest(running, sink, { messages, sizeBytes: 4096, idempotencyKeys: false, tracked }),
});

const atLeast5000 = (name: string, what: string): Target => ({
  text: `${what} of ${name} ≥ 5000`,
  value: (of) => of(name).perSecond,
  least: 5000,
});

const megabytes = (name: string, most: number): Target => ({
  text: `peak MB of ${name} ≤ ${most}`,
  value: (of) => of(name).peakBytes / 1e6,
  most,
});

const idleMs = 10_000;

async function measureIdle({ running }: ContenderSetup): Promise<Measured> {
  const memory = watchMemory(running.group);
  await wait(idleMs);
  const nothing = { messages: 0, perSecond: NaN, acceptedPerSecond: NaN, perCpuSecond: NaN, cpuMicros: NaN };
  const micros = { userMicros: NaN, systemMicros: NaN, generatorMicros: NaN, sinkMicros: NaN };
  const rest = { latencyP50: null, latencyP99: null, others: 0, busy: 0, fault: null };
  return { ...nothing, ...micros, ...rest, peakBytes: memory.stop() };
}

const loggedIn: Client = { tls: true, logsIn: true };
const signed4kToMany: SmtpWork = { ...signed4k, destinations: 1000 };

export const rows: Row[] = [
  {
    name: "signed-4k",
    title: "SMTP in → signed → out, 4 KB, one destination. svc: both keys, by MX. Peers: RSA only, relayed.",
    contenders: [...beside(signed4k), smtp("svc, RSA only", product(), { ...signed4k, rsaOnly: true })],
    targets: [
      times("perCpuSecond", 5, peers.openDkim),
      times("perCpuSecond", 4, peers.harakaDkim),
      times("perSecond", 5, peers.openDkim),
    ],
  },
  {
    name: "signed-50k",
    title: "The same with 50 KB.",
    contenders: beside({ signed: true, sizeBytes: 51_200 }),
    targets: [times("perCpuSecond", 4, peers.openDkim), times("perSecond", 4, peers.openDkim)],
  },
  {
    name: "signed-4k-1000",
    title:
      "SMTP in → signed → out, 4 KB, 1,000 destinations in turn. svc: a connection each. Peers relay to one.",
    contenders: beside(signed4kToMany),
    targets: [times("perCpuSecond", 5, peers.openDkim), times("perSecond", 5, peers.openDkim)],
  },
  {
    name: "signed-50k-1000",
    title: "The same with 50 KB.",
    contenders: beside({ signed: true, sizeBytes: 51_200, destinations: 1000 }),
    targets: [times("perCpuSecond", 4, peers.openDkim), times("perSecond", 4, peers.openDkim)],
  },
  {
    name: "unsigned-4k",
    title: "SMTP in → out, unsigned, 4 KB, all through one smart host.",
    contenders: beside({ signed: false, sizeBytes: 4096 }),
    targets: [times("perCpuSecond", 4, peers.postfix), times("perSecond", 4, peers.postfix)],
  },
  {
    name: "unsigned-50k",
    title: "The same with 50 KB (no target of its own).",
    contenders: beside({ signed: false, sizeBytes: 51_200 }),
    targets: [],
  },
  {
    name: "new-connections",
    title: "SMTP in → signed → out, 4 KB, a new client connection for every message.",
    contenders: beside({ ...signed4k, newConnections: true }),
    targets: [times("perSecond", 3, peers.openDkim)],
  },
  {
    name: "pipelined",
    title:
      "signed-4k by a client that writes MAIL, RCPT and DATA at once (RFC 2920); in lockstep: the same client, reply by reply.",
    contenders: [
      ...beside({ ...signed4k, client: { pipelined: true } }),
      smtp("svc, in lockstep", product(), { ...signed4k, client: { ownClient: true } }),
    ],
    targets: [],
  },
  {
    name: "submission",
    title:
      "SMTP in with TLS and a login (AUTH PLAIN), sessions kept → signed → out, 4 KB; without a login: TLS alone, by trust.",
    contenders: [
      ...beside({ ...signed4k, client: loggedIn }),
      smtp("svc, without a login", product(), { ...signed4k, client: { tls: true } }),
    ],
    targets: [],
  },
  {
    name: "submission-new",
    title: "The same with a new session, handshake and login for every message.",
    contenders: [
      ...beside({ ...signed4k, newConnections: true, client: loggedIn }),
      smtp("svc, without a login", product(), { ...signed4k, newConnections: true, client: { tls: true } }),
    ],
    targets: [],
  },
  {
    name: "rest",
    title: "REST in (HTTPS, 32 connections) → signed → MX out, 4 KB, beside the same by SMTP.",
    contenders: [
      smtp("svc by SMTP", product(), signed4k),
      {
        ...smtp("svc by REST", restParty, signed4k),
        measure: ({ running, sink }, messages) =>
          measureRest(running, sink, { messages, sizeBytes: 4096, idempotencyKeys: false }),
      },
    ],
    targets: [share("svc by REST", 0.8, "svc by SMTP")],
  },
  {
    name: "tracked-4k",
    title:
      "REST in → signed → MX out, 4 KB of HTML with ten links, one recipient: the same for all, and tracked (opens, clicks, a page to unsubscribe).",
    contenders: [html4k("untracked", false), html4k("tracked", true)],
    targets: [
      {
        text: "CPU a message of tracked ≤ 1.3 × untracked",
        value: (of) => of("tracked").cpuMicros / of("untracked").cpuMicros,
        most: 1.3,
      },
    ],
  },
  {
    name: "accept",
    title:
      "REST accept alone: HTTPS, keep-alive, 32 connections, 4 KB, to be sent in three hours; messages/s are 202s.",
    contenders: [accept("plain", false), accept("with Idempotency-Key", true)],
    targets: [atLeast5000("plain", "accepted/s"), atLeast5000("with Idempotency-Key", "accepted/s")],
  },
  {
    name: "latency",
    title: "From our 250 to the receiver's 250, at half of each contender's own top rate; signed, 4 KB.",
    contenders: [
      atHalfRate("svc", product()),
      atHalfRate(peers.openDkim, postfix),
      atHalfRate(peers.harakaDkim, haraka),
    ],
    targets: [
      { text: "p50 ≤ 15 ms", value: (of) => of("svc").latencyP50 ?? NaN, most: 15 },
      { text: "p99 ≤ 100 ms", value: (of) => of("svc").latencyP99 ?? NaN, most: 100 },
    ],
  },
  {
    name: "events",
    title: "signed-4k with every event going to one webhook over HTTPS (sink µs without the receiver's).",
    contenders: [smtp("svc", product(), signed4k), smtp("svc with a webhook", productWithReceiver, signed4k)],
    targets: [],
  },
  {
    name: "webhooks",
    title:
      "A backlog of 100,000 events to one HTTPS endpoint, which verifies each signature (sink µs: the receiver's).",
    contenders: [
      {
        name: "svc",
        party: productWithReceiver,
        setting: ours(true),
        sink: {},
        fixedMessages: 100_000,
        measure: ({ running }, events) => measureBacklog(running, events),
      },
    ],
    targets: [atLeast5000("svc", "events/s")],
  },
  {
    name: "slow-disk",
    title: "signed-4k on a disk whose every sync takes 2 or 10 ms longer.",
    contenders: [0, 2, 10].map((ms) =>
      smtp(
        ms === 0 ? "svc" : `svc, ${ms} ms`,
        product(),
        signed4k,
        ms === 0 ? {} : { setting: { ...ours(true), slowDiskMs: ms } },
      ),
    ),
    targets: [share("svc, 2 ms", 0.7, "svc"), share("svc, 10 ms", 0.4, "svc")],
  },
  {
    name: "slow-receivers",
    title:
      "signed-4k-1000 to receivers whose every reply takes 100 ms, and to receivers that defer 20 % (451 to RCPT).",
    contenders: [
      smtp("svc", product(), signed4kToMany),
      smtp("svc, 100 ms", product(), signed4kToMany, { sink: { addresses: 1000, delayMs: 100 } }),
      smtp("svc, 20 % deferred", product(), signed4kToMany, { sink: { addresses: 1000, deferPercent: 20 } }),
    ],
    targets: [share("svc, 100 ms", 0.7, "svc"), share("svc, 20 % deferred", 0.7, "svc")],
  },
  {
    name: "memory",
    title:
      "Resident memory: ten idle seconds after the start, signed-4k, and twenty messages of 25 MB at once.",
    contenders: [
      { ...smtp("idle", product(), signed4k), fixedMessages: 1, measure: measureIdle },
      smtp("full rate", product(), signed4k),
      {
        ...smtp("20 × 25 MB", product(), signed4k),
        fixedMessages: 20,
        measure: ({ running, sink }, messages) => measureLarge(running, sink, messages, 25_000_000),
      },
    ],
    targets: [megabytes("idle", 150), megabytes("full rate", 400), megabytes("20 × 25 MB", 600)],
  },
];
