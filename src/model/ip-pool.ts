// An IP pool: the addresses that a message may leave from. Every account has the pool `default`, with or without a row.

/** The pool that every account has. */
export const defaultPool = "default";

/** The operator or the account pauses an address and ends the pause. */
export const chosenAddressStatuses = ["active", "paused"] as const;
/** What an address is shown as. */
export const addressStatuses = ["active", "warming", "paused", "listed", "unbindable"] as const;

/** An address of a pool; canonical in form. */
export interface PoolAddress {
  address: string;
  /** Said in EHLO from it; null: the server's own name. */
  hostname: string | null;
  weight: number;
  paused: boolean;
  /** null: it does not warm up. */
  warmupStartedAt: number | null;
  /** Whether this node's machine has it, as it was last seen; null: not looked at yet. */
  bindable: boolean | null;
  ptr: string | null;
  /** The PTR is the name said in EHLO, and that name has the address; null: the DNS did not tell yet. */
  ptrOk: boolean | null;
  /** Zones of blocklists that list it. */
  blacklists: string[];
  createdAt: number;
  updatedAt: number;
}

export interface Pool {
  accountKey: number;
  name: string;
  description: string | null;
  /** What a message that names no pool leaves by; one pool of each account is. */
  isDefault: boolean;
  addresses: PoolAddress[];
  createdAt: number;
  updatedAt: number;
}

/** What its owner sets. */
export type PoolChange = Partial<Omit<Pool, "accountKey" | "name" | "addresses" | "createdAt" | "updatedAt">>;
export type NewPool = Pick<Pool, "accountKey" | "name"> & PoolChange;

export type NewAddress = Pick<PoolAddress, "address" | "hostname" | "weight" | "bindable"> & {
  /** Its warm-up begins. */
  warmup: boolean | null;
};
/**
 * `pool`: where it is moved to, with its settings. `warmup`: one that is under way goes on, else it begins; false or null
 * ends it.
 */
export type AddressChange = Partial<Pick<PoolAddress, "hostname" | "weight" | "paused">> & {
  warmup?: boolean | null;
  pool?: string;
};
export type AddressLook = Pick<PoolAddress, "address" | "bindable" | "ptr" | "ptrOk">;

/** What can stand against a write. */
export const poolRefusals = [
  "no_pool",
  "no_other_pool", // that it is to be moved to
  "no_address",
  "exists",
  "taken", // the address is in a pool, perhaps of another account
  "too_many_pools",
  "too_many_addresses",
  "not_assigned", // the address is not the account's, or belongs to another
  "default",
  "has_addresses",
  "has_mail",
] as const;
export type PoolRefusal = (typeof poolRefusals)[number];

/** The pool as it is after the write, or what stands against it; nothing was written then. */
export type PoolWrite = { ok: true; pool: Pool } | { ok: false; why: PoolRefusal };

/** What binds an account's key, and not the operator. */
export interface PoolRules {
  /** Pools, or addresses, that the account may have. */
  most?: number;
  /** Where several accounts send: only an address that was assigned to the account. */
  ownOnly?: boolean;
}
