// Whose an address of the machine is, where several accounts send.

/** An address that belongs to an account. */
export interface IpAssignment {
  address: string;
  accountKey: number;
  /** The account's name. */
  account: string;
  /** The pool that it is in; null: none. */
  pool: string | null;
  assignedAt: number;
}

/** `assigned`, `in_pool`: it belongs to another account, or is in a pool of it; `account` names that one. */
export type AssignResult =
  { ok: true; assignment: IpAssignment } | { ok: false; why: "assigned" | "in_pool"; account: string };
