// Mail of accounts whose sending is paused (sending-pause.ts), as it stands in the queue: leased to a holder of its
// account, which no boot takes back. `held_since` says since when.

/** Sorts behind the owner of every boot, so that each kind is one stretch of the index of leases. */
export const firstHolder = "~hold:";
export const holderOf = (accountKey: number): string => `${firstHolder}${accountKey}`;
export const accountOf = (holder: string): number => Number(holder.slice(firstHolder.length));

/** SQL over a row of `recipients`: in an attempt's hands, or a holder's. */
export const isLeased = `(lease_owner < '${firstHolder}')`;
export const isHeld = `(lease_owner >= '${firstHolder}')`;
