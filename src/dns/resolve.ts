// The resolver: a question is asked of each server in turn until one gives a usable answer,
// aliases are followed (RFC 1034 §3.6.2), answers and failures kept in the cache, the same question of the same owner
// asked once at a time: an owner never waits for another's questions.
// Only "name error" and a clean "no data" are negative answers; refusal, silence, noise and loops are "failed".
import type { Clock } from "../clock.ts";
import type { Owner } from "../fairness.ts";
import type { Log } from "../log.ts";
import { couldNotTell, follow, startChain } from "./aliases.ts";
import type { Settled } from "./aliases.ts";
import { createCache } from "./cache.ts";
import { plainName, queryableName } from "./message.ts";
import type { Question, QuestionType, Reply, WireRecord } from "./message.ts";
import type { DnsAnswer, Resolver } from "./resolver.ts";
import { reversedAddress } from "./reverse.ts";
import { parseServer, showServer, systemServers } from "./servers.ts";
import type { DnsServerAddress } from "./servers.ts";
import { readTlsa } from "./tlsa.ts";
import { createTransport } from "./transport.ts";
import type { Exchange } from "./conversation.ts";

export interface ResolverDeps {
  /** `dns.servers`; empty: the system's. Throws for a text that is not an address. */
  servers: string[];
  /** Of one try over UDP, and again over TCP. */
  timeoutMs: number;
  /** Rounds over the servers. */
  tries: number;
  /** How long a name that could not be looked up is not asked for again; half a minute if not given. */
  failureMs?: number;
  clock: Clock;
  log: Log;
}

/** The resolver of the mail path, and the same without cache, for verifying a record that was just changed. */
export interface CachingResolver extends Resolver {
  readonly uncached: Resolver;
}

const rcodeNames: Record<number, string> = { 1: "FORMERR", 2: "SERVFAIL", 4: "NOTIMP", 5: "REFUSED" };

type Answer = DnsAnswer<WireRecord>;
type Lookup = (name: string, type: QuestionType, owner: Owner) => Promise<Answer>;

/** Questions of one look-up beyond the rounds over the servers: for aliases. */
const extraQuestions = 8;

export function createResolver(deps: ResolverDeps): CachingResolver {
  const servers = deps.servers.length > 0 ? deps.servers.map(configured) : systemServers();
  const transport = createTransport(deps);
  const cache = createCache(deps.clock, { failureMs: deps.failureMs ?? 30_000 });
  const inFlight = new Map<string, Promise<Answer>>();
  let stopping = false;
  let preferred = 0; // the server that answered last: a dead first one costs its timeout once

  const askServer = async (
    server: DnsServerAddress,
    question: Question,
    owner: Owner,
    again: boolean,
  ): Promise<Exchange> => {
    const exchange = await transport.ask(server, question, true, owner, again);
    const tooOld = exchange.kind === "reply" && (exchange.reply.rcode === 1 || exchange.reply.rcode === 4);
    return tooOld ? transport.ask(server, question, false, owner, again) : exchange; // a server from before EDNS (RFC 6891 §7)
  };

  /** `left`: how many questions the whole look-up may still ask. */
  const askServers = async (
    question: Question,
    owner: Owner,
    left: { questions: number },
  ): Promise<Exchange> => {
    let why = "the aliases of the name take too many queries";
    let again = cache.failedLately(keyOf(question));
    const first = preferred;
    for (let i = 0; i < deps.tries * servers.length && left.questions > 0; i++) {
      const at = (first + i) % servers.length;
      const server = servers[at];
      if (!server) break;
      left.questions -= 1;
      const exchange = await askServer(server, question, owner, again);
      again ||= exchange.kind === "failed";
      const problem = exchange.kind === "failed" ? exchange.why : refusal(exchange.reply);
      if (problem === null) {
        preferred = at;
        return exchange;
      }
      why = `${showServer(server)}: ${problem}`;
      if (exchange.kind === "failed" && exchange.final) return { ...exchange, why };
    }
    return { kind: "failed", why };
  };

  const look = async (name: string, type: QuestionType, owner: Owner): Promise<Settled> => {
    const chain = startChain(name);
    const left = { questions: deps.tries * servers.length + extraQuestions };
    for (;;) {
      const exchange = await askServers({ name: chain.name, type }, owner, left);
      const settled =
        exchange.kind === "failed"
          ? couldNotTell(exchange.why, { keep: exchange.final !== true })
          : follow(chain, exchange.reply, type);
      if (settled?.answer.kind === "failed")
        deps.log.debug({ name, type, why: settled.answer.why }, "DNS lookup failed");
      if (settled) return settled;
    }
  };

  const remembered: Lookup = async (name, type, owner) => {
    const key = keyOf({ name, type });
    const known = cache.get(key);
    if (known) return known;
    const own = `${owner} ${key}`;
    let asking = inFlight.get(own);
    if (!asking) {
      asking = look(name, type, owner)
        .then(({ answer, ttlSeconds, keep }) => {
          if (!stopping && keep !== false) cache.put(owner, key, answer, ttlSeconds);
          return answer;
        })
        .finally(() => inFlight.delete(own));
      inFlight.set(own, asking);
    }
    return asking;
  };

  const stop = (): void => {
    stopping = true;
    transport.stop();
  };
  const uncached = askedBy(async (name, type, owner) => (await look(name, type, owner)).answer, stop);
  return { ...askedBy(remembered, stop), uncached };
}

/** The questions of the Resolver interface over one way to look up. */
function askedBy(lookup: Lookup, stop: () => void): Resolver {
  const ask = async <T>(
    given: string,
    type: QuestionType,
    owner: Owner,
    read: (record: WireRecord) => T,
  ): Promise<DnsAnswer<T>> => {
    const name = plainName(given);
    if (!queryableName(name)) return { kind: "failed", why: "not a name that can be looked up" };
    const answer = await lookup(name, type, owner);
    return answer.kind === "found" ? { ...answer, records: answer.records.map(read) } : answer;
  };
  const value = (record: WireRecord): string => record.value;
  return {
    mx: (name, owner = "") =>
      ask(name, "MX", owner, (record) => ({ preference: record.preference, exchange: record.value })),
    a: (name, owner = "") => ask(name, "A", owner, value),
    aaaa: (name, owner = "") => ask(name, "AAAA", owner, value),
    txt: (name, owner = "") => ask(name, "TXT", owner, value),
    cname: (name, owner = "") => ask(name, "CNAME", owner, value),
    ptr: (address, owner = "") => ask(reverseName(address), "PTR", owner, value),
    tlsa: (name, owner = "") => ask(name, "TLSA", owner, (record) => readTlsa(record.value)),
    stop,
  };
}

function keyOf({ name, type }: Question): string {
  return `${type} ${name}`;
}

/** Why a reply says nothing about the name; null where it does. */
function refusal(reply: Reply): string | null {
  if (reply.rcode !== 0 && reply.rcode !== 3)
    return `answered ${rcodeNames[reply.rcode] ?? `rcode ${reply.rcode}`}`;
  return reply.referral ? "answered with a referral: it does not offer recursion" : null;
}

/** The name of an address's PTR record; empty if it is not an address. */
function reverseName(address: string): string {
  const reversed = reversedAddress(address);
  return reversed === null ? "" : `${reversed.labels}.${reversed.family === 4 ? "in-addr" : "ip6"}.arpa`;
}

function configured(text: string): DnsServerAddress {
  const server = parseServer(text);
  if (!server) throw new Error(`dns.servers: ${text} is not an IP address with an optional port`);
  return server;
}
