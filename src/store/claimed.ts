// What a claim found, as the jobs of the queue: rows come as plain values, and recipients of one message share it.
import type { ContentRef } from "../model/content.ts";
import type { Wait } from "../model/queue.ts";
import type { Job, QueuedMessage } from "../model/queued-recipient.ts";
import { trackingOf } from "../model/tracking.ts";

export interface ClaimedRecipient {
  key: number;
  messageKey: number;
  rcptTo: string;
  canonical: string;
  to: string;
  domain: string;
  queueName: string;
  attempt: number;
  lastEventAt: number;
  heldMs: number;
}

/** A row of `messages` as far as an attempt needs it. */
export interface ClaimedMessage {
  key: number;
  id: string;
  accountKey: number;
  test: number;
  from: string;
  signingDomain: string | null;
  returnPathDomain: string;
  subject: string;
  tagsJson: string;
  metadataJson: string;
  messageIdHeader: string;
  ipPool: string;
  sizeBytes: number;
  contentKind: ContentRef["kind"] | null;
  contentName: string | null;
  headerLength: number;
  bodyHash: Uint8Array;
  eightBit: number;
  smtpUtf8: number;
  trackOpens: number;
  trackClicks: number;
  hostedUnsubscribe: number;
  queuedAt: number;
}

export function jobsOfClaim(found: { recipients: ClaimedRecipient[]; messages: ClaimedMessage[] }): Job[] {
  const messages = new Map(found.messages.map((row) => [row.key, queuedMessageOf(row)]));
  const jobs: Job[] = [];
  for (const { messageKey, heldMs, ...recipient } of found.recipients) {
    const accepted = messages.get(messageKey);
    if (!accepted) continue;
    const message = heldMs === 0 ? accepted : { ...accepted, queuedAt: accepted.queuedAt + heldMs };
    jobs.push({ ...recipient, message });
  }
  return jobs;
}

export function queuedMessageOf(row: ClaimedMessage): QueuedMessage {
  const { test, eightBit, smtpUtf8, sizeBytes, contentKind: _kind, contentName: _name, ...others } = row;
  const { trackOpens, trackClicks, hostedUnsubscribe, ...rest } = others;
  const tracking = trackingOf(trackOpens !== 0, trackClicks !== 0, hostedUnsubscribe !== 0);
  // Content that is gone shows when it is opened (ContentGone).
  const content = contentRefOf(row) ?? { kind: "inline", id: row.key, sizeBytes };
  return { ...rest, test: test !== 0, eightBit: eightBit !== 0, smtpUtf8: smtpUtf8 !== 0, tracking, content };
}

export function contentRefOf(row: {
  key: number;
  sizeBytes: number;
  contentKind: ContentRef["kind"] | null;
  contentName: string | null;
}): ContentRef | null {
  if (row.contentKind === "inline") return { kind: "inline", id: row.key, sizeBytes: row.sizeBytes };
  if (row.contentKind === "spool" && row.contentName !== null)
    return { kind: "spool", name: row.contentName, sizeBytes: row.sizeBytes };
  return null;
}

/** As much of the waits as came after it was due. */
export function waitedMs(waits: readonly Wait[], dueAt: number): number {
  let ms = 0;
  for (const { from, until } of waits) ms += Math.max(0, until - Math.max(from, dueAt));
  return ms;
}
