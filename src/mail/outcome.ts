// The outcome of one attempt for one recipient. delivery and sandbox produce it, queue acts on it; nothing else passes
// from the modules with sockets to those with tables.
import type { DialogueLine } from "../model/attempt.ts";
import type { OutcomeSource } from "../model/bounce.ts";
import type { TlsSummary } from "../model/tls.ts";
import type { Classification } from "../model/classification.ts";

/** A reply of the receiving server, or our own words for a failure without one (text starts `[local] `). */
export interface OutcomeReply {
  /** Three digits. */
  code: number;
  /** X.Y.Z (RFC 3463); null where the receiver gave none. */
  status: string | null;
  /** One line, valid UTF-8, at most 2,000 characters; several reply lines are joined by a space. */
  text: string;
}

/** The road that the attempt took, whatever came of it. */
export interface AttemptTrace {
  startedAt: number;
  endedAt: number;
  sendingIp: string | null;
  mx: { host: string; preference: number }[];
  /** Host and address that gave the deciding reply; null where none was reached. */
  host: string | null;
  address: string | null;
  /** null where it went in clear. */
  tls: TlsSummary | null;
  dialogue: DialogueLine[];
  /** The final dot was sent and its reply never came: the receiver may have a copy. */
  ambiguous: boolean;
}

/** The trace of an outcome that needed no receiver: nothing was dialled. */
export function untried(startedAt: number, endedAt = startedAt): AttemptTrace {
  return {
    startedAt,
    endedAt: Math.max(startedAt, endedAt),
    sendingIp: null,
    mx: [],
    host: null,
    address: null,
    tls: null,
    dialogue: [],
    ambiguous: false,
  };
}

export type Outcome =
  | { kind: "delivered"; reply: OutcomeReply; trace: AttemptTrace }
  | {
      kind: "deferred";
      reply: OutcomeReply;
      classification: Classification;
      /** A delay that the receiver named ("try again in 300 seconds"), milliseconds. */
      retryAfterMs: number | null;
      trace: AttemptTrace;
    }
  | {
      kind: "bounced";
      source: OutcomeSource;
      reply: OutcomeReply;
      classification: Classification;
      trace: AttemptTrace;
    };

/** Nothing was tried, since the egress source cannot be used. This does not count as an attempt. */
export interface Unsent {
  kind: "unsent";
  why: string;
}
