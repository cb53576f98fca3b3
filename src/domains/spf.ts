// What receivers make of an SPF record for one address of ours: check_host of RFC 7208, with its ten terms that ask the
// DNS and its two void look-ups (§4.6.4), over the resolver that is given. It says which term decided, or which one
// makes the record void. Terms with macros (§7) have another value for each mail, and ptr is deprecated (§5.5): they
// count as look-ups and match nothing. Our own host name stands for each address. Never throws for what the DNS says.
import { isIP } from "node:net";
import { createAllowList, parseNetwork } from "../dns/networks.ts";
import type { DnsAnswer, Resolver } from "../dns/resolver.ts";
import type { Owner } from "../fairness.ts";

export type SpfResult = "pass" | "fail" | "softfail" | "neutral" | "none" | "permerror" | "temperror";

export interface SpfVerdict {
  result: SpfResult;
  /** The term that decided or cannot be evaluated, as written; null: no term decided. */
  term: string | null;
  /** In words, for permerror and temperror. */
  why: string | null;
}

type SpfResolver = Pick<Resolver, "a" | "aaaa" | "mx" | "txt">;

const mostLookups = 10;
const mostVoid = 2;
const mostMx = 10;
const longestRecord = 10_000;
const results: Record<string, SpfResult> = { "+": "pass", "-": "fail", "~": "softfail", "?": "neutral" };
const directive = /^([+?~-]?)(all|include|a|mx|ptr|ip4|ip6|exists)(?::([^/]*|[^/]*(?=\/)))?((?:\/.*)?)$/i;
const modifier = /^[a-z][a-z0-9_.-]*=/i;

/** Ends the evaluation wherever it stands. */
class Undecided extends Error {
  readonly verdict: SpfVerdict;
  constructor(result: "permerror" | "temperror", term: string | null, why: string) {
    super(why);
    this.verdict = { result, term, why };
  }
}

interface Walk {
  resolver: SpfResolver;
  owner: Owner | undefined;
  /** Empty where it is not known: only our host name matches then. */
  address: string;
  hostname: string;
  lookups: number;
  empty: number;
}

/** `record`: the one SPF record of `domain`, whose return paths `sender` sends with. */
export async function checkHost(
  resolver: SpfResolver,
  record: string,
  domain: string,
  sender: { address: string; hostname: string },
  owner?: Owner,
): Promise<SpfVerdict> {
  const walk: Walk = { resolver, owner, ...sender, lookups: 0, empty: 0 };
  try {
    return await evaluate(walk, record, domain);
  } catch (error) {
    if (error instanceof Undecided) return error.verdict;
    throw error;
  }
}

interface Term {
  text: string;
  result: SpfResult;
  name: string;
  domain: string | null;
  prefix: string;
}

async function evaluate(walk: Walk, record: string, domain: string): Promise<SpfVerdict> {
  const { terms, redirect } = termsOf(record);
  for (const term of terms)
    if (await matches(walk, term, domain)) return { result: term.result, term: term.text, why: null };
  if (redirect === null || redirect.domain === null) return { result: "neutral", term: null, why: null };
  countLookup(walk, redirect.text);
  const verdict = await evaluate(walk, await recordAt(walk, redirect.domain, redirect.text), redirect.domain);
  return verdict.term === null ? { ...verdict, term: redirect.text } : verdict;
}

interface Redirect {
  text: string;
  domain: string | null;
}

/** The whole record is parsed before any term is evaluated (§4.6). */
function termsOf(record: string): { terms: Term[]; redirect: Redirect | null } {
  if (record.length > longestRecord)
    throw new Undecided("permerror", null, `the record has more than ${longestRecord} characters`);
  const terms: Term[] = [];
  let redirect: Redirect | null = null;
  for (const text of record.split(" ").slice(1)) {
    if (text === "") continue;
    if (modifier.test(text)) {
      if (!/^redirect=/i.test(text)) continue;
      if (redirect !== null) throw new Undecided("permerror", text, "redirect= may appear once");
      redirect = { text, domain: nameOf(text.slice(text.indexOf("=") + 1), text) };
    } else terms.push(termOf(text));
  }
  return { terms, redirect };
}

function termOf(text: string): Term {
  const [, sign = "", mechanism = "", domain, prefix = ""] = directive.exec(text) ?? [];
  const name = mechanism.toLowerCase();
  const term = { text, name, result: results[sign || "+"] ?? "pass", domain: domain ?? null, prefix };
  const wrong = new Undecided("permerror", text, "the term is unknown");
  if (name === "") throw wrong;
  if (name === "ip4" || name === "ip6") {
    const wanted = name === "ip4" ? 4 : 6;
    const value = /^ip[46]:(.+)$/i.exec(text.replace(/^[+?~-]/, ""))?.[1] ?? "";
    if (isIP(value.split("/")[0] ?? "") !== wanted || !parseNetwork(value).ok) throw wrong;
    return { ...term, domain: value, prefix: "" };
  }
  const needsDomain = name === "include" || name === "exists";
  const mayHavePrefix = name === "a" || name === "mx";
  if (domain === "" || (needsDomain && domain === undefined) || (name === "all" && domain !== undefined))
    throw wrong;
  if (prefix !== "" && !(mayHavePrefix && isDualPrefix(prefix))) throw wrong;
  return term;
}

function isDualPrefix(prefix: string): boolean {
  const [, four, six] = /^(?:\/(0|[1-9]\d?))?(?:\/\/(0|[1-9]\d{0,2}))?$/.exec(prefix) ?? [null, "99", "999"];
  return Number(four ?? 0) <= 32 && Number(six ?? 0) <= 128;
}

/** Null: a macro. */
function nameOf(text: string, term: string): string | null {
  if (text.includes("%")) return null;
  const name = text.replace(/\.$/, "").toLowerCase();
  if (name === "" || name.length > 253 || !/^[\x21-\x7e]+\.[a-z0-9-]*[a-z][a-z0-9-]*$/.test(name))
    throw new Undecided("permerror", term, "it names no domain");
  return name;
}

async function matches(walk: Walk, term: Term, domain: string): Promise<boolean> {
  const { address } = walk;
  switch (term.name) {
    case "all":
      return true;
    case "ip4":
    case "ip6":
      return createAllowList([term.domain ?? ""])(address);
    case "include":
      return includes(walk, term);
    default:
  }
  countLookup(walk, term.text);
  const name = term.domain === null ? domain : nameOf(term.domain, term.text);
  if (name === null || term.name === "ptr") return false;
  if (term.name === "exists") return (await found(walk, walk.resolver.a(name, walk.owner), term)).length > 0;
  const hosts = term.name === "a" ? [name] : await exchangesOf(walk, name, term);
  for (const host of hosts) if (await hasAddress(walk, host, term)) return true;
  return false;
}

async function includes(walk: Walk, term: Term): Promise<boolean> {
  countLookup(walk, term.text);
  const name = nameOf(term.domain ?? "", term.text);
  if (name === null) return false;
  const { result } = await evaluate(walk, await recordAt(walk, name, term.text), name);
  return result === "pass";
}

async function exchangesOf(walk: Walk, name: string, term: Term): Promise<string[]> {
  const records = await found(walk, walk.resolver.mx(name, walk.owner), term);
  if (records.length > mostMx)
    throw new Undecided("permerror", term.text, `${name} has more than ${mostMx} MX records (§4.6.4)`);
  return records.map(({ exchange }) => exchange).filter((exchange) => exchange !== "");
}

async function hasAddress(walk: Walk, host: string, term: Term): Promise<boolean> {
  if (host === walk.hostname) return true;
  const four = isIP(walk.address) === 4;
  const [, prefix4 = "32", prefix6 = "128"] = /^(?:\/(\d+))?(?:\/\/(\d+))?$/.exec(term.prefix) ?? [];
  const asked = four ? walk.resolver.a(host, walk.owner) : walk.resolver.aaaa(host, walk.owner);
  const networks = (await found(walk, asked, term)).map((one) => `${one}/${four ? prefix4 : prefix6}`);
  return createAllowList(networks)(walk.address);
}

/** The one SPF record of a name that a term points to; without it the term makes the record void (§5.2, §6.1). */
async function recordAt(walk: Walk, name: string, term: string): Promise<string> {
  const texts = await found(walk, walk.resolver.txt(name, walk.owner), { text: term });
  const policies = texts.filter((text) => /^v=spf1(?: |$)/i.test(text));
  const [only] = policies;
  if (only === undefined || policies.length > 1)
    throw new Undecided(
      "permerror",
      term,
      `${name} has ${policies.length === 0 ? "no SPF record" : "several SPF records"}`,
    );
  return only;
}

async function found<T>(walk: Walk, asked: Promise<DnsAnswer<T>>, { text }: { text: string }): Promise<T[]> {
  const answer = await asked;
  if (answer.kind === "found") return answer.records;
  if (answer.kind === "failed") throw new Undecided("temperror", text, "its DNS lookup failed");
  if (++walk.empty > mostVoid)
    throw new Undecided(
      "permerror",
      text,
      `it is look-up ${walk.empty} that finds nothing; ${mostVoid} are allowed (§4.6.4)`,
    );
  return [];
}

function countLookup(walk: Walk, term: string): void {
  if (++walk.lookups > mostLookups)
    throw new Undecided("permerror", term, `the record needs more than ${mostLookups} look-ups (§4.6.4)`);
}
