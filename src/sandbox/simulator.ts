// The outcome of mail of test keys and --dev, which is never sent. A recipient at simulator.svc always gets the outcome
// that its name says; mail to any other recipient goes to the local inbox (the store's copy is the mail itself).
import type { Classification } from "../model/classification.ts";
import type { AttemptTrace, Outcome, OutcomeReply } from "../mail/outcome.ts";
import type { Job } from "../model/queued-recipient.ts";
import { simulatorDomain } from "../model/simulator.ts";

interface Act {
  kind: "bounced" | "deferred";
  reply: OutcomeReply;
  classification: Classification;
}

const accepted = replyOf(250, "2.0.0", "Ok: caught by the sandbox");

/** The outcome of each name. A soft bounce is a temporary failure that expired. */
const acts = new Map<string, Act>([
  [
    "bounce",
    {
      kind: "bounced",
      reply: replyOf(550, "5.1.1", "The email account that you tried to reach does not exist"),
      classification: "invalid_recipient",
    },
  ],
  [
    "softbounce",
    {
      kind: "bounced",
      reply: replyOf(452, "4.2.2", "The email account that you tried to reach is over quota"),
      classification: "mailbox_full",
    },
  ],
  [
    "blocked",
    {
      kind: "bounced",
      reply: replyOf(550, "5.7.1", "Message rejected because of the sender's reputation"),
      classification: "reputation_block",
    },
  ],
  [
    "defer",
    {
      kind: "deferred",
      reply: replyOf(451, "4.7.1", "Greylisted, please try again later"),
      classification: "greylisted",
    },
  ],
]);

/** Those whose mail is delivered and who then do something with it (reactions.ts), and the event of it. */
export const reactionEvents = {
  complaint: "message.complained",
  unsubscribe: "message.unsubscribed",
  open: "message.opened",
  click: "message.clicked",
} as const;
export type ReactionName = keyof typeof reactionEvents;
export const reactionNames = Object.keys(reactionEvents) as ReactionName[];

/** True for a recipient that the simulator answers for. */
export function isSimulated(domain: string): boolean {
  return domain === simulatorDomain;
}

/** The names that a test message may be sent to at simulator.svc. */
export const simulatedNames: readonly string[] = ["delivered", ...acts.keys(), ...reactionNames];

/**
 * The outcome of a job that must not leave the machine. `defer@` is deferred at its first attempt and
 * delivered at its second, as greylisting does.
 */
export function sandboxOutcome(job: Job, now: number): Outcome {
  const act = actOf(job);
  if (!act) return { kind: "delivered", reply: accepted, trace: traceOf(job, now, accepted) };
  const { kind, reply, classification } = act;
  const trace = traceOf(job, now, reply);
  if (kind === "deferred") return { kind, reply, classification, retryAfterMs: null, trace };
  return { kind, source: "smtp", reply, classification, trace };
}

/** The name that a simulated recipient has. */
export function localPartOf({ rcptTo }: Pick<Job, "rcptTo">): string {
  return rcptTo.slice(0, rcptTo.lastIndexOf("@")).toLowerCase();
}

/** null: the mail is taken. */
function actOf(job: Job): Act | null {
  if (!isSimulated(job.domain)) return null;
  const act = acts.get(localPartOf(job)) ?? null;
  return act?.kind === "deferred" && job.attempt > 1 ? null : act;
}

function replyOf(code: number, status: string, words: string): OutcomeReply {
  return { code, status, text: `${status} ${words}` };
}

function traceOf(job: Job, now: number, reply: OutcomeReply): AttemptTrace {
  return {
    startedAt: now,
    endedAt: now,
    sendingIp: null,
    mx: [],
    host: isSimulated(job.domain) ? `mx.${job.domain}` : "sandbox",
    address: null,
    tls: null,
    dialogue: [{ at_ms: 0, from: "them", text: `${reply.code} ${reply.text}` }],
    ambiguous: false,
  };
}
