// Receivers, as a table, and what one answers to an attempt. What providers publish is little; each row says what it rests
// on, and README.md where that is written. What is assumed is chosen so that it hurts: `caps` makes all rates and counts of
// connections stricter or looser.
import { hourMs, minuteMs } from "../../src/clock.ts";
import { fates } from "./messages.ts";
import { around, createRandom, type Random } from "./random.ts";

export const providerNames = ["google", "microsoft", "yahoo", "apple"] as const;
export type ProviderName = (typeof providerNames)[number];

/** What a receiver stands from one address. */
interface Caps {
  /** Connections at once; one more is refused with 421. */
  connections: number;
  /** Messages a second in the mean of a minute; past that the address is refused with 421 (4.7.28, TSS04, 4.7.500). */
  perSecond: number;
  /** How long it is refused then. */
  refusesMs: number;
  /** Messages on one connection. */
  perConnection: number;
  /** Median of a transaction on an open connection, milliseconds. */
  transactionMs: number;
}

const providerCaps: Record<ProviderName, Caps> = {
  // Published: the 421 4.7.28 alone, no figure. All assumed.
  google: { connections: 50, perSecond: 20, refusesMs: minuteMs, perConnection: 100, transactionMs: 400 },
  // Published: 500 connections. Assumed: the rate, and five minutes after "Server busy".
  microsoft: {
    connections: 500,
    perSecond: 10,
    refusesMs: 5 * minuteMs,
    perConnection: 100,
    transactionMs: 700,
  },
  // Published: 20 messages a connection, and that connections are not counted by a fixed figure. Assumed: the rest.
  yahoo: { connections: 20, perSecond: 6, refusesMs: 5 * minuteMs, perConnection: 20, transactionMs: 500 },
  // Published: nothing. All assumed.
  apple: { connections: 20, perSecond: 5, refusesMs: 5 * minuteMs, perConnection: 50, transactionMs: 600 },
};
/** Of the tail: the connections are Postfix's default; its rate is not limited by default. A twentieth of that for hosters who do. */
const tailCaps: Caps = {
  connections: 50,
  perSecond: Number.POSITIVE_INFINITY,
  refusesMs: minuteMs,
  perConnection: 1,
  transactionMs: 500,
};
const strictCaps: Caps = { ...tailCaps, connections: 5, perSecond: 1 };

/** The name servers say that there is no such domain. */
const lookupMs = 30;
/** TCP, EHLO, STARTTLS and EHLO again. */
const setupMs = 300;
/** A 421 instead of the greeting. */
const refusalMs = 150;
/** `outbound.timeouts.connect`, at two hosts. */
const timeoutMs = 60_000;
/** Any attempt may be deferred for no reason of ours. */
const troubleShare = 0.002;

/** One provider answers nobody. */
export const outage = { provider: "microsoft", from: 14 * hourMs, until: 16 * hourMs };

/** Shares of the tail's domains; the hundred largest are alive. */
const tail = { aliveFirst: 100, unknownDomain: 0.01, silent: 0.01, strict: 0.1, greylists: 0.15 };
/** Postgrey's defaults: five minutes, and a client that passed five times is greylisted no more. A fifth waits longer. */
const greylist = { delayMs: 5 * minuteMs, longDelayMs: 15 * minuteMs, long: 0.2, passes: 5, namesDelay: 0.5 };

export type Answer =
  | "delivered"
  | "unknown_user"
  | "unknown_domain"
  | "mailbox_full"
  | "greylisted"
  | "rate_limited"
  | "timed_out"
  | "trouble";

export interface Reply {
  answer: Answer;
  /** How long the attempt takes. */
  tookMs: number;
  /** The delay that a greylisting reply names. */
  namedMs: number | null;
}

/** What one receiver knows of one address. */
interface Client {
  open: number;
  tokens: number;
  seenAt: number;
  refusedUntil: number;
}

export interface Receiver {
  /** Its group of limits: a provider's name, or the name of its only domain. */
  group: string;
  /** No mail to it is ever delivered. */
  dead: "unknown_domain" | "silent" | null;
  caps: Caps;
  /** null: it does not greylist. `passed`: messages that passed. */
  greylist: { delayMs: number; named: boolean; passed: number } | null;
  /** By address. */
  clients: Map<string | null, Client>;
}

export interface Receivers {
  /** The receiver of a domain of traffic.ts. */
  create(domain: number): Receiver;
  /**
   * An attempt begins at `now`, the first for this message `age` milliseconds ago; it ends by `leave` after the reply's
   * `tookMs`.
   */
  reached(receiver: Receiver, address: string | null, fate: number, age: number, now: number): Reply;
  leave(receiver: Receiver, address: string | null): void;
}

/** `caps`: times the assumed rates and connections. */
export function createReceivers(seed: number, caps: number): Receivers {
  const random = createRandom(seed);
  const scaled = (of: Caps): Caps => ({
    ...of,
    connections: Math.max(1, Math.round(of.connections * caps)),
    perSecond: of.perSecond * caps,
  });
  return {
    create(domain) {
      const name = providerNames[domain];
      if (name === undefined) return tailReceiver(domain - providerNames.length, seed, scaled);
      return {
        group: name,
        dead: null,
        caps: scaled(providerCaps[name]),
        greylist: null,
        clients: new Map(),
      };
    },
    reached(receiver, address, fate, age, now) {
      const client = clientOf(receiver, address, now);
      client.open += 1;
      return withoutMailbox(receiver, client, now, random) ?? ofMailbox(receiver, fate, age, random);
    },
    leave(receiver, address) {
      const client = receiver.clients.get(address);
      if (client) client.open -= 1;
    },
  };
}

/** What a domain of the tail is like is drawn from its rank, so that it does not depend on which is mailed first. */
function tailReceiver(rank: number, seed: number, scaled: (of: Caps) => Caps): Receiver {
  const random = createRandom(Math.imul(seed + 1, 0x9e3779b1) ^ rank);
  const [drawn, strict, grey, long, named] = [random(), random(), random(), random(), random()];
  let dead: Receiver["dead"] = null;
  if (rank >= tail.aliveFirst && drawn < tail.unknownDomain) dead = "unknown_domain";
  else if (rank >= tail.aliveFirst && drawn < tail.unknownDomain + tail.silent) dead = "silent";
  const delayMs = long < greylist.long ? greylist.longDelayMs : greylist.delayMs;
  return {
    group: `d${rank}.example`,
    dead,
    caps: scaled(strict < tail.strict ? strictCaps : tailCaps),
    greylist: grey < tail.greylists ? { delayMs, named: named < greylist.namesDelay, passed: 0 } : null,
    clients: new Map(),
  };
}

/** The bucket holds a minute's messages. */
const burstSeconds = 60;

function clientOf({ clients, caps }: Receiver, address: string | null, now: number): Client {
  let client = clients.get(address);
  if (!client) {
    client = { open: 0, tokens: caps.perSecond * burstSeconds, seenAt: now, refusedUntil: 0 };
    clients.set(address, client);
  }
  return client;
}

const replyOf = (answer: Answer, tookMs: number, namedMs: number | null = null): Reply => ({
  answer,
  tookMs,
  namedMs,
});

/** What the domain, the outage or the caps answer; null: the mailbox is asked. */
function withoutMailbox(
  { group, caps, dead }: Receiver,
  client: Client,
  now: number,
  random: Random,
): Reply | null {
  if (dead === "unknown_domain") return replyOf("unknown_domain", around(lookupMs, random));
  const out = group === outage.provider && now >= outage.from && now < outage.until;
  if (dead === "silent" || out) return replyOf("timed_out", timeoutMs);
  if (client.open > caps.connections || !takesMore(client, caps, now))
    return replyOf("rate_limited", around(refusalMs, random));
  return null;
}

function ofMailbox({ caps, greylist: grey }: Receiver, fate: number, age: number, random: Random): Reply {
  const opens = caps.perConnection === 1 || random() < 1 / caps.perConnection;
  const tookMs = around(caps.transactionMs, random) + (opens ? setupMs : 0);
  if (random() < troubleShare) return replyOf("trouble", tookMs);
  if (fate === fates.unknownUser) return replyOf("unknown_user", tookMs);
  if (fate === fates.mailboxFull) return replyOf("mailbox_full", tookMs);
  if (grey && grey.passed < greylist.passes) {
    if (age < grey.delayMs) return replyOf("greylisted", tookMs, grey.named ? grey.delayMs : null);
    grey.passed += 1;
  }
  return replyOf("delivered", tookMs);
}

function takesMore(client: Client, caps: Caps, now: number): boolean {
  if (caps.perSecond === Number.POSITIVE_INFINITY) return true;
  const passedMs = now - client.seenAt;
  client.seenAt = now;
  client.tokens = Math.min(caps.perSecond * burstSeconds, client.tokens + (passedMs * caps.perSecond) / 1000);
  if (now < client.refusedUntil) return false;
  if (client.tokens >= 1) {
    client.tokens -= 1;
    return true;
  }
  client.refusedUntil = now + caps.refusesMs;
  return false;
}
