// The resolver: a question is asked of each server in turn until one says something that counts,
// aliases are followed (RFC 1034 §3.6.2), answers kept in the cache, the same question asked once at a time.
// Only "name error" and a clean "no data" are negative answers; refusal, silence, noise and loops are "failed".
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import { couldNotTell, follow, startChain } from "./aliases.ts";
import type { Settled } from "./aliases.ts";
import { createCache } from "./cache.ts";
import { plainName, queryableName } from "./message.ts";
import type { QuestionType, Reply, WireRecord } from "./message.ts";
import type { DnsAnswer, Resolver } from "./resolver.ts";
import { parseServer, showServer, systemServers } from "./servers.ts";
import type { DnsServerAddress } from "./servers.ts";
import { createTransport } from "./transport.ts";
import type { Exchange } from "./transport.ts";

export interface ResolverDeps {
  /** `dns.servers`; empty: the system's. Throws for a text that is no address. */
  servers: string[];
  /** Of one try over UDP, and again over TCP. */
  timeoutMs: number;
  /** Rounds over the servers. */
  tries: number;
  clock: Clock;
  log: Log;
}

/** The resolver of the mail path, and the same without memory: for a person who has just changed a record and asks again. */
export interface CachingResolver extends Resolver {
  readonly uncached: Resolver;
}

const rcodeNames: Record<number, string> = { 1: "FORMERR", 2: "SERVFAIL", 4: "NOTIMP", 5: "REFUSED" };

type Answer = DnsAnswer<WireRecord>;
type Lookup = (name: string, type: QuestionType) => Promise<Answer>;

export function createResolver(deps: ResolverDeps): CachingResolver {
  const servers = deps.servers.length > 0 ? deps.servers.map(configured) : systemServers();
  const transport = createTransport(deps);
  const cache = createCache(deps.clock);
  const inFlight = new Map<string, Promise<Answer>>();
  let preferred = 0; // the server that answered last: a dead first one costs its timeout once

  const askServer = async (server: DnsServerAddress, name: string, type: QuestionType): Promise<Exchange> => {
    const exchange = await transport.ask(server, { name, type }, true);
    const tooOld = exchange.kind === "reply" && (exchange.reply.rcode === 1 || exchange.reply.rcode === 4);
    return tooOld ? transport.ask(server, { name, type }, false) : exchange; // a server from before EDNS (RFC 6891 §7)
  };

  const askServers = async (name: string, type: QuestionType): Promise<Exchange> => {
    let why = "no server was asked";
    const first = preferred;
    for (let i = 0; i < deps.tries * servers.length; i++) {
      const at = (first + i) % servers.length;
      const server = servers[at];
      if (!server) break;
      const exchange = await askServer(server, name, type);
      const problem = exchange.kind === "failed" ? exchange.why : refusal(exchange.reply);
      if (problem === null) {
        preferred = at;
        return exchange;
      }
      why = `${showServer(server)}: ${problem}`;
    }
    return { kind: "failed", why };
  };

  const look = async (name: string, type: QuestionType): Promise<Settled> => {
    const chain = startChain(name);
    for (;;) {
      const exchange = await askServers(chain.name, type);
      const settled =
        exchange.kind === "failed" ? couldNotTell(exchange.why) : follow(chain, exchange.reply, type);
      if (settled?.answer.kind === "failed")
        deps.log.debug({ name, type, why: settled.answer.why }, "a DNS look-up failed");
      if (settled) return settled;
    }
  };

  const remembered: Lookup = async (name, type) => {
    const key = `${type} ${name}`;
    const known = cache.get(key);
    if (known) return known;
    let asking = inFlight.get(key);
    if (!asking) {
      asking = look(name, type)
        .then(({ answer, ttlSeconds }) => {
          cache.put(key, answer, ttlSeconds);
          return answer;
        })
        .finally(() => inFlight.delete(key));
      inFlight.set(key, asking);
    }
    return asking;
  };

  const stop = (): void => transport.stop();
  const uncached = askedBy(async (name, type) => (await look(name, type)).answer, stop);
  return { ...askedBy(remembered, stop), uncached };
}

/** The questions of the Resolver interface over one way to look up. */
function askedBy(lookup: Lookup, stop: () => void): Resolver {
  const ask = async <T>(
    given: string,
    type: QuestionType,
    read: (record: WireRecord) => T,
  ): Promise<DnsAnswer<T>> => {
    const name = plainName(given);
    if (!queryableName(name)) return { kind: "failed", why: "not a name that can be looked up" };
    const answer = await lookup(name, type);
    return answer.kind === "found" ? { ...answer, records: answer.records.map(read) } : answer;
  };
  const value = (record: WireRecord): string => record.value;
  return {
    mx: (name) => ask(name, "MX", (record) => ({ preference: record.preference, exchange: record.value })),
    a: (name) => ask(name, "A", value),
    aaaa: (name) => ask(name, "AAAA", value),
    txt: (name) => ask(name, "TXT", value),
    cname: (name) => ask(name, "CNAME", value),
    ptr: (address) => ask(reverseName(address), "PTR", value),
    stop,
  };
}

/** Why a reply says nothing about the name; null where it does. */
function refusal(reply: Reply): string | null {
  if (reply.rcode !== 0 && reply.rcode !== 3)
    return `answered ${rcodeNames[reply.rcode] ?? `rcode ${reply.rcode}`}`;
  return reply.referral ? "answered with name servers to ask: it does not resolve for others" : null;
}

/** `4.3.2.1.in-addr.arpa` (RFC 1035 §3.5) or the nibbles under ip6.arpa (RFC 3596 §2.5); empty for no address. */
function reverseName(address: string): string {
  if (isIP(address) === 0) return "";
  const parsed = ipaddr.process(address);
  const bytes = parsed.toByteArray();
  if (parsed.kind() === "ipv4") return `${bytes.toReversed().join(".")}.in-addr.arpa`;
  const nibbles = Buffer.from(bytes).toString("hex").split("");
  return `${nibbles.toReversed().join(".")}.ip6.arpa`;
}

function configured(text: string): DnsServerAddress {
  const server = parseServer(text);
  if (!server) throw new Error(`dns.servers: ${text} is not an IP address with an optional port`);
  return server;
}
