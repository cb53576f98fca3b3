// Writes security events of keys and logins to the audit log: lock-outs, scope mismatches, addresses outside of an
// allowlist, keys that are revoked, expired or disabled, and the first use of a key from an address on a day. The number
// of rows is bounded, whatever an attacker does: of one kind, source and key the first is written at once, the rest is
// summed up each minute, and above `mostRows` a minute there is one row a kind. Sources are an IPv4 address or an IPv6
// /64, as for lock-outs.
import { dayMs, type Clock, type Timer } from "../clock.ts";
import type { Log } from "../log.ts";
import type { ActorKind, AuditEntry } from "../model/audit.ts";
import type { Service } from "../service.ts";
import type { Store } from "../store/store.ts";
import { sourceOf } from "../model/ip-source.ts";

export type Notice =
  | "source_locked"
  | "scope_mismatch"
  | "ip_not_allowed"
  | "revoked_key"
  | "expired_key"
  | "disabled_key"
  | "revoked_credential"
  | "suspended_account";

/** The key or login that a security event is about. */
export interface Bearer {
  kind: Extract<ActorKind, "key" | "smtp_credential">;
  id: string;
  accountKey: number;
}

export interface RequestContext {
  ip: string;
  requestId: string | null;
  detail?: Record<string, unknown>;
}

export interface Security extends Service {
  /** `bearer` null: no known key or login. */
  notice(what: Notice, bearer: Bearer | null, context: RequestContext): void;
  /** A key or login was used. */
  used(bearer: Bearer, context: RequestContext): void;
}

export const securityRule = {
  everyMs: 60_000,
  /** Rows at once in a minute, and rows of what was summed up in it. */
  mostRows: 20,
  /** Combinations of kind, source and key that are counted separately. */
  mostRepeats: 10_000,
  /** New addresses of one key that are recorded on a day, and pairs of key and address that are remembered. */
  mostAddresses: 100,
  mostPairs: 100_000,
};

interface Repeated {
  entry: AuditEntry;
  /** Since a row was written. */
  more: number;
}

interface Use {
  day: number;
  lastIp: string;
  sources: Set<string>;
}

export function createSecurity(
  deps: { store: Pick<Store, "recordAudit">; clock: Clock; log: Log },
  rule = securityRule,
): Security {
  const { store, clock, log } = deps;
  const repeats = new Map<string, Repeated>();
  /** Counts beyond `mostRepeats`, by action. */
  const rest = new Map<string, number>();
  const uses = new Map<string, Use>();
  let pairs = 0;
  let atOnce = 0;
  let timer: Timer | null = null;
  let writing: Promise<void> = Promise.resolve();

  const write = (entries: AuditEntry[]): void => {
    if (entries.length === 0) return;
    writing = store
      .recordAudit(entries)
      .catch((error: unknown) => log.warn({ err: String(error) }, "the audit log was not written"));
  };
  const entryOf = (
    action: string,
    bearer: Bearer | null,
    { ip, requestId, detail = {} }: RequestContext,
  ): AuditEntry => ({
    at: clock.now(),
    accountKey: bearer?.accountKey ?? null,
    actorKind: bearer?.kind ?? "none",
    actor: bearer?.id ?? null,
    sourceIp: sourceOf(ip),
    requestId,
    action,
    target: bearer?.id ?? null,
    times: 1,
    detail,
  });
  const arm = (): void => {
    timer ??= clock.after(rule.everyMs, () => {
      timer = null;
      sumUp();
      if (repeats.size > 0) arm();
    });
  };
  const sumUp = (): void => {
    atOnce = 0;
    const now = clock.now();
    const rows: AuditEntry[] = [];
    for (const [id, one] of repeats) {
      const { entry, more } = one;
      if (more === 0) {
        repeats.delete(id);
        continue;
      }
      one.more = 0;
      if (rows.length < rule.mostRows) rows.push({ ...entry, at: now, times: more });
      else rest.set(entry.action, (rest.get(entry.action) ?? 0) + more);
    }
    for (const [action, times] of rest) {
      const manySources = { ip: "", requestId: null, detail: { sources: "many" } };
      rows.push({ ...entryOf(action, null, manySources), sourceIp: null, times });
    }
    rest.clear();
    write(rows);
  };

  return {
    name: "security",
    async start() {},
    async stop() {
      timer?.cancel();
      timer = null;
      sumUp();
      await writing;
    },
    notice(what, bearer, context) {
      const action = `security.${what}`;
      const entry = entryOf(action, bearer, context);
      const id = `${action} ${entry.sourceIp} ${entry.actor}`;
      const before = repeats.get(id);
      arm();
      if (before) before.more += 1;
      else if (repeats.size >= rule.mostRepeats) rest.set(action, (rest.get(action) ?? 0) + 1);
      else if (atOnce >= rule.mostRows) repeats.set(id, { entry, more: 1 });
      else {
        atOnce += 1;
        repeats.set(id, { entry, more: 0 });
        write([entry]);
        const { ip, requestId, detail } = context;
        log.warn({ audit: what, ip, actor: entry.actor, request_id: requestId, ...detail }, sentences[what]);
      }
    },
    used(bearer, context) {
      const day = Math.floor(clock.now() / dayMs);
      const known = uses.get(bearer.id);
      if (known?.day === day && known.lastIp === context.ip) return;
      if (pairs >= rule.mostPairs) {
        uses.clear();
        pairs = 0;
      }
      const use = known?.day === day ? known : { day, lastIp: "", sources: new Set<string>() };
      use.lastIp = context.ip;
      uses.set(bearer.id, use);
      const source = sourceOf(context.ip);
      if (use.sources.has(source) || use.sources.size >= rule.mostAddresses) return;
      use.sources.add(source);
      pairs += 1;
      write([entryOf(bearer.kind === "key" ? "keys.used" : "smtp_credentials.used", bearer, context)]);
    },
  };
}

const sentences: Record<Notice, string> = {
  source_locked: "locked out a source address after repeated failed authentications",
  scope_mismatch: "a key was used beyond its scope",
  ip_not_allowed: "a key was used from outside its allowlist",
  revoked_key: "a revoked key was used",
  expired_key: "an expired key was used",
  disabled_key: "a disabled key was used",
  revoked_credential: "a revoked SMTP login was used",
  suspended_account: "a key or login of a suspended account was used",
};
