// How a test's folder goes.
import { rmSync } from "node:fs";

/**
 * Removes a folder and all in it; it may be gone already. A process that has just been told to end may still write into it
 * while it is walked: then it is walked again, for some ten seconds in all.
 */
export function removeFolder(path: string): void {
  rmSync(path, { recursive: true, force: true, maxRetries: 30, retryDelay: 25 });
}
