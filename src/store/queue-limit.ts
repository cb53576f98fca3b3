// Back pressure of the queue. In all: at so many unsent recipients no more mail is taken. Of one account, where others
// send too: at most half of what the others leave of that number, and of the disk's free room for its unsent content,
// so that no account fills either for all. Once refused, mail is refused for a second at least and until a twentieth
// is free, so that clients do not see it open and shut with every recipient that leaves.
import type { ShareFull } from "../model/acceptance.ts";
import type { QueueShare } from "../model/limits.ts";
import type { Tally } from "./batch-counters.ts";

const shutAtLeastMs = 1000;
const freeBeforeOpen = 1 / 20;
/** What remains open of a limit until it is really reached again. */
const opensAt = (most: number): number => most - Math.floor(most * freeBeforeOpen);

/** Whether the queue is full for who comes at `at`; `most` 0: never. `more`: recipients of the same call before it. */
export function createQueueLimit(
  tally: Pick<Tally, "unsent">,
): (most: number, at: number, more?: number) => boolean {
  let shutAt: number | null = null;
  return (most, at, more = 0) => {
    if (most === 0) return false;
    if (tally.unsent >= most) shutAt = at; // and not where one batch is too large: others' mail has room
    if (tally.unsent + more >= most) return true;
    if (shutAt === null) return false;
    if (isRecent(shutAt, at) || tally.unsent > opensAt(most)) return true;
    shutAt = null;
    return false;
  };
}

export interface ShareRequest {
  accountKey: number;
  share: QueueShare;
  /** Unsent recipients of all accounts at most; 0: any number. */
  maxQueue: number;
  /** Bytes that are free on the disk before all mail is refused. */
  room: number;
  at: number;
}

/** What one account alone has used up. `more`: recipients of the same call before it. */
export function createShareLimit(
  tally: Pick<Tally, "unsent" | "usageOf">,
  accounts: () => number,
): (request: ShareRequest, more?: number) => ShareFull | null {
  const shut = new Map<number, { at: number; of: ShareFull["of"] }>();
  return ({ accountKey, share, maxQueue, room, at }, more = 0) => {
    const alone = accounts() < 2;
    const own = tally.usageOf(accountKey);
    const left =
      maxQueue === 0 || alone ? Infinity : Math.floor((maxQueue - tally.unsent + own.recipients) / 2);
    const most = {
      recipients: share.recipients ?? left,
      // Half of what the others leave is as much as what is free now: own <= (own + free) / 2.
      bytes: share.bytes ?? (alone ? Infinity : room),
    };
    const refuse = (of: ShareFull["of"]): ShareFull => ({
      kind: "share_full",
      of,
      most: Math.max(0, most[of]),
    });
    for (const what of ["recipients", "bytes"] as const) {
      if (own[what] + (what === "recipients" ? more : 0) < most[what]) continue;
      if (what === "bytes" && own.bytes === 0) continue; // where the disk is full, all mail is refused
      if (own[what] >= most[what]) shut.set(accountKey, { at, of: what });
      return refuse(what);
    }
    const before = shut.get(accountKey);
    if (before === undefined) return null;
    const stays =
      most[before.of] !== Infinity && (isRecent(before.at, at) || own[before.of] > opensAt(most[before.of]));
    if (stays) return refuse(before.of);
    shut.delete(accountKey);
    return null;
  };
}

/** False where the clock was set back. */
function isRecent(shutAt: number, at: number): boolean {
  return at >= shutAt && at - shutAt < shutAtLeastMs;
}
