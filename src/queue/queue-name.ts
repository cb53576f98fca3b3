// Names of scheduled queues: what waits for one destination is in one queue, so that a
// destination that hangs delays no other. A scheduled queue's name is all that the store knows of it.

/** The one scheduled queue of mail that never leaves the machine. */
export const sandboxQueue = "~sandbox";

/** The scheduled queue of a recipient domain (A-label, lower case) within a pool, which is an account's own. */
export function queueNameOf(accountKey: number, ipPool: string, domain: string): string {
  return `${queuePrefixOf(accountKey, ipPool)}${domain}`;
}

/** How the scheduled queues of a pool's mail begin; no other scheduled queue begins so. */
export function queuePrefixOf(accountKey: number, ipPool: string): string {
  return `${accountKey}.${ipPool}/`;
}

/** What a scheduled queue's name says; null for the sandbox. */
export function readQueueName(
  queueName: string,
): { accountKey: number; ipPool: string; domain: string } | null {
  if (queueName === sandboxQueue) return null;
  const [dot, slash] = [queueName.indexOf("."), queueName.indexOf("/")];
  return {
    accountKey: Number(queueName.slice(0, dot)),
    ipPool: queueName.slice(dot + 1, slash),
    domain: queueName.slice(slash + 1),
  };
}
