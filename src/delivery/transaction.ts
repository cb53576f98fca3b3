// One recipient's mail over an open session: MAIL, RCPT, DATA in one write where PIPELINING is offered
// (RFC 2920 §3.1: every reply is checked), the message with backpressure, the final dot. The reply that decides is the
// first refusal, else the dot's. After the dot only its reply counts; without one the receiver may have a copy.
import { classifyReply } from "../mail/classify.ts";
import type { Outcome } from "../mail/outcome.ts";
import type { Reply } from "../mail/reply.ts";
import { isBroken } from "./channel.ts";
import type { ConnectionFailure } from "./channel.ts";
import type { AttemptRequest } from "./delivery.ts";
import type { Dialogue } from "./dialogue.ts";
import { brokenAs, local, localOutcome, replyOutcome } from "./outcome.ts";
import type { Subject } from "./outcome.ts";
import type { Capabilities } from "./capabilities.ts";
import type { Session, SessionDeps } from "./session.ts";
import { createStuffer } from "./dot-stuffing.ts";

/** The session ended before the final dot was sent, so nothing was delivered. */
export interface LostSession {
  kind: "lost";
  broken: ConnectionFailure;
}

type Timing = Pick<SessionDeps, "timeouts" | "clock">;
interface Refusal {
  reply: Reply;
  subject: Subject;
}

/** RSET does nothing that takes time: a server that is silent after it has given up on the connection. */
const rsetMs = 20_000;
const slowestBytesPerSecond = 1024;
/** Up to here a message goes out in one write with its dot. */
const oneWriteBytes = 128 * 1024;

/** `transact` never throws for the server's doing; what `wire.open()` throws passes through, the session dropped. */
export async function transact(
  session: Session,
  wanted: AttemptRequest,
  timing: Timing,
  dialogue: Dialogue,
): Promise<Outcome | LostSession> {
  const request = await inItsWords(session, wanted);
  const unable = cannotTake(session, request);
  if (unable) return localOutcome(unable.failure, unable.why, dialogue.trace(false));
  const refused = await sendEnvelope(session, request, timing.timeouts.commandMs, dialogue);
  if (refused !== null) return refused;
  return sendMessage(session, request, timing, dialogue);
}

/** The mail in ASCII where the server takes nothing else and the mail has such a form (RFC 6152 §3, RFC 6531 §3.2). */
async function inItsWords(
  { can }: { can: Pick<Capabilities, "eightBit" | "smtpUtf8"> },
  request: AttemptRequest,
): Promise<AttemptRequest> {
  const { job } = request;
  const tooWide = (job.message.eightBit && !can.eightBit) || (job.message.smtpUtf8 && !can.smtpUtf8);
  const ascii = tooWide ? await request.ascii() : null;
  if (ascii === null) return request;
  return {
    ...request,
    wire: ascii,
    job: { ...job, message: { ...job.message, eightBit: false, smtpUtf8: false } },
  };
}

/** Whether a server without any extension cannot take the mail, in no form that it has. */
export async function needsExtensions(request: AttemptRequest): Promise<boolean> {
  const { job } = await inItsWords({ can: { eightBit: false, smtpUtf8: false } }, request);
  return job.message.eightBit || wantsSmtpUtf8(job);
}

/** What the server's own announcements rule out; nothing is sent then (RFC 1870, RFC 6152, RFC 6531). */
function cannotTake({ can, target }: Session, { job, wire }: AttemptRequest) {
  const size = wire.sizeBytes + wire.signature.length;
  const limit = can.size?.limit ?? 0;
  if (limit > 0 && size > limit)
    return {
      failure: local.tooLarge,
      why: `${target.host} takes at most ${limit} bytes, this message has ${size}`,
    };
  if (!can.smtpUtf8 && wantsSmtpUtf8(job))
    return {
      failure: local.noSmtpUtf8,
      why: `${target.host} does not offer SMTPUTF8, which this message needs`,
    };
  if (!can.eightBit && job.message.eightBit)
    return {
      failure: local.noEightBit,
      why: `${target.host} does not offer 8BITMIME, which this message needs`,
    };
  return null;
}

/** RCPT in raw UTF-8 without SMTPUTF8 would be mangled, whatever the headers are. */
function wantsSmtpUtf8(job: AttemptRequest["job"]): boolean {
  return job.message.smtpUtf8 || /[^ -~]/.test(job.rcptTo);
}

/** Null: the server waits for the message. Of a probe the outcome is the last reply. */
async function sendEnvelope(
  session: Session,
  request: AttemptRequest,
  commandMs: number,
  dialogue: Dialogue,
): Promise<Outcome | LostSession | null> {
  const { channel, can, target } = session;
  const commands = envelopeCommands(session, request);
  if (can.pipelining) {
    channel.write(`${commands.join("\r\n")}\r\n`, commands.length);
    for (const command of commands) dialogue.us(command);
  }
  let refusal: Refusal | null = null;
  /** The server has taken part in this transaction: RSET ends the one before. */
  let answered = false;
  let last: Reply | null = null;
  for (const command of commands) {
    if (!can.pipelining) {
      if (refusal !== null) break;
      dialogue.us(command);
    }
    const withinMs = command === "RSET" ? Math.min(commandMs, rsetMs) : commandMs;
    const reply = await (can.pipelining ? channel.next(withinMs) : channel.ask(command, withinMs));
    if (isBroken(reply)) {
      if (command === "RSET") return staleSession(session, `no reply to RSET: ${reply.why}`, reply.unasked);
      return refusal ? decided(session, refusal, dialogue) : { kind: "lost", broken: reply };
    }
    if (!answered && (command === "RSET" ? reply.code >= 300 : session.messages > 1 && reply.code === 421))
      return staleSession(session, `${reply.code} ${reply.text}`, reply);
    answered = command !== "RSET";
    last = reply;
    dialogue.them(reply);
    if (reply.code === 421) {
      channel.destroy();
      return decided(session, refusal ?? { reply, subject: subjectOf(command) }, dialogue);
    }
    if (refusal !== null) {
      if (reply.code === 354) await loneDot(session, commandMs, dialogue);
    } else if (reply.code >= 400) refusal = { reply, subject: subjectOf(command) };
    else if (command === "DATA" ? reply.code !== 354 : reply.code >= 300) {
      channel.destroy();
      const why = `${target.host} answered ${command} with ${reply.code} ${reply.text}`;
      return localOutcome(local.notSmtp, why, dialogue.trace(false));
    }
  }
  if (refusal !== null) return decided(session, refusal, dialogue);
  return request.probe && last ? decided(session, { reply: last, subject: "recipient" }, dialogue) : null;
}

/** Marks the session as used. Parameters only as they were offered (RFC 5321 §4.1.1.11). */
function envelopeCommands(session: Session, { job, mailFrom, wire, probe }: AttemptRequest): string[] {
  const { can } = session;
  if (/[\r\n\0]/.test(mailFrom) || /[\r\n\0]/.test(job.rcptTo))
    throw new Error("a line end in an envelope address");
  const reset = session.dirty ? ["RSET"] : [];
  session.messages++;
  session.dirty = true;
  const size = can.size === null || probe ? "" : ` SIZE=${wire.sizeBytes + wire.signature.length}`;
  const body = job.message.eightBit ? " BODY=8BITMIME" : "";
  const utf8 = wantsSmtpUtf8(job) ? " SMTPUTF8" : "";
  const envelope = [`MAIL FROM:<${mailFrom}>${size}${body}${utf8}`, `RCPT TO:<${job.rcptTo}>`];
  return [...reset, ...envelope, ...(probe ? [] : ["DATA"])];
}

function subjectOf(command: string): Subject {
  if (command.startsWith("MAIL")) return "sender";
  return command === "DATA" ? "message" : "recipient";
}

function decided({ unproven }: Session, { reply, subject }: Refusal, dialogue: Dialogue): Outcome {
  const about = unproven && isAboutSession(reply) ? "session" : subject;
  return replyOutcome(reply, about, dialogue.trace(false));
}

/** Commands that are unknown, out of order or need TLS first (RFC 5321 §4.2.2, RFC 3207 §4), conversion (RFC 3463 §3.7). */
function isAboutSession(reply: Reply): boolean {
  const { code, status } = reply;
  if (code < 500) return false;
  return (
    code < 550 || /^5\.(?:5\.[0124]|6\.\d+)$/.test(status ?? "") || classifyReply(reply) === "tls_failure"
  );
}

/** The server had given up on the kept connection before we spoke (RFC 5321 §3.8). */
function staleSession({ channel }: Session, why: string, unasked: Reply | null): LostSession {
  channel.destroy();
  return { kind: "lost", broken: { broken: "closed", why, errno: null, unasked } };
}

/** 354 although no recipient was accepted: an empty message ends it, and its reply is ignored (RFC 2920 §3.1). */
async function loneDot(session: Session, commandMs: number, dialogue: Dialogue): Promise<void> {
  dialogue.us(".");
  const reply = await session.channel.ask(".", commandMs);
  if (!isBroken(reply)) dialogue.them(reply);
}

async function sendMessage(
  session: Session,
  request: AttemptRequest,
  timing: Timing,
  dialogue: Dialogue,
): Promise<Outcome | LostSession> {
  const { channel, target } = session;
  const { wire } = request;
  const size = wire.sizeBytes + wire.signature.length;
  dialogue.us(`(message, ${size} bytes)`);
  const sent = await (size <= oneWriteBytes ? sendWhole : sendStreaming)(session, request, timing);
  if (sent === "abandoned") {
    channel.destroy();
    const why = "the attempt was ended before the final dot: this process no longer holds the recipient";
    return localOutcome(local.leaseLost, why, dialogue.trace(false));
  }
  if (sent !== "sent") {
    const early = sent.unasked;
    if (early === null || early.code < 400) return { kind: "lost", broken: sent };
    dialogue.them(early);
    return decided(session, { reply: early, subject: "message" }, dialogue);
  }
  dialogue.us(".");
  const reply = await channel.next(timing.timeouts.dotMs);
  if (isBroken(reply)) {
    const why = `no reply of ${target.host} to the final dot (${reply.why}): it may have the message, which is sent again`;
    return localOutcome(brokenAs(reply, true), why, dialogue.trace(true));
  }
  dialogue.them(reply);
  if (reply.code >= 300 && reply.code < 400) {
    channel.destroy();
    const why = `${target.host} answered the final dot with ${reply.code} ${reply.text}`;
    return localOutcome(local.notSmtp, why, dialogue.trace(true));
  }
  if (reply.code === 421) channel.destroy();
  if (reply.code < 300) session.dirty = false;
  return decided(session, { reply, subject: "message" }, dialogue);
}

/** One write for the whole message and its dot. */
async function sendWhole({ channel }: Session, request: AttemptRequest): Promise<Sent> {
  const { wire } = request;
  const stuffer = createStuffer();
  const pieces: Buffer[] = [];
  stuffer.push(wire.signature, pieces);
  for await (const chunk of wire.open()) stuffer.push(chunk, pieces);
  if (channel.broken) return channel.broken;
  if (!request.mayFinish()) return "abandoned";
  pieces.push(stuffer.end());
  channel.commit(pieces);
  return "sent";
}

/**
 * As fast as the server reads: each stop of it has `dataMs` (RFC 5321 §4.5.3.2.5), and all of them together no longer than
 * a kilobyte a second takes, so that a server which reads now and then cannot hold a connection for days.
 */
async function sendStreaming(
  { channel }: Session,
  request: AttemptRequest,
  { timeouts: { dataMs }, clock }: Timing,
): Promise<Sent> {
  const { wire } = request;
  const stuffer = createStuffer();
  const signature: Buffer[] = [];
  stuffer.push(wire.signature, signature);
  channel.writePieces(signature, 0);
  const begun = clock.monotonic();
  let sentBytes = 0;
  for await (const chunk of wire.open()) {
    const pieces: Buffer[] = [];
    stuffer.push(chunk, pieces);
    channel.writePieces(pieces, 0);
    sentBytes += chunk.length;
    const broken = await channel.drained(dataMs);
    if (broken) return broken;
    if (clock.monotonic() - begun <= dataMs + (1000 * sentBytes) / slowestBytesPerSecond) continue;
    channel.destroy();
    return {
      broken: "timeout",
      why: "it reads less than a kilobyte a second",
      errno: null,
      unasked: null,
    };
  }
  if (!request.mayFinish()) return "abandoned";
  channel.commit([stuffer.end()]);
  return "sent";
}

type Sent = "sent" | "abandoned" | ConnectionFailure;
