// `svc probe`: an attempt that ends with the reply to RCPT. It takes the road of real mail (route, hosts, addresses, TLS
// policy, kept connections), so that it says what would become of it; the message is never begun. It is outside of the
// throttle, as the operator makes a few at most.
import type { Clock } from "../clock.ts";
import { hostAddresses } from "../dns/mx.ts";
import type { Resolver } from "../dns/resolver.ts";
import { untried, type Outcome, type Unsent } from "../mail/outcome.ts";
import type { Probe, ProbedHost } from "../model/probe.ts";
import type { OutboundTls } from "../model/tls.ts";
import type { PoolSources } from "../pools/sources.ts";
import type { AttemptJob, Delivery, Route } from "./delivery.ts";

/** Mail from `account` out of `pool`; `rcptTo` as it is said in RCPT, its domain as A-labels. */
export interface ProbeRequest {
  accountKey: number;
  pool: string;
  rcptTo: string;
  domain: string;
}

/** null: as many probes run as may. Never throws for what a network or a receiver does. */
export type RunProbe = (request: ProbeRequest) => Promise<Probe | null>;

export interface ProbeDeps {
  delivery: Pick<Delivery, "route" | "attempt">;
  resolver: Resolver;
  sourcesOf(accountKey: number, pool: string): PoolSources;
  /** What the operator asks of TLS to a domain. */
  tlsFor(domain: string, group: string): OutboundTls;
  hostname: string;
  clock: Clock;
}

const probesMost = 10;
/** Hosts whose addresses are shown: an attempt looks up no more. */
const hostsMost = 5;

export function createProbe(deps: ProbeDeps): RunProbe {
  const { delivery, clock, hostname } = deps;
  let running = 0;

  const attempt = async (
    { accountKey, pool }: ProbeRequest,
    job: AttemptJob,
    route: Extract<Route, { kind: "hosts" }>,
  ): Promise<Outcome | Unsent> => {
    const sources = deps.sourcesOf(accountKey, pool);
    const [source] = sources.usable(null);
    if (!source) return { kind: "unsent", why: `no address of the pool ${pool} can be used` };
    return delivery.attempt({
      job,
      probe: true,
      route,
      mailFrom: `postmaster@${hostname}`,
      wire: { signature: Buffer.alloc(0), sizeBytes: 0, open: nothing },
      ascii: async () => null,
      mayFinish: () => false,
      source,
      sourceOf: (family) => sources.usable(family)[0] ?? null,
    });
  };

  const probe = async (request: ProbeRequest): Promise<Probe> => {
    const { accountKey, rcptTo, domain } = request;
    const smtpUtf8 = /[^ -~]/.test(rcptTo);
    const job = { key: 0, rcptTo, domain, message: { id: "probe", accountKey, eightBit: false, smtpUtf8 } };
    const route = await delivery.route(domain, accountKey);
    const found = { recipient: rcptTo, domain };
    if (route.kind === "outcome") {
      const outcome = route.decide(job, clock.now());
      return {
        ...found,
        mxGroup: null,
        mx: [],
        tlsWanted: deps.tlsFor(domain, domain),
        ...endOf(outcome, clock),
      };
    }
    const [mx, outcome] = await Promise.all([
      Promise.all(route.hosts.map((host, i) => lookedUp(deps.resolver, host, i, accountKey))),
      attempt(request, job, route),
    ]);
    const tlsWanted = deps.tlsFor(domain, route.group);
    const mxGroup = route.group.slice(route.group.lastIndexOf("/") + 1);
    return { ...found, mxGroup, mx, tlsWanted, ...endOf(outcome, clock) };
  };

  return async (request) => {
    if (running >= probesMost) return null;
    running += 1;
    try {
      return await probe(request);
    } finally {
      running -= 1;
    }
  };
}

async function lookedUp(
  resolver: Resolver,
  host: { host: string; preference: number },
  place: number,
  accountKey: number,
): Promise<ProbedHost> {
  if (place >= hostsMost) return { ...host, addresses: [], failure: "not looked up" };
  const found = await hostAddresses(resolver, host.host, accountKey);
  switch (found.kind) {
    case "addresses":
      return {
        ...host,
        addresses: found.addresses.map(({ address }) => address),
        failure: found.missing ?? null,
      };
    case "none":
      return { ...host, addresses: [], failure: "it has no address" };
    case "failed":
      return { ...host, addresses: [], failure: found.why };
  }
}

type End = Omit<Probe, "recipient" | "domain" | "mxGroup" | "mx" | "tlsWanted">;

function endOf(outcome: Outcome | Unsent, clock: Clock): End {
  const { sendingIp, host, address, tls, dialogue } =
    outcome.kind === "unsent" ? untried(clock.now()) : outcome.trace;
  const at = { sendingIp, host, address, tls, dialogue };
  if (outcome.kind === "unsent")
    return {
      ...at,
      outcome: "unreached",
      classification: null,
      smtpCode: null,
      smtpStatus: null,
      smtpResponse: outcome.why,
    };
  const { code, status, text } = outcome.reply;
  const ours = text.startsWith("[local] ");
  return {
    ...at,
    outcome:
      outcome.kind === "delivered"
        ? "accepted"
        : ours
          ? "unreached"
          : outcome.kind === "deferred"
            ? "deferred"
            : "refused",
    classification: outcome.kind === "delivered" ? null : outcome.classification,
    smtpCode: code,
    smtpStatus: status,
    smtpResponse: text,
  };
}

async function* nothing(): AsyncIterable<Buffer> {}
