// The calls about boots. A boot is one start of the daemon, and the owner of every lease that it takes: a lease is over when
// its boot has ended, or has not renewed its own lease in time.
export interface BootStore {
  /** Writes the boot's row, before it takes any lease; `leaseUntil`: when its leases are over unless they are renewed. */
  beginBoot(boot: { id: string; node: string; leaseUntil: number }): Promise<void>;
  /** Renews all leases of the boot at once. False: it has ended, and nothing is its own any more. */
  renewBoot(id: string, leaseUntil: number): Promise<boolean>;
  /** The boot ends; what it still holds is for the next start of its node to take back. */
  endBoot(id: string, at: number): Promise<void>;
}
