// The queue's lanes: what waits for one destination waits in one line, so that a
// destination that hangs delays nobody else. A lane's name is all that the store knows of it.

/** The one lane of mail that never leaves the machine. */
export const sandboxLane = "~sandbox";

/** The lane of a recipient domain (A-label, lower case) within its IP pool. */
export function laneOf(ipPool: string, domain: string): string {
  return `${ipPool}/${domain}`;
}

/** The recipient domain of a lane; null for the sandbox. */
export function domainOfLane(lane: string): string | null {
  return lane === sandboxLane ? null : lane.slice(lane.indexOf("/") + 1);
}
