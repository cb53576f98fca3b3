// One address of a mail host within an attempt: over a kept connection if there is one, else, or if that was closed
// meanwhile, over a new one, with the retries that one address gets: in clear under opportunistic TLS, and with HELO.
import type { OutboundConfig } from "../config.ts";
import type { HostAddress } from "../dns/mx.ts";
import type { Outcome } from "../mail/outcome.ts";
import type { TlsResult } from "../model/tls-result.ts";
import type { Source } from "../pools/sources.ts";
import type { Addresses } from "./addresses.ts";
import type { AttemptJob, AttemptRequest } from "./delivery.ts";
import { Dialogue } from "./dialogue.ts";
import { weights, type Failure } from "./failures.ts";
import type { HeloHosts } from "./helo-hosts.ts";
import type { HostTlsDeps } from "./host-tls.ts";
import { brokenAs, local, localOutcome, replyOutcome } from "./outcome.ts";
import type { Pool } from "./pool.ts";
import { openSession } from "./session.ts";
import type { DisabledFeatures, NoSession, Session, SessionDeps, Target } from "./session.ts";
import type { TlsHosts } from "./tls-hosts.ts";
import { policyOf, tlsKey, type HostTls } from "./tls-policy.ts";
import { needsExtensions, transact } from "./transaction.ts";
import type { LostSession } from "./transaction.ts";

export interface AttemptDeps extends HostTlsDeps {
  addresses: Addresses;
  pool: Pool;
  heloHosts: HeloHosts;
  tlsHosts: TlsHosts;
  session: SessionDeps;
  outbound: OutboundConfig;
  random: () => number;
  /** False: the TLS of its sessions is not reported. */
  isCounted: (job: AttemptJob) => boolean;
  /** The TLS of a session, or why none was begun. */
  onTls: (result: TlsResult) => void;
  /** Called when an address of a pool is not one of this machine's. */
  onUnusable: (address: string) => void;
}

/** Errors of ours and not of the address: it is not remembered as dead. */
const ownErrors = new Set([
  "EMFILE",
  "ENFILE",
  "ENOBUFS",
  "ENOMEM",
  "EADDRINUSE",
  "EADDRNOTAVAIL",
  "EPERM",
  "EACCES",
]);

/** Connections are counted for each address of a pool by itself, as its limits are. */
export function shareOf(group: string, { address }: Pick<Source, "address">): string {
  return address === null ? group : `${group} ${address}`;
}

export function targetOf(
  { outbound, addresses, session, isCounted }: AttemptDeps,
  { job, route, source: from }: AttemptRequest,
  host: string,
  { address, family }: HostAddress,
  tls: HostTls,
): Target {
  const { smartHost } = outbound;
  const port = smartHost?.port ?? outbound.port;
  const source = addresses.sourceFor(family, from) ?? null;
  const helo = from.hostname ?? session.hostname;
  return {
    key: `${host} ${address} ${port} ${tlsKey(tls)} ${source} ${helo}`,
    group: shareOf(route.group, from),
    helo,
    pooled: from.address !== null,
    host,
    address,
    port,
    source,
    tls,
    judged:
      smartHost !== null || !isCounted(job) ? null : { domain: job.domain, host, tls, mtaSts: route.mtaSts },
  };
}

/** The source address is not one of this machine's: no server was contacted. */
export interface NoSource {
  kind: "no_source";
  why: string;
}

export interface HostFailure extends Failure {
  kind: "failure";
}

/** Over a kept connection if there is one, else, or if that was closed meanwhile, over a new one. */
export async function tryTarget(
  deps: AttemptDeps,
  request: AttemptRequest,
  target: Target,
  dialogue: Dialogue,
): Promise<Outcome | HostFailure | NoSource> {
  const kept = await takeKept(deps, target, request);
  if (kept) {
    dialogue.at(target.host, target.address);
    dialogue.sendingIp = kept.sendingIp;
    dialogue.tls = kept.tls;
    dialogue.us(`(kept connection, message ${kept.messages + 1} on it)`);
    const result = await useSession(deps, kept, request, dialogue);
    if (result.kind !== "lost") return result;
    if (result.broken.broken !== "closed") return lost(result, target, dialogue);
    dialogue.us(`(it was closed: ${result.broken.why})`);
  }
  const session = await freshSession(deps, target, request, dialogue);
  if ("kind" in session) {
    const broken = session.kind === "local" ? session.broken : null;
    const bound = broken?.broken !== "connect" || broken.errno !== "EADDRNOTAVAIL";
    if (target.pooled && target.source !== null && !bound) {
      deps.onUnusable(target.source);
      return { kind: "no_source", why: `${target.source} is not an address of this machine` };
    }
    return unopened(deps, session, target, dialogue);
  }
  const result = await useSession(deps, session, request, dialogue);
  return result.kind === "lost" ? lost(result, target, dialogue) : result;
}

/** A kept connection that was begun with HELO is for mail that needs no extension. */
async function takeKept(
  { pool }: AttemptDeps,
  target: Target,
  request: AttemptRequest,
): Promise<Session | null> {
  const kept = pool.take(target.key);
  if (kept === null || !kept.unproven || !(await needsExtensions(request))) return kept;
  pool.put(kept);
  return null;
}

/** With the retries that one address gets: in clear under opportunistic TLS, and with HELO. */
async function freshSession(
  deps: AttemptDeps,
  target: Target,
  request: AttemptRequest,
  dialogue: Dialogue,
): Promise<Session | NoSession> {
  const { pool, tlsHosts } = deps;
  pool.begin(target.group, target.host);
  const optional = target.tls.kind === "opportunistic";
  const failedAgoMs = optional ? tlsHosts.failedSince(target) : null;
  if (failedAgoMs !== null)
    dialogue.us(`(in clear: TLS failed here ${Math.round(failedAgoMs / 1000)} s ago)`);
  let session = await greeted(deps, target, request, dialogue, { tls: failedAgoMs !== null });
  if ("kind" in session && session.kind === "local" && session.inTls && optional) {
    dialogue.us("(again, in clear)");
    session = await openSession(deps.session, target, dialogue, { tls: true });
    if (!("kind" in session)) tlsHosts.failed(target);
  }
  if ("kind" in session) pool.ended(target.group, target.host);
  return session;
}

/**
 * A server that drops the connection at EHLO is tried with HELO once, where the session needs neither TLS nor AUTH and
 * the mail no extension. Otherwise the drop is a failure like any other: the mail is tried again later.
 */
async function greeted(
  { session: deps, heloHosts }: AttemptDeps,
  target: Target,
  request: AttemptRequest,
  dialogue: Dialogue,
  without: DisabledFeatures,
): Promise<Session | NoSession> {
  const plain = deps.login === null && policyOf(target.tls) === "none";
  if (plain && heloHosts.heloFirst(target) && !(await needsExtensions(request))) {
    const session = await openSession(deps, target, dialogue, { ...without, ehlo: true });
    if ("kind" in session) heloHosts.forget(target);
    return session;
  }
  const first = await openSession(deps, target, dialogue, without);
  if (!("kind" in first) || (first.kind === "local" && first.inTls)) heloHosts.ehloAnswered(target);
  const dropped = "kind" in first && first.kind === "local" && first.atEhlo;
  if (!dropped || !plain || !heloHosts.mayTryHelo(target) || (await needsExtensions(request))) return first;
  dialogue.us("(again, with HELO)");
  const second = await openSession(deps, target, dialogue, { ...without, ehlo: true });
  heloHosts.heloTried(target, !("kind" in second));
  return "kind" in second && second.kind === "local" ? first : second;
}

async function useSession(
  deps: AttemptDeps,
  session: Session,
  request: AttemptRequest,
  dialogue: Dialogue,
): Promise<Outcome | LostSession> {
  try {
    return await transact(session, request, deps.session, dialogue);
  } catch (error) {
    session.channel.destroy();
    throw error;
  } finally {
    deps.pool.put(session, !session.unproven || deps.heloHosts.heloFirst(session.target));
  }
}

function unopened(
  { addresses }: AttemptDeps,
  why: NoSession,
  target: Target,
  dialogue: Dialogue,
): HostFailure {
  const trace = dialogue.trace(false);
  if (why.kind === "reply")
    return { kind: "failure", weight: weights.reply, outcome: replyOutcome(why.reply, "session", trace) };
  dialogue.us(`(${why.why})`);
  const { broken, failure } = why;
  if (broken?.broken === "connect" && !ownErrors.has(broken.errno ?? ""))
    addresses.markDead(target.address, target.port, target.source);
  const weight =
    failure === local.noTls || failure === local.noLogin
      ? weights.tls
      : failure === local.noConnection
        ? weights.unreached
        : weights.lost;
  return { kind: "failure", weight, outcome: localOutcome(failure, why.why, trace) };
}

/** Closed before the dot: another address may take it. Silence and nonsense end the attempt. */
function lost(
  { broken }: LostSession,
  { host, address, port }: Target,
  dialogue: Dialogue,
): Outcome | HostFailure {
  dialogue.us(`(${broken.why})`);
  const why = `the session with ${host} [${address}]:${port} was lost before the end of the message: ${broken.why}`;
  const outcome =
    broken.unasked?.code === 421
      ? replyOutcome(broken.unasked, "session", dialogue.trace(false))
      : localOutcome(brokenAs(broken, true), why, dialogue.trace(false));
  return broken.broken === "closed" ? { kind: "failure", weight: weights.lost, outcome } : outcome;
}
