// From a name through its aliases (CNAME, RFC 1034 §3.6.2) to the records asked for, over one
// reply after another. Only records whose owner is the name or one of its aliases count: whatever else a reply
// brings along is ignored. Pure; resolve.ts asks.
import { maxTtlSeconds } from "./cache.ts";
import { queryableName, typeCodes } from "./message.ts";
import type { QuestionType, Reply, WireRecord } from "./message.ts";
import { maxMxRecords } from "./resolver.ts";
import type { DnsAnswer } from "./resolver.ts";

export interface AliasChain {
  start: string;
  /** Where the chain has come to: the next name to ask for. */
  name: string;
  seen: Set<string>;
  /** The shortest TTL on the way. */
  ttlSeconds: number;
  authenticated: boolean;
}

/** An answer and how long it may be cached. */
export interface Settled {
  answer: DnsAnswer<WireRecord>;
  ttlSeconds: number;
  /** false: it says nothing about the name, and must not be cached. */
  keep?: boolean;
}

const maxAliases = 8;

export function startChain(name: string): AliasChain {
  return { start: name, name, seen: new Set([name]), ttlSeconds: Infinity, authenticated: true };
}

/** Takes a reply to the question about `chain.name`; null where the chain goes on beyond it and must be asked again. */
export function follow(chain: AliasChain, reply: Reply, type: QuestionType): Settled | null {
  const asked = chain.name;
  chain.authenticated &&= reply.authenticated;
  for (;;) {
    const records = used(
      type,
      reply.answers.filter((record) => record.name === chain.name && record.type === typeCodes[type]),
    );
    if (records.length > 0) {
      const ttlSeconds = Math.min(
        maxTtlSeconds,
        chain.ttlSeconds,
        ...records.map((record) => record.ttlSeconds),
      );
      return {
        answer: {
          kind: "found",
          records,
          ttlSeconds,
          authenticated: chain.authenticated,
          ...(chain.name === chain.start ? {} : { canonical: chain.name }),
        },
        ttlSeconds,
      };
    }
    const alias = reply.answers.find(
      (record) => record.name === chain.name && record.type === typeCodes.CNAME,
    );
    if (!alias) break;
    const problem = step(chain, alias);
    if (problem !== null) return couldNotTell(problem);
  }
  const ttlSeconds = Math.min(chain.ttlSeconds, reply.negativeTtlSeconds ?? 0);
  if (reply.rcode === 3) return { answer: { kind: "nxdomain" }, ttlSeconds }; // of the last alias (RFC 6604 §3)
  if (chain.name === asked && reply.answers.length > 0 && reply.negativeTtlSeconds === null)
    return couldNotTell("an answer about other names");
  if (chain.name === asked || reply.negativeTtlSeconds !== null)
    return { answer: { kind: "nodata" }, ttlSeconds };
  return null;
}

/** Of a domain with a thousand MX hosts those that come first. */
function used(type: QuestionType, records: WireRecord[]): WireRecord[] {
  if (type !== "MX" || records.length <= maxMxRecords) return records;
  return records.toSorted((a, b) => a.preference - b.preference).slice(0, maxMxRecords);
}

export function couldNotTell(why: string, { keep = true } = {}): Settled {
  return { answer: { kind: "failed", why }, ttlSeconds: 0, keep };
}

/** One alias further; why not, or null. */
function step(chain: AliasChain, alias: WireRecord): string | null {
  if (!queryableName(alias.value)) return `the alias (CNAME) of ${chain.name} is not a name`;
  if (chain.seen.has(alias.value)) return `the aliases (CNAME) of ${chain.start} form a loop`;
  if (chain.seen.size > maxAliases) return `${chain.start} has more than ${maxAliases} aliases (CNAME)`;
  chain.seen.add(alias.value);
  chain.name = alias.value;
  chain.ttlSeconds = Math.min(chain.ttlSeconds, alias.ttlSeconds);
  return null;
}
