// One attempt for one recipient: tries the addresses of the route until a server decides. A failure of a host (no
// connection, a refusing greeting, failed TLS) leads to the next address; a reply about the message ends the attempt.
// One address: target.ts.
// Where no address of the source's family could be connected, the walk is repeated from a source of the other family.
import { isIP } from "node:net";
import type { HostAddress, MailHost } from "../dns/mx.ts";
import type { Outcome, Unsent } from "../mail/outcome.ts";
import type { Source } from "../pools/sources.ts";
import { maxAddresses } from "./addresses.ts";
import type { HostLookup } from "./addresses.ts";
import type { AttemptRequest } from "./delivery.ts";
import { shareOf, targetOf, tryTarget } from "./target.ts";
import type { AttemptDeps, NoSource } from "./target.ts";
import { Dialogue } from "./dialogue.ts";
import { Failures, weights } from "./failures.ts";
import { hostTlsOf } from "./host-tls.ts";
import { hostsToLookUp, LookupTime } from "./lookups.ts";
import { local, localOutcome } from "./outcome.ts";
import type { Target } from "./session.ts";
import type { HostTls } from "./tls-policy.ts";
import { notNamed, tlsResult, type Judged, type TlsProblem } from "./tls-results.ts";

/** What the walks of one attempt share. */
interface Progress {
  dialogue: Dialogue;
  failures: Failures;
  time: LookupTime;
  looked: ReturnType<typeof hostsToLookUp>;
  dialled: number;
  /** A host has addresses that may be dialled, of a family that the source is not. */
  otherFamily: boolean;
}

export async function runAttempt(deps: AttemptDeps, request: AttemptRequest): Promise<Outcome | Unsent> {
  const { group, hosts } = request.route;
  const { clock, hostname } = deps.session;
  const dialogue = new Dialogue(clock, hosts);
  const order = inOrder(deps, shareOf(group, request.source), hosts);
  const progress: Progress = {
    dialogue,
    failures: new Failures(dialogue),
    time: new LookupTime(clock),
    looked: hostsToLookUp(order, hostname.toLowerCase(), deps.random),
    dialled: 0,
    otherFamily: false,
  };
  const first = await walkHosts(deps, request, progress);
  if (first?.kind === "no_source") return { kind: "unsent", why: first.why };
  if (first !== null) return first;
  const other = otherSource(request, progress);
  const second = other && (await walkHosts(deps, { ...request, source: other }, progress));
  if (second !== null && second.kind !== "no_source") return second;
  const { looked, failures } = progress;
  return failures.outcome(looked.complete ? null : { lookedUp: looked.hosts.length, of: hosts.length });
}

/** Dials the hosts' addresses from the request's source until one decides; null: none did. */
async function walkHosts(
  deps: AttemptDeps,
  request: AttemptRequest,
  progress: Progress,
): Promise<Outcome | NoSource | null> {
  const { dialogue, failures, looked } = progress;
  for (const [i, { host }] of looked.hosts.entries()) {
    if (progress.dialled >= maxAddresses) break;
    const last = i === looked.hosts.length - 1;
    const found = await lookUp(deps, request, host, progress.time, last);
    if (found.kind !== "addresses") {
      failures.noteHost(found);
      progress.otherFamily ||= found.kind === "unsourced";
      if (found.kind !== "ours") continue;
      looked.complete ||= i < looked.hosts.length - 1; // those after it are not to be used
      break;
    }
    progress.otherFamily ||= found.otherFamily;
    const tls = await hostTlsOf(deps, request, host, found, progress.time, last);
    if (tls.kind === "failed" || tls.kind === "forbidden") {
      failures.noteTls(tls);
      noteUndialled(deps, request, host, tls);
      continue;
    }
    for (const address of idleFirst(deps, request, host, found.addresses, tls)) {
      if (progress.dialled >= maxAddresses) break;
      const target = targetOf(deps, request, host, address, tls);
      const deadMs = deps.pool.has(target.key)
        ? null
        : deps.addresses.deadSince(target.address, target.port, target.source);
      if (deadMs !== null) {
        failures.note(weights.dead, skipped(target, deadMs, dialogue));
        continue;
      }
      progress.dialled++;
      const result = await tryTarget(deps, request, target, dialogue);
      if (result.kind !== "failure") return result;
      failures.note(result.weight, result.outcome);
    }
  }
  return null;
}

/** The policy of the domain or of the host let no session begin. */
function noteUndialled(
  { onTls, isCounted }: AttemptDeps,
  { job, route }: AttemptRequest,
  host: string,
  { kind, why }: { kind: "forbidden" | "failed"; why: string },
): void {
  if (!isCounted(job)) return;
  const judged: Judged = { domain: job.domain, host, tls: { kind: "opportunistic" }, mtaSts: route.mtaSts };
  const problem: TlsProblem = kind === "forbidden" ? notNamed : { type: "dnssec-invalid", reason: why };
  onTls(tlsResult(judged, problem, { sendingIp: null, receivingIp: null }));
}

/** A source of the other family, if only connections failed and the pool has one with a free slot. */
function otherSource({ source, sourceOf }: AttemptRequest, progress: Progress): Source | null {
  const { failures, dialled, otherFamily, dialogue } = progress;
  if (source.address === null || !otherFamily || dialled >= maxAddresses || !failures.onlyConnections())
    return null;
  const other = sourceOf(isIP(source.address) === 6 ? 4 : 6);
  if (other !== null) dialogue.us(`(again, from ${other.address})`);
  return other;
}

async function lookUp(
  { addresses }: AttemptDeps,
  { job, source }: AttemptRequest,
  host: string,
  time: LookupTime,
  last: boolean,
): Promise<HostLookup> {
  const found = await time.waitFor(() => addresses.of(host, source, job.message.accountKey), last);
  return found ?? { kind: "failed", why: `the DNS gave no answer for ${host} in the time of this attempt` };
}

function skipped({ host, address, port }: Target, deadMs: number, dialogue: Dialogue): Outcome {
  const ago = Math.round(deadMs / 1000);
  dialogue.us(`(${address} skipped: no connection ${ago} s ago)`);
  const why = `no connection to ${host} [${address}]:${port}, tried ${ago} s ago`;
  return localOutcome(local.noConnection, why, dialogue.trace(false));
}

/** By preference; among equals the host with the fewest connections, then chance (RFC 5321 §5.1); a full group uses what it has. */
function inOrder({ pool, random }: AttemptDeps, group: string, hosts: MailHost[]): MailHost[] {
  if (hosts.length < 2) return hosts;
  const full = pool.full(group);
  return hosts
    .map((entry) => {
      const idle = full && pool.hasIdle(group, entry.host);
      return { entry, load: idle ? -1 : pool.count(group, entry.host), draw: random() };
    })
    .sort((a, b) => a.entry.preference - b.entry.preference || a.load - b.load || a.draw - b.draw)
    .map(({ entry }) => entry);
}

/** Addresses with an idle connection come first. */
function idleFirst(
  deps: AttemptDeps,
  request: AttemptRequest,
  host: string,
  addresses: HostAddress[],
  tls: HostTls,
): HostAddress[] {
  if (addresses.length < 2) return addresses;
  const idle = (address: HostAddress): boolean =>
    deps.pool.has(targetOf(deps, request, host, address, tls).key);
  const first = addresses.find(idle);
  return first ? [first, ...addresses.filter((other) => other !== first)] : addresses;
}
