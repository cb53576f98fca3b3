// Held mail, as it stands in the queue: leased to a holder of its account, which no boot takes back. There are two: of mail
// of accounts whose sending is paused (sending-pause.ts), and of what the operator holds (queue-acts.ts). `held_since` says
// since when, or when it would have been due if that is later.

/** Sorts behind the owner of every boot, so that each kind is one stretch of the index of leases. */
export const firstHolder = "~hold:";
export const holderOf = (accountKey: number): string => `${firstHolder}${accountKey}`;
/** Behind the holders of paused accounts. */
export const firstOperatorHolder = "~operator:";
export const operatorHolderOf = (accountKey: number): string => `${firstOperatorHolder}${accountKey}`;
export const accountOf = (holder: string): number => Number(holder.slice(firstHolder.length));

/** SQL over a row of `recipients`: in an attempt's hands, or a holder's. */
export const isLeased = `(lease_owner < '${firstHolder}')`;
export const isHeld = `(lease_owner >= '${firstHolder}')`;
