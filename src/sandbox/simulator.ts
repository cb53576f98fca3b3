// Where the mail of test keys goes: nowhere. A recipient at simulator.svc plays the outcome
// that its name says, every time; any other is caught in the local inbox (the store's copy is the mail itself).
import type { Job } from "../mail/envelope.ts";
import type { Classification } from "../mail/classify.ts";
import type { AttemptTrace, Outcome, OutcomeReply } from "../mail/outcome.ts";

export const simulatorDomain = "simulator.svc";

interface Act {
  kind: Outcome["kind"];
  reply: OutcomeReply;
  classification: Classification;
}

const accepted: OutcomeReply = { code: 250, status: "2.0.0", text: "250 2.0.0 Ok: caught by the sandbox" };

/** What each name plays. A soft bounce is a temporary failure that has run out of time. */
const acts: Record<string, Act> = {
  bounce: act(
    "bounced",
    550,
    "5.1.1",
    "The email account that you tried to reach does not exist",
    "invalid_recipient",
  ),
  softbounce: act(
    "bounced",
    452,
    "4.2.2",
    "The email account that you tried to reach is over quota",
    "mailbox_full",
  ),
  blocked: act(
    "bounced",
    550,
    "5.7.1",
    "Message rejected because of the sender's reputation",
    "reputation_block",
  ),
  defer: act("deferred", 451, "4.7.1", "Greylisted, please try again later", "greylisted"),
};

/** True for a recipient that the simulator answers for. */
export function isSimulated(domain: string): boolean {
  return domain === simulatorDomain;
}

/** The names that a test message may be sent to at simulator.svc. */
export const simulatedNames: readonly string[] = ["delivered", ...Object.keys(acts)];

/**
 * The outcome of a job that must not leave the machine. `defer@` is deferred at its first attempt and
 * delivered at its second, as greylisting does.
 */
export function sandboxOutcome(job: Job, now: number): Outcome {
  const name = isSimulated(job.domain) ? job.rcptTo.slice(0, job.rcptTo.lastIndexOf("@")).toLowerCase() : "";
  const played = acts[name];
  const trace = traceOf(job, now, played?.reply ?? accepted);
  if (!played || (played.kind === "deferred" && job.attempt > 1))
    return { kind: "delivered", reply: accepted, trace };
  const { reply, classification } = played;
  if (played.kind === "deferred")
    return { kind: "deferred", reply, classification, retryAfterMs: null, trace };
  return { kind: "bounced", source: "smtp", reply, classification, trace };
}

function act(
  kind: Outcome["kind"],
  code: number,
  status: string,
  words: string,
  classification: Classification,
): Act {
  return { kind, reply: { code, status, text: `${code} ${status} ${words}` }, classification };
}

function traceOf(job: Job, now: number, reply: OutcomeReply): AttemptTrace {
  const host = `mx.${job.domain}`;
  return {
    startedAt: now,
    endedAt: now,
    sendingIp: null,
    mx: [],
    host: isSimulated(job.domain) ? host : "sandbox",
    address: null,
    tls: null,
    dialogue: [{ at_ms: 0, from: "them", text: reply.text }],
    ambiguous: false,
  };
}
