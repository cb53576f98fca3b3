// The audit log: who did what, from where, and what was noticed. Written in the transaction of the act.

/** `none`: the actor is not known. */
export const actorKinds = ["operator", "key", "smtp_credential", "system", "none"] as const;
export type ActorKind = (typeof actorKinds)[number];

export interface AuditEntry {
  at: number;
  /** null: the whole appliance. */
  accountKey: number | null;
  actorKind: ActorKind;
  /** The operator's name, or the id of the key or credential. */
  actor: string | null;
  sourceIp: string | null;
  requestId: string | null;
  /** `keys.create`, `domains.verify`, `security.scope_mismatch`, … */
  action: string;
  /** The id or name of the resource acted on. */
  target: string | null;
  /** How often, where one row stands for several acts. */
  times: number;
  detail: Record<string, unknown>;
}

export interface AuditRecord extends AuditEntry {
  seq: number;
  /** Name of the account. */
  account: string | null;
}

export interface AuditFilter {
  accountKey?: number;
  actor?: string;
  target?: string;
  /** `keys.*`: all that begin so. */
  action?: string;
  since?: number;
  until?: number;
}
