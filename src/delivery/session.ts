// Opens a session with a mail server: connect, greeting, EHLO (HELO where that is unknown), STARTTLS by
// policy and EHLO again (RFC 3207 §4.2), AUTH for a smart host (RFC 4954). A failure is a value; attempt.ts
// decides whether another address or clear text is tried instead.
import type { SecureContext } from "node:tls";
import type { Clock } from "../clock.ts";
import type { OutboundConfig } from "../config.ts";
import { safeText } from "../mail/reply.ts";
import type { Reply } from "../mail/reply.ts";
import type { TlsSummary } from "../model/tls.ts";
import type { TlsFailureType } from "../model/tls-result.ts";
import { readCapabilities, type Capabilities } from "./capabilities.ts";
import { Channel, isBroken } from "./channel.ts";
import type { Answer, ConnectionFailure } from "./channel.ts";
import type { CutOff } from "./cut-off.ts";
import { daneProblemOf } from "./dane.ts";
import type { Dialogue } from "./dialogue.ts";
import { brokenAs, local } from "./outcome.ts";
import type { LocalFailure } from "./outcome.ts";
import { certificateProblem, type Judged, type TlsProblem } from "./tls-results.ts";
import { policyOf, withoutSession, type HostTls } from "./tls-policy.ts";

export interface Session {
  readonly channel: Channel;
  readonly target: Target;
  readonly tls: TlsSummary | null;
  readonly can: Capabilities;
  readonly sendingIp: string | null;
  /** It was begun with HELO because EHLO was dropped: what the server could do is not known, so nothing is missing. */
  readonly unproven: boolean;
  /** Transactions that were begun on it. */
  messages: number;
  /** The last transaction was left open: RSET goes before the next. */
  dirty: boolean;
}

export interface Target {
  /** Names what may share a connection: host, address, port, what is asked of TLS, source. */
  key: string;
  /** Whose limits it counts towards: a group of destinations, from one address of a pool. */
  group: string;
  host: string;
  address: string;
  port: number;
  /** Our name in EHLO. */
  helo: string;
  /** The source is an address of a pool. */
  pooled: boolean;
  source: string | null;
  tls: HostTls;
  /** What a new session's TLS is reported as held against; null: it is not reported. */
  judged: Judged | null;
}

export interface Login {
  user: string;
  password: string;
  allowUnverified: boolean;
}

export interface SessionDeps {
  clock: Clock;
  /** Our name in EHLO, where the sending address has none of its own. */
  hostname: string;
  timeouts: OutboundConfig["timeouts"];
  /** Credentials; only ever sent under TLS, and with a verified certificate unless the operator allows any. */
  login: Login | null;
  secureContext: () => SecureContext;
  /** The TLS of a new session came up, or why not. */
  onTls: (target: Target, problem: TlsProblem | null, sendingIp: string | null) => void;
  /** Ends every session that is not past its final dot. */
  cutOff: CutOff;
}

/** Why there is no session: the server's reply, or our description. */
export type NoSession =
  | { kind: "reply"; reply: Reply }
  | {
      kind: "local";
      failure: LocalFailure;
      why: string;
      broken: ConnectionFailure | null;
      /** It broke at or just after STARTTLS: clear text might work, where the policy allows it. */
      inTls: boolean;
      /** The server closed the connection in place of an answer to the first EHLO: HELO might work. */
      atEhlo: boolean;
    };

/** Features that are not used because they have just failed. */
export interface DisabledFeatures {
  /** TLS, under an opportunistic policy. */
  tls?: boolean;
  /** EHLO, where the mail needs no extension. */
  ehlo?: boolean;
}

export async function openSession(
  deps: SessionDeps,
  target: Target,
  dialogue: Dialogue,
  without: DisabledFeatures = {},
): Promise<Session | NoSession> {
  const { host, address, port, source: localAddress } = target;
  const { connectMs: timeoutMs, greetingMs, commandMs } = deps.timeouts;
  const { clock, cutOff } = deps;
  dialogue.at(host, address);
  dialogue.tls = withoutSession(policyOf(target.tls));
  dialogue.us(`(connect to ${address} port ${port})`);
  const channel = await Channel.dial(clock, { address, port, localAddress, timeoutMs, cutOff });
  if (!(channel instanceof Channel)) return broke(channel, target, false);
  const sendingIp = channel.localAddress;
  dialogue.sendingIp = sendingIp;
  const fail = (failed: NoSession): NoSession => {
    channel.destroy();
    return failed;
  };

  const greeting = await channel.next(greetingMs);
  if (isBroken(greeting)) return fail(broke(greeting, target, false));
  dialogue.them(greeting);
  if (greeting.code !== 220) return fail(refused(greeting, target));
  const plain = await hello(channel, deps, dialogue, target, without.ehlo ? ["HELO"] : ["EHLO", "HELO"]);
  if ("kind" in plain) return fail(plain);

  const wanted = target.tls.kind !== "none" && !without.tls;
  const secured = wanted ? await secure(channel, deps, target, plain, dialogue) : null;
  if (secured && "kind" in secured) return fail(secured);
  const can = secured ? await hello(channel, deps, dialogue, target, ["EHLO", "HELO"]) : plain;
  // In TLS 1.3 a server that refuses the handshake says so after our side has finished it.
  if ("kind" in can)
    return fail(can.kind === "local" && secured ? { ...can, inTls: closedOn(can), atEhlo: false } : can);
  const refusal = deps.login && (await logIn(channel, deps.login, can, commandMs, dialogue, target, secured));
  if (refusal) return fail(refusal);
  const unproven = without.ehlo === true;
  return { channel, target, tls: secured, can, sendingIp, unproven, messages: 0, dirty: false };
}

/** EHLO, or HELO where the server does not know it (RFC 5321 §3.2). */
async function hello(
  channel: Channel,
  deps: SessionDeps,
  dialogue: Dialogue,
  target: Target,
  verbs: readonly ("EHLO" | "HELO")[],
): Promise<Capabilities | NoSession> {
  for (const verb of verbs) {
    const reply = await say(channel, `${verb} ${target.helo}`, deps.timeouts.commandMs, dialogue);
    if (isBroken(reply)) {
      const gone = broke(reply, target, true);
      const atEhlo = verb === "EHLO" && !deps.cutOff.cut && gone.kind === "local" && closedOn(gone);
      return gone.kind === "local" ? { ...gone, atEhlo } : gone;
    }
    if (reply.code === 250) return readCapabilities(verb === "EHLO" ? reply.lines.slice(1) : []);
    if (verb === "HELO" || reply.code < 500) return refused(reply, target);
  }
  throw new Error("unreachable: HELO has the last word");
}

/** TLS as the policy has it; null: the session stays in clear and may. */
async function secure(
  channel: Channel,
  deps: SessionDeps,
  target: Target,
  can: Capabilities,
  dialogue: Dialogue,
): Promise<TlsSummary | NoSession | null> {
  const { commandMs } = deps.timeouts;
  const optional = target.tls.kind === "opportunistic";
  const sendingIp = channel.localAddress;
  const note = (type: TlsFailureType, reason: string): void =>
    deps.onTls(target, { type, reason: safeText(reason) }, sendingIp);
  if (!can.startTls) {
    note("starttls-not-supported", "STARTTLS is not offered");
    return optional ? null : noTls(target, "does not offer STARTTLS");
  }
  dialogue.us("STARTTLS");
  const reply = await channel.startTls(commandMs);
  if (isBroken(reply)) {
    const gone = broke(reply, target, true);
    return gone.kind === "local" ? { ...gone, inTls: closedOn(gone) } : gone;
  }
  dialogue.them(reply);
  if (reply.code !== 220) {
    channel.stayClear();
    note("starttls-not-supported", `STARTTLS is refused: ${reply.code}`);
    return optional ? null : noTls(target, `refuses STARTTLS: ${reply.code} ${reply.text}`);
  }
  const host = target.tls.kind === "dane" ? (target.tls.names[0] ?? target.host) : target.host;
  const broken = await channel.upgrade({ host, context: deps.secureContext(), timeoutMs: commandMs });
  if (broken) {
    dialogue.us(`(TLS failed: ${broken.why})`);
    note("validation-failure", broken.why);
    return { ...noTls(target, `fails at the TLS handshake: ${broken.why}`), inTls: true };
  }
  return judged(channel, deps, target, host, dialogue);
}

/** The TLS session that is up, or what its certificate lacks for the policy. */
function judged(
  { tls, localAddress }: Channel,
  { clock, onTls }: SessionDeps,
  target: Target,
  host: string,
  dialogue: Dialogue,
): TlsSummary | NoSession {
  const { tls: wanted } = target;
  const untrusted = tls?.authorized === true ? null : safeText(String(tls?.authorizationError));
  const problem = wanted.kind === "dane" ? daneProblemOf(tls, wanted, clock.now()) : untrusted;
  onTls(target, target.judged && certificateProblem(target.judged, problem, untrusted), localAddress);
  const summary = {
    version: tls?.getProtocol() ?? "unknown",
    cipher: tls?.getCipher().name ?? "unknown",
    verified: problem === null,
    policy: policyOf(wanted),
  };
  const valid = wanted.kind === "dane" ? "matches a TLSA record" : `valid for ${host}`;
  dialogue.tls = summary;
  dialogue.us(`(${summary.version} ${summary.cipher}, certificate ${problem ?? valid})`);
  if (problem === null) return summary;
  if (wanted.kind === "verified") return noTls(target, `has no certificate valid for ${host}: ${problem}`);
  return wanted.kind === "dane" ? noTls(target, `does not pass DANE: ${problem}`) : summary;
}

/** AUTH PLAIN, or LOGIN where only that is offered; null: logged in. */
async function logIn(
  channel: Channel,
  login: Login,
  can: Capabilities,
  commandMs: number,
  dialogue: Dialogue,
  target: Target,
  tls: TlsSummary | null,
): Promise<NoSession | null> {
  if (tls === null) return noTls(target, "offers no TLS, and the login is never sent in clear");
  if (!tls.verified && !login.allowUnverified)
    return noTls(target, "has no verified certificate, and the login is not sent without one");
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  const plain = can.auth.includes("PLAIN");
  if (!plain && !can.auth.includes("LOGIN"))
    return mishap(local.noLogin, `${named(target)} offers neither AUTH PLAIN nor AUTH LOGIN`);
  const steps = plain
    ? [`AUTH PLAIN ${base64(`\0${login.user}\0${login.password}`)}`]
    : ["AUTH LOGIN", base64(login.user), base64(login.password)];
  for (const [i, step] of steps.entries()) {
    dialogue.us(i === 0 ? `AUTH ${plain ? "PLAIN ***" : "LOGIN"}` : "***");
    const reply = await channel.ask(step, commandMs);
    if (isBroken(reply)) return broke(reply, target, true);
    dialogue.them(reply);
    if (reply.code !== (i === steps.length - 1 ? 235 : 334)) return refused(reply, target);
  }
  return null;
}

async function say(
  channel: Channel,
  command: string,
  timeoutMs: number,
  dialogue: Dialogue,
): Promise<Answer> {
  dialogue.us(command);
  const reply = await channel.ask(command, timeoutMs);
  if (!isBroken(reply)) dialogue.them(reply);
  return reply;
}

const named = ({ host, address, port }: Target): string => `${host} [${address}]:${port}`;

type Mishap = Extract<NoSession, { kind: "local" }>;

const closedOn = ({ broken }: Mishap): boolean => broken?.broken === "closed";

function mishap(failure: LocalFailure, why: string, broken: ConnectionFailure | null = null): Mishap {
  return { kind: "local", failure, why, broken, inTls: false, atEhlo: false };
}

function noTls(target: Target, why: string): Mishap {
  return mishap(local.noTls, `${named(target)} ${why}${demandOf(target.tls)}`);
}

/** Whose policy it is, where the operator has not made it. */
function demandOf(tls: HostTls): string {
  const policy = policyOf(tls);
  if (policy === "mta-sts") return " (the domain's MTA-STS policy is enforced)";
  return policy === "dane" ? " (the host has TLSA records)" : "";
}

/** A refusal with the server's reply; a reply that is not valid at this point is a protocol error. */
function refused(reply: Reply, target: Target): NoSession {
  if (reply.code >= 400) return { kind: "reply", reply };
  return mishap(local.notSmtp, `${named(target)} gave an unexpected reply: ${reply.code} ${reply.text}`);
}

/** A 421 sent before the server closed is its reason, and is reported instead of ours. */
function broke(broken: ConnectionFailure, target: Target, greeted: boolean): NoSession {
  if (broken.unasked?.code === 421) return { kind: "reply", reply: broken.unasked };
  const what = broken.broken === "connect" ? "no connection to" : greeted ? "lost" : "no greeting from";
  return mishap(brokenAs(broken, greeted), `${what} ${named(target)}: ${broken.why}`, broken);
}
