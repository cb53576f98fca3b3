// What a deleted endpoint left, deliveries and their attempts, goes in pieces, so that no transaction grows with a backlog.
import type { Database } from "better-sqlite3";
import { discardPiece, inPieces } from "../pieces.ts";
import type { Remote } from "./remote.ts";

/** Attempts that one transaction deletes at most: they may have 4 KB each. */
const attemptsPiece = 500;

export function createDeliveryRemoval(db: Database) {
  const dropAll = db.prepare(
    "DELETE FROM deliveries WHERE endpoint_key = @key AND event_seq IN (SELECT event_seq FROM deliveries WHERE endpoint_key = @key LIMIT @limit)",
  );
  const dropAttempts = db.prepare(
    `DELETE FROM delivery_attempts WHERE endpoint_key = @key AND (event_seq, attempted_at, attempt) IN
       (SELECT event_seq, attempted_at, attempt FROM delivery_attempts WHERE endpoint_key = @key LIMIT ${attemptsPiece})`,
  );

  return {
    /** A piece of what a deleted endpoint left; answers how many rows went. */
    dropDeliveries(arg: { key: number }): number {
      return dropAll.run({ key: arg.key, limit: discardPiece }).changes;
    },
    /** The same of its attempts. */
    dropAttempts(arg: { key: number }): number {
      return dropAttempts.run(arg).changes;
    },
  };
}

/** All that the endpoint left. */
export async function dropDeliveries(
  ahead: Pick<Remote<ReturnType<typeof createDeliveryRemoval>>, "dropDeliveries" | "dropAttempts">,
  key: number,
): Promise<void> {
  await inPieces(() => ahead.dropDeliveries({ key }));
  await inPieces(() => ahead.dropAttempts({ key }), attemptsPiece);
}
