// The columns of the suppression list, for every statement that reads it.

/** The columns of `suppressions` under the names of Suppression. */
export const suppressionColumns = `account_key AS accountKey, canonical, email, reason, source, description, message_id AS messageId,
  event_id AS eventId, CAST(smtp_code AS TEXT) AS smtpCode, smtp_status AS smtpStatus, expires_at AS expiresAt, created_at AS createdAt, updated_at AS updatedAt`;
