// The schema: embedded SQL, a step a version of the schema, run by engine/migrate.ts; schema/ says the same in types, and a
// test compares the two. Secondary indexes cost more than the row they point at, so each one here serves a look-up
// that is promised. Over 300 lines: one list, of which no released step is ever changed.
import type { Database } from "better-sqlite3";
import { counterColumns } from "../counters.ts";
import { planMigration, runMigrations } from "./engine/migrate.ts";

const first = [
  // Accounts, and what belongs to them.
  `
CREATE TABLE accounts (
  key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE, status TEXT NOT NULL,
  created_at INTEGER NOT NULL, paused_at INTEGER, pause_reason TEXT, guarded TEXT, rates TEXT NOT NULL DEFAULT '{}',
  daily_quota INTEGER, limits TEXT NOT NULL DEFAULT '{}', suppressions_added INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX accounts_time ON accounts (created_at);
CREATE INDEX accounts_paused ON accounts (paused_at) WHERE paused_at IS NOT NULL;
CREATE TABLE api_keys (
  key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, account_key INTEGER NOT NULL REFERENCES accounts (key),
  name TEXT NOT NULL, test INTEGER NOT NULL, scope TEXT NOT NULL, hash BLOB NOT NULL UNIQUE, hint TEXT NOT NULL,
  allow_ips TEXT NOT NULL, status TEXT NOT NULL, created_at INTEGER NOT NULL, expires_at INTEGER, last_used_at INTEGER,
  revoked_at INTEGER, rates TEXT NOT NULL DEFAULT '{}', daily_quota INTEGER
) STRICT;
CREATE INDEX api_keys_account ON api_keys (account_key, created_at);
CREATE TABLE smtp_credentials (
  key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, account_key INTEGER NOT NULL REFERENCES accounts (key),
  name TEXT NOT NULL, test INTEGER NOT NULL, hash BLOB NOT NULL, hint TEXT NOT NULL, status TEXT NOT NULL,
  created_at INTEGER NOT NULL, last_used_at INTEGER, revoked_at INTEGER, UNIQUE (account_key, test, hash)
) STRICT;
CREATE INDEX smtp_credentials_account ON smtp_credentials (account_key, created_at);
CREATE TABLE domains (
  key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, account_key INTEGER NOT NULL REFERENCES accounts (key),
  name TEXT NOT NULL, status TEXT NOT NULL, return_path_domain TEXT NOT NULL, records TEXT NOT NULL,
  dkim_keys TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, verified_at INTEGER,
  checked_at INTEGER, failing_since INTEGER, track_opens INTEGER NOT NULL DEFAULT 0,
  track_clicks INTEGER NOT NULL DEFAULT 0, tracking_domain TEXT, allow_subdomains INTEGER NOT NULL DEFAULT 1,
  revision INTEGER NOT NULL DEFAULT 0, return_path_before TEXT, UNIQUE (account_key, name)
) STRICT;
CREATE INDEX domains_checked ON domains (checked_at);
CREATE TABLE quota_uses (
  kind TEXT NOT NULL, owner INTEGER NOT NULL, day INTEGER NOT NULL, used INTEGER NOT NULL, PRIMARY KEY (kind, owner)
) STRICT, WITHOUT ROWID;
`,
  // Messages: the row, its content and its recipients, who wait, are leased, held or final.
  `
CREATE TABLE messages (
  key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, account_key INTEGER NOT NULL, test INTEGER NOT NULL,
  from_address TEXT NOT NULL, from_name TEXT, subject TEXT NOT NULL, message_id_header TEXT NOT NULL,
  tags TEXT NOT NULL, metadata TEXT NOT NULL, ip_pool TEXT NOT NULL, source TEXT NOT NULL, api_key INTEGER,
  size_bytes INTEGER NOT NULL, created_at INTEGER NOT NULL, send_at INTEGER, queued_at INTEGER NOT NULL,
  signing_domain TEXT, return_path_domain TEXT NOT NULL, header_length INTEGER NOT NULL, body_hash BLOB NOT NULL,
  eight_bit INTEGER NOT NULL, smtp_utf8 INTEGER NOT NULL, content_kind TEXT, content_name TEXT
) STRICT;
CREATE INDEX messages_time ON messages (account_key, created_at);
CREATE INDEX messages_spool ON messages (content_name) WHERE content_name IS NOT NULL;
CREATE TABLE content (message_key INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
CREATE TABLE recipients (
  key INTEGER PRIMARY KEY, message_key INTEGER NOT NULL, account_key INTEGER NOT NULL,
  type TEXT NOT NULL, to_address TEXT NOT NULL, rcpt_to TEXT NOT NULL, canonical TEXT NOT NULL, domain TEXT NOT NULL,
  queue_name TEXT NOT NULL CHECK (queue_name <> ''), state TEXT NOT NULL, due_at INTEGER, lease_owner TEXT, held_since INTEGER,
  attempts INTEGER NOT NULL, last_attempt_at INTEGER, last_event_at INTEGER NOT NULL, smtp_code INTEGER,
  smtp_status TEXT, smtp_response TEXT, receiving_mta TEXT, sending_ip TEXT, tls TEXT, updated_at INTEGER NOT NULL,
  complained_at INTEGER, held_ms INTEGER NOT NULL DEFAULT 0, provider TEXT, complaint_unconfirmed INTEGER,
  share_bytes INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX recipients_message ON recipients (message_key);
CREATE INDEX recipients_address ON recipients (account_key, canonical, message_key);
CREATE INDEX recipients_scheduled ON recipients (account_key, due_at) WHERE state = 'scheduled' AND due_at IS NOT NULL;
CREATE INDEX recipients_waiting ON recipients (queue_name, due_at, state, share_bytes) WHERE due_at IS NOT NULL;
CREATE INDEX recipients_leased ON recipients (lease_owner, held_since, share_bytes) WHERE lease_owner IS NOT NULL;
CREATE TABLE attempts (
  key INTEGER PRIMARY KEY, id TEXT NOT NULL, message_key INTEGER NOT NULL, recipient_key INTEGER NOT NULL,
  attempt INTEGER NOT NULL, started_at INTEGER NOT NULL, ended_at INTEGER NOT NULL, sending_ip TEXT, host TEXT,
  address TEXT, tls TEXT, ambiguous INTEGER NOT NULL, decided_by TEXT NOT NULL, outcome TEXT NOT NULL,
  smtp_code INTEGER, smtp_status TEXT, smtp_response TEXT, next_attempt_at INTEGER, trace TEXT
) STRICT;
CREATE INDEX attempts_message ON attempts (message_key);
CREATE TABLE inbox (
  key INTEGER PRIMARY KEY, account_key INTEGER NOT NULL, message_key INTEGER NOT NULL, to_address TEXT NOT NULL,
  caught_at INTEGER NOT NULL
) STRICT;
CREATE INDEX inbox_account ON inbox (account_key, caught_at);
CREATE INDEX inbox_message ON inbox (message_key);
`,
  // Answers to idempotent requests stand in the order of their messages, so that the oldest are first: the row is appended
  // and only its small index is random, half the cost of a table that is itself sorted by the key.
  `
CREATE TABLE idempotency (
  message_key INTEGER PRIMARY KEY, account_key INTEGER NOT NULL, test INTEGER NOT NULL, request_key TEXT NOT NULL,
  fingerprint BLOB NOT NULL, status INTEGER NOT NULL, body TEXT NOT NULL, created_at INTEGER NOT NULL,
  UNIQUE (account_key, test, request_key)
) STRICT;
`,
  // Events, endpoints, and every attempt at an endpoint; the success that ended a delivery is a part of its row.
  `
CREATE TABLE events (
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, account_key INTEGER NOT NULL, type TEXT NOT NULL,
  occurred_at INTEGER NOT NULL, received_at INTEGER NOT NULL, message_key INTEGER, recipient TEXT, body TEXT NOT NULL
) STRICT;
CREATE INDEX events_account ON events (account_key);
CREATE INDEX events_message ON events (message_key) WHERE message_key IS NOT NULL;
CREATE INDEX events_address ON events (account_key, recipient) WHERE message_key IS NULL;
CREATE TABLE endpoints (
  key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
  account_key INTEGER NOT NULL REFERENCES accounts (key), url TEXT NOT NULL, event_mask INTEGER NOT NULL,
  description TEXT, active INTEGER NOT NULL, secret TEXT NOT NULL, previous_secret TEXT, previous_secret_until INTEGER,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, last_success_at INTEGER, last_failure_at INTEGER,
  consecutive_failures INTEGER NOT NULL, format TEXT NOT NULL DEFAULT 'svc'
) STRICT;
CREATE INDEX endpoints_account ON endpoints (account_key, created_at);
CREATE TABLE deliveries (
  endpoint_key INTEGER NOT NULL, event_seq INTEGER NOT NULL, status TEXT NOT NULL, attempts INTEGER NOT NULL,
  due_at INTEGER, lease_owner TEXT, last_attempt_at INTEGER, last_status INTEGER, duration_ms INTEGER,
  PRIMARY KEY (endpoint_key, event_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_due ON deliveries (endpoint_key, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_leased ON deliveries (lease_owner) WHERE lease_owner IS NOT NULL;
CREATE TABLE fan_outs (
  account_key INTEGER NOT NULL, event_seq INTEGER NOT NULL, type_bit INTEGER NOT NULL, PRIMARY KEY (account_key, event_seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE delivery_attempts (
  endpoint_key INTEGER NOT NULL, event_seq INTEGER NOT NULL, attempted_at INTEGER NOT NULL, attempt INTEGER NOT NULL,
  status TEXT NOT NULL, response_status INTEGER, error TEXT, duration_ms INTEGER NOT NULL, next_attempt_at INTEGER,
  response_body TEXT, PRIMARY KEY (endpoint_key, event_seq, attempted_at, attempt)
) STRICT, WITHOUT ROWID;
`,
  // Suppressions, and addresses whose domain did not exist, until the recheck.
  `
CREATE TABLE suppressions (
  account_key INTEGER NOT NULL, canonical TEXT NOT NULL, email TEXT NOT NULL, reason TEXT NOT NULL,
  source TEXT NOT NULL, description TEXT, message_id TEXT, event_id TEXT, smtp_code INTEGER, smtp_status TEXT,
  expires_at INTEGER, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, PRIMARY KEY (account_key, canonical)
) STRICT, WITHOUT ROWID;
CREATE INDEX suppressions_expiry ON suppressions (account_key, expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE nxdomain_rechecks (
  account_key INTEGER NOT NULL, canonical TEXT NOT NULL, domain TEXT NOT NULL, known_name TEXT NOT NULL,
  since INTEGER NOT NULL, due_at INTEGER NOT NULL, entry TEXT NOT NULL, PRIMARY KEY (account_key, canonical)
) STRICT, WITHOUT ROWID;
CREATE INDEX nxdomain_rechecks_due ON nxdomain_rechecks (due_at);
`,
  // IP pools are an account's own, so a scheduled queue names the account too; only what is unsent is looked for by its scheduled queue.
  `
CREATE TABLE ip_pools (
  key INTEGER PRIMARY KEY, account_key INTEGER NOT NULL REFERENCES accounts (key) ON DELETE CASCADE,
  name TEXT NOT NULL, description TEXT, chosen INTEGER NOT NULL, created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL, UNIQUE (account_key, name)
) STRICT;
CREATE TABLE ip_addresses (
  address TEXT NOT NULL PRIMARY KEY, pool_key INTEGER NOT NULL REFERENCES ip_pools (key) ON DELETE CASCADE,
  hostname TEXT, weight INTEGER NOT NULL, paused INTEGER NOT NULL, warmup_started_at INTEGER, ptr TEXT,
  ptr_ok INTEGER, blacklists TEXT NOT NULL DEFAULT '[]', created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ip_addresses_pool ON ip_addresses (pool_key);
CREATE INDEX ip_addresses_warming ON ip_addresses (warmup_started_at) WHERE warmup_started_at IS NOT NULL;
CREATE TABLE node_addresses (
  address TEXT NOT NULL REFERENCES ip_addresses (address) ON DELETE CASCADE, node TEXT NOT NULL,
  bindable INTEGER NOT NULL, PRIMARY KEY (address, node)
) STRICT, WITHOUT ROWID;
CREATE TABLE warmup_counts (
  address TEXT NOT NULL, provider TEXT NOT NULL, day INTEGER NOT NULL, sent INTEGER NOT NULL,
  PRIMARY KEY (day, address, provider)
) STRICT, WITHOUT ROWID;
CREATE TABLE ip_assignments (
  address TEXT NOT NULL PRIMARY KEY, account_key INTEGER NOT NULL REFERENCES accounts (key),
  assigned_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ip_assignments_account ON ip_assignments (account_key);
`,
  // Pauses of parts of the queue; account_key 0: of every account's mail.
  `
CREATE TABLE queue_pauses (
  scope TEXT NOT NULL, account_key INTEGER NOT NULL, name TEXT NOT NULL, since INTEGER NOT NULL, until INTEGER,
  PRIMARY KEY (scope, account_key, name)
) STRICT, WITHOUT ROWID;
`,
  // What blocklists say of addresses, and the zones that the operator added or removed.
  `
CREATE TABLE dnsbl_listings (
  address TEXT NOT NULL, zone TEXT NOT NULL, answer TEXT NOT NULL, detail TEXT, looked_at INTEGER NOT NULL,
  codes TEXT NOT NULL, reason TEXT, listed_at INTEGER, changed_at INTEGER, PRIMARY KEY (address, zone)
) STRICT, WITHOUT ROWID;
CREATE TABLE dnsbl_zones (
  zone TEXT NOT NULL PRIMARY KEY, watched INTEGER NOT NULL, name TEXT, codes TEXT, removal_url TEXT
) STRICT, WITHOUT ROWID;
`,
  // Statistics. What a day counted is together, so that a fold writes few pages and retention takes a stretch; the quarters
  // of an hour are one text a row and day: most have little, and one reading gives the edge of any time zone's day.
  `
CREATE TABLE stats_waiting (seq INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE stats_sorted (seq INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE stats_days (
  day INTEGER NOT NULL, account_key INTEGER NOT NULL, test INTEGER NOT NULL, kind INTEGER NOT NULL,
  scope INTEGER NOT NULL, scope_key TEXT NOT NULL, key TEXT NOT NULL,
  PRIMARY KEY (day, account_key, test, kind, scope, scope_key, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE stats_quarters (
  day INTEGER NOT NULL, account_key INTEGER NOT NULL, test INTEGER NOT NULL, kind INTEGER NOT NULL,
  scope INTEGER NOT NULL, scope_key TEXT NOT NULL, key TEXT NOT NULL, counts TEXT NOT NULL,
  PRIMARY KEY (day, account_key, test, kind, scope, scope_key, key)
) STRICT, WITHOUT ROWID;
`,
  // The audit log. Uses of a key are recorded once a day for each address.
  `
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, account_key INTEGER, actor_kind TEXT NOT NULL,
  actor TEXT, source_ip TEXT, request_id TEXT, action TEXT NOT NULL, target TEXT, times INTEGER NOT NULL,
  detail TEXT NOT NULL
) STRICT;
CREATE INDEX audit_time ON audit (at);
CREATE UNIQUE INDEX audit_uses ON audit (actor, source_ip, at / 86400000) WHERE action IN ('keys.used', 'smtp_credentials.used');
`,
  // What is known of the TLS of recipient domains.
  `
CREATE TABLE mta_sts_policies (
  domain TEXT NOT NULL PRIMARY KEY, id TEXT NOT NULL, mode TEXT NOT NULL, mx TEXT NOT NULL,
  fetched_at INTEGER NOT NULL, expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX mta_sts_policies_expiry ON mta_sts_policies (expires_at);
CREATE TABLE tls_results (
  day INTEGER NOT NULL, domain TEXT NOT NULL, policy TEXT NOT NULL, failure TEXT NOT NULL, reason TEXT NOT NULL,
  sessions INTEGER NOT NULL, PRIMARY KEY (day, domain, policy, failure)
) STRICT, WITHOUT ROWID;
`,
  // The appliance's own.
  `
CREATE TABLE boots (
  id TEXT NOT NULL PRIMARY KEY, node TEXT NOT NULL, lease_until INTEGER NOT NULL, ended_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE maintenance (key INTEGER PRIMARY KEY CHECK (key = 1), since INTEGER NOT NULL, until INTEGER) STRICT;
CREATE TABLE shaping_rules (
  name TEXT NOT NULL PRIMARY KEY, connections INTEGER, per_second REAL, messages_per_connection INTEGER, tls TEXT,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE sequences (name TEXT NOT NULL PRIMARY KEY, last INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE secrets (name TEXT NOT NULL PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE probe (key INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
CREATE TABLE retention_walks (kind TEXT NOT NULL PRIMARY KEY, passed INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE retention_later (
  kind TEXT NOT NULL, since INTEGER NOT NULL, key INTEGER NOT NULL, PRIMARY KEY (kind, since, key)
) STRICT, WITHOUT ROWID;
`,
].join("");

// Tracking: the keys of its tokens, and what recipients did with their mail.
const tracking = `
CREATE TABLE tracking_keys (
  number INTEGER PRIMARY KEY, secret BLOB NOT NULL, created_at INTEGER NOT NULL
) STRICT;
ALTER TABLE recipients ADD COLUMN opened_at INTEGER;
ALTER TABLE recipients ADD COLUMN open_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE recipients ADD COLUMN clicked_at INTEGER;
ALTER TABLE recipients ADD COLUMN click_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE recipients ADD COLUMN unsubscribed_at INTEGER;
ALTER TABLE recipients ADD COLUMN machine_visits INTEGER NOT NULL DEFAULT 0;
CREATE INDEX domains_tracking ON domains (tracking_domain) WHERE tracking_domain IS NOT NULL;
`;

// What a message is tracked by, and whether a domain may be.
const trackedMessages = `
ALTER TABLE messages ADD COLUMN track_opens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN track_clicks INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN hosted_unsubscribe INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domains ADD COLUMN tracking_enabled INTEGER NOT NULL DEFAULT 0;
`;

// Names that links of sent mail lead to. Whether a domain's record was ever seen was not kept before.
const trackingNames = `
CREATE TABLE tracking_names (
  name TEXT NOT NULL, account_key INTEGER NOT NULL, seen INTEGER NOT NULL, PRIMARY KEY (name, account_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX tracking_names_account ON tracking_names (account_key, seen);
INSERT INTO tracking_names (name, account_key, seen)
  SELECT DISTINCT tracking_domain, account_key, 0 FROM domains
  WHERE tracking_domain IS NOT NULL AND verified_at IS NOT NULL;
DROP INDEX domains_tracking;
`;

// Which message another one sends again.
const resentMessages = `
ALTER TABLE messages ADD COLUMN resend_of TEXT;
`;

/** Step n brings the schema from version n to n + 1. Never edited once released; only added to. */
export const migrations: readonly string[] = [
  first,
  tracking,
  trackedMessages,
  trackingNames,
  resentMessages,
];

/** Brings the database at `path` to the newest schema. Throws SchemaTooNew. */
export function migrate(db: Database, path: string): ReturnType<typeof runMigrations> {
  const done = runMigrations(db, path, migrations);
  addCounterColumns(db);
  return done;
}

/** What the steps of `migrate` would do. Throws SchemaTooNew. */
export function plannedMigration(db: Database, path: string): ReturnType<typeof planMigration> {
  return planMigration(db, path, migrations);
}

/**
 * The columns of the counters are made of their list (model/counters.ts), not of a step. What was counted before there was
 * a counter is 0; an older program leaves a column that it does not know at that.
 */
function addCounterColumns(db: Database): void {
  const columns = db.pragma("table_info(stats_days)") as { name: string }[];
  const there = new Set(columns.map(({ name }) => name));
  const missing = counterColumns.filter((name) => !there.has(name));
  db.transaction(() => {
    for (const name of missing)
      db.exec(`ALTER TABLE stats_days ADD COLUMN ${name} INTEGER NOT NULL DEFAULT 0`);
  })();
}
