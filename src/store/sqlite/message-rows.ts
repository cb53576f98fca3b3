// Messages with their recipients as the API shows them. The state that is shown is derived from the last one written,
// the lease and the due time: no row is written only because time has passed. Held mail shows the state that it has
// besides being held.
import type { Database, Statement } from "better-sqlite3";
import type { AttemptView } from "../../model/attempt.ts";
import type { ContentRef } from "../../model/content.ts";
import type { MessageRecord, MessageSource } from "../../model/message.ts";
import type { RecipientRecord } from "../../model/recipient.ts";
import { trackingOf } from "../../model/tracking.ts";
import type { TlsSummary } from "../../model/tls.ts";
import { contentRefOf } from "../claimed.ts";
import { isHeld, isLeased } from "./held-mail.ts";

/** SQL for the state that shows; `@now` is bound by the statement. */
export const shownState = `CASE WHEN ${isLeased} THEN 'sending' WHEN state = 'scheduled' AND (due_at <= @now OR ${isHeld}) THEN 'queued' ELSE state END`;

export interface MessageRow {
  key: number;
  id: string;
  accountKey: number;
  test: number;
  from: string;
  fromName: string | null;
  subject: string;
  messageIdHeader: string;
  tags: string;
  metadata: string;
  ipPool: string;
  source: MessageSource;
  sizeBytes: number;
  createdAt: number;
  sendAt: number | null;
  contentKind: ContentRef["kind"] | null;
  contentName: string | null;
  signingDomain: string | null;
  headerLength: number;
  bodyHash: Uint8Array;
  trackOpens: number;
  trackClicks: number;
  hostedUnsubscribe: number;
  resendOf: string | null;
}

/** The columns of `messages m` under the names of MessageRow. */
export const messageColumns = `m.key, m.id, m.account_key AS accountKey, m.test, m.from_address AS "from", m.from_name AS fromName, m.subject,
  m.message_id_header AS messageIdHeader, m.tags, m.metadata, m.ip_pool AS ipPool, m.source, m.size_bytes AS sizeBytes,
  m.created_at AS createdAt, m.send_at AS sendAt, m.content_kind AS contentKind, m.content_name AS contentName,
  m.signing_domain AS signingDomain, m.header_length AS headerLength, m.body_hash AS bodyHash,
  m.track_opens AS trackOpens, m.track_clicks AS trackClicks, m.hosted_unsubscribe AS hostedUnsubscribe, m.resend_of AS resendOf`;

interface RecipientRow extends Omit<RecipientRecord, "tls"> {
  tls: string | null;
}

export function createMessageRows(db: Database) {
  const byId: Statement<[string, number], MessageRow> = db.prepare(
    `SELECT ${messageColumns} FROM messages m WHERE m.id = ? AND m.account_key = ?`,
  );
  const recipientsOf: Statement<[{ key: number; now: number }], RecipientRow> = db.prepare(
    `SELECT type, to_address AS "to", ${shownState} AS state, attempts, last_attempt_at AS lastAttemptAt, due_at AS nextAttemptAt,
       smtp_code AS smtpCode, smtp_status AS smtpStatus, smtp_response AS smtpResponse, receiving_mta AS receivingMta,
       sending_ip AS sendingIp, tls, updated_at AS updatedAt, complained_at AS complainedAt, opened_at AS openedAt,
       open_count AS openCount, clicked_at AS clickedAt, click_count AS clickCount, unsubscribed_at AS unsubscribedAt
     FROM recipients WHERE message_key = @key ORDER BY key`,
  );
  const recordOf = (row: MessageRow, now: number): MessageRecord => {
    const { tags, metadata, contentKind, contentName, test, bodyHash, ...others } = row;
    const { trackOpens, trackClicks, hostedUnsubscribe, ...rest } = others;
    return {
      ...rest,
      tracking: trackingOf(trackOpens !== 0, trackClicks !== 0, hostedUnsubscribe !== 0),
      test: test !== 0,
      bodyHash: new Uint8Array(bodyHash),
      tags: JSON.parse(tags) as string[],
      metadata: JSON.parse(metadata) as Record<string, string>,
      content: contentRefOf({ key: row.key, sizeBytes: row.sizeBytes, contentKind, contentName }),
      recipients: recipientsOf.all({ key: row.key, now }).map((r) => ({ ...r, tls: tlsOf(r.tls) })),
    };
  };
  return {
    recordOf,
    record(accountKey: number, id: string, now: number): MessageRecord | null {
      const row = byId.get(id, accountKey);
      return row ? recordOf(row, now) : null;
    },
  };
}

function tlsOf(text: string | null): TlsSummary | null {
  return text === null ? null : (JSON.parse(text) as TlsSummary);
}

interface AttemptRow extends Omit<AttemptView, "tls" | "mx" | "dialogue" | "ambiguous"> {
  tls: string | null;
  ambiguous: number;
  trace: string | null;
}

export function createAttemptRows(db: Database) {
  // By time; a recipient's own by number, whatever the clock said between them.
  const ofMessage: Statement<[string, number], AttemptRow> = db.prepare(
    `SELECT a.id, r.to_address AS recipient, a.attempt, a.started_at AS startedAt, a.ended_at AS endedAt, a.sending_ip AS sendingIp,
       a.host, a.address, a.tls, a.ambiguous, a.decided_by AS decidedBy, a.outcome, a.smtp_code AS smtpCode, a.smtp_status AS smtpStatus,
       a.smtp_response AS smtpResponse, a.next_attempt_at AS nextAttemptAt, a.trace
     FROM messages m CROSS JOIN attempts a ON a.message_key = m.key CROSS JOIN recipients r ON r.key = a.recipient_key
     WHERE m.id = ? AND m.account_key = ?
     ORDER BY max(a.ended_at) OVER (PARTITION BY a.recipient_key ORDER BY a.attempt), a.attempt, a.key`,
  );
  return ({ accountKey, messageId }: { accountKey: number; messageId: string }): AttemptView[] =>
    ofMessage.all(messageId, accountKey).map(({ tls, trace, ambiguous, ...rest }) => {
      const { mx, dialogue } = JSON.parse(trace ?? '{"mx":[],"dialogue":[]}') as Pick<
        AttemptView,
        "mx" | "dialogue"
      >;
      return { ...rest, tls: tlsOf(tls), ambiguous: ambiguous !== 0, mx, dialogue };
    });
}
