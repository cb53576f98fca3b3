// The queue's lanes: what waits for one destination waits in one line, so that a
// destination that hangs delays nobody else. A lane's name is all that the store knows of it.

/** The one lane of mail that never leaves the machine. */
export const sandboxLane = "~sandbox";

/** The lane of a recipient domain (A-label, lower case) within a pool, which is an account's own. */
export function laneOf(accountKey: number, ipPool: string, domain: string): string {
  return `${lanesOf(accountKey, ipPool)}${domain}`;
}

/** How the lanes of a pool's mail begin; no other lane begins so. */
export function lanesOf(accountKey: number, ipPool: string): string {
  return `${accountKey}.${ipPool}/`;
}

/** What a lane's name says; null for the sandbox. */
export function readLane(lane: string): { accountKey: number; ipPool: string; domain: string } | null {
  if (lane === sandboxLane) return null;
  const [dot, slash] = [lane.indexOf("."), lane.indexOf("/")];
  return {
    accountKey: Number(lane.slice(0, dot)),
    ipPool: lane.slice(dot + 1, slash),
    domain: lane.slice(slash + 1),
  };
}
