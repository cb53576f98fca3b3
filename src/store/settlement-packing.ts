// A settlement as one flat row, made on the loop.
import type { SettledOutcome } from "../model/attempt.ts";
import type { NewEvent } from "../model/event.ts";
import type { Settlement } from "../model/settlement.ts";
import type { NewSuppression, NxdomainRecheck } from "../model/suppression.ts";
import type { WarmupSend } from "../model/warmup.ts";
import { packEvent } from "./event-packing.ts";
import { storableJson, storableOrNull, withStorableText } from "./storable-text.ts";

/**
 * A settlement with what is nested in it turned to text on the loop, where it is made. Of its texts the receiver's words
 * come from outside as they are; names of hosts and codes were parsed.
 */
export interface PackedSettlement {
  recipientKey: number;
  messageKey: number;
  accountKey: number;
  owner: string;
  outcome: SettledOutcome;
  dueAt: number | null;
  at: number;
  attempt: number;
  /** Attempts that were really made. */
  attempts: number;
  smtpCode: number | null;
  smtpStatus: string | null;
  smtpResponse: string | null;
  eventAt: number;
  /** 1: an attempt was made, and the fields below are its own. */
  tried: number;
  attemptId: string | null;
  startedAt: number | null;
  endedAt: number | null;
  sendingIp: string | null;
  provider: string | null;
  host: string | null;
  address: string | null;
  tls: string | null;
  ambiguous: number;
  decidedBy: string | null;
  trace: string | null;
  event: NewEvent;
  suppression: NewSuppression | null;
  nxdomainRecheck: NxdomainRecheck | null;
  catchInInbox: boolean;
  warmup: WarmupSend | null;
}

export function packSettlement(s: Settlement): PackedSettlement {
  const { record } = s;
  return {
    recipientKey: s.recipientKey,
    messageKey: s.messageKey,
    accountKey: s.accountKey,
    owner: s.owner,
    outcome: s.outcome,
    dueAt: s.outcome === "deferred" ? (s.nextAttemptAt ?? s.at) : null, // a deferral always waits for something
    at: s.at,
    attempt: s.attempt,
    attempts: record ? s.attempt : Math.max(0, s.attempt - 1),
    smtpCode: s.smtpCode,
    smtpStatus: s.smtpStatus,
    smtpResponse: storableOrNull(s.smtpResponse),
    eventAt: s.event.occurredAt,
    tried: record ? 1 : 0,
    attemptId: record ? record.id : null,
    startedAt: record ? record.startedAt : null,
    endedAt: record ? record.endedAt : null,
    sendingIp: record ? record.sendingIp : null,
    provider: s.provider,
    host: record ? record.host : null,
    address: record ? record.address : null,
    tls: record?.tls ? JSON.stringify(record.tls) : null,
    ambiguous: record?.ambiguous ? 1 : 0,
    decidedBy: record ? record.decidedBy : null,
    trace: record ? storableJson(JSON.stringify({ mx: record.mx, dialogue: record.dialogue })) : null,
    event: packEvent(s.event),
    suppression: withStorableText(s.suppression),
    nxdomainRecheck: withStorableText(s.nxdomainRecheck),
    catchInInbox: s.catchInInbox,
    warmup: s.warmup,
  };
}
