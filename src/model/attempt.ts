// One attempt at one recipient, as it is kept and shown: where it went, what was said, and what decided the next.
import type { TlsSummary } from "./tls.ts";

/** What an attempt can come to. */
export const settledOutcomes = ["delivered", "deferred", "bounced"] as const;
export type SettledOutcome = (typeof settledOutcomes)[number];

/** `interrupted`: the program ended before the attempt did; `endedAt` is the next start, which made it due again. */
export const attemptOutcomes = [...settledOutcomes, "interrupted"] as const;
export type AttemptOutcome = (typeof attemptOutcomes)[number];

/** What decides the next attempt. */
export const attemptDecisions = ["schedule", "receiver", "final", "expired"] as const;
export type AttemptDecision = (typeof attemptDecisions)[number];
/** `restart`: of an interrupted attempt. */
export const shownDecisions = [...attemptDecisions, "restart"] as const;
export type ShownDecision = (typeof shownDecisions)[number];

export const dialogueSides = ["us", "them"] as const;
export type DialogueSide = (typeof dialogueSides)[number];

export interface DialogueLine {
  /** Milliseconds since the attempt began. */
  at_ms: number;
  from: DialogueSide;
  text: string;
}

export interface AttemptRecord {
  id: string; // att_…
  startedAt: number;
  endedAt: number;
  sendingIp: string | null;
  mx: { host: string; preference: number }[];
  host: string | null;
  address: string | null;
  /** null where it went in clear. */
  tls: TlsSummary | null;
  ambiguous: boolean;
  dialogue: DialogueLine[];
  decidedBy: AttemptDecision;
}

export interface AttemptView extends Omit<AttemptRecord, "decidedBy"> {
  recipient: string;
  attempt: number;
  outcome: AttemptOutcome;
  decidedBy: ShownDecision;
  smtpCode: number | null;
  smtpStatus: string | null;
  smtpResponse: string | null;
  nextAttemptAt: number | null;
}
