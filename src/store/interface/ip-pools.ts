// The calls about IP pools, the addresses in them, and the accounts that addresses are assigned to.
import type { AssignResult, IpAssignment } from "../../model/ip-assignment.ts";
import type {
  AddressChange,
  AddressLook,
  NewAddress,
  NewPool,
  Pool,
  PoolChange,
  PoolRules,
  PoolWrite,
} from "../../model/ip-pool.ts";

export interface IpPoolStore {
  /** By name, their addresses in order and as this node sees them; `default` is always among them. */
  listPools(accountKey: number): Promise<Pool[]>;
  /** Accounts that have more to their pools than `default` without an address. */
  accountsWithPools(): Promise<number[]>;
  /** `most`: pools that the account may have. */
  createPool(pool: NewPool & { at: number; most?: number }): Promise<PoolWrite>;
  updatePool(accountKey: number, name: string, change: PoolChange, at: number): Promise<PoolWrite>;
  /** Only a pool without addresses and without unsent mail, whose scheduled queues begin with `scheduled queues`. */
  deletePool(accountKey: number, name: string, scheduledQueues: string): Promise<PoolWrite>;
  addAddress(
    accountKey: number,
    pool: string,
    address: NewAddress,
    at: number,
    rules?: PoolRules,
  ): Promise<PoolWrite>;
  /** Answers the pool that it is in then. */
  updateAddress(
    accountKey: number,
    pool: string,
    address: string,
    change: AddressChange,
    at: number,
  ): Promise<PoolWrite>;
  removeAddress(accountKey: number, pool: string, address: string, at: number): Promise<PoolWrite>;
  /** What this node saw. */
  saveLooks(looks: AddressLook[], at: number): Promise<void>;
  /** Whether the account's key may put the address into a pool: there is no other account, or it was assigned. */
  mayHoldAddress(accountKey: number, address: string): Promise<boolean>;
  listAssignments(): Promise<IpAssignment[]>;
  assignAddress(accountKey: number, address: string, at: number): Promise<AssignResult>;
  /** Takes an address from its account, and out of the pool that it is in. null: it belongs to none. */
  unassignAddress(address: string, at: number): Promise<IpAssignment | null>;
}
