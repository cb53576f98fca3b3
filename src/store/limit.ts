// A limit on how many of a thing an account may have, decided in the transaction that would pass it.
import { LimitReached } from "./store.ts";

/** In place of the result of a write: the account has as many as it may. */
export interface LimitExceeded {
  over: number;
}

/** What was written; a write that was refused by a limit throws. */
export function within<T>(result: T | LimitExceeded): T {
  if (typeof result === "object" && result !== null && "over" in result) throw new LimitReached(result.over);
  return result;
}

export const mostOf = (most: number | undefined): { most?: number } => (most === undefined ? {} : { most });
