// A daemon that restarts, for a command that follows what it does: asked again until it answers, later each time.
import type { Cli } from "./cli.ts";
import { CliFault } from "./fault.ts";
import { pause } from "./times.ts";

export const firstWaitMs = 1000;
export const longestWaitMs = 30_000;

/** What is worth another try: nothing answers, or the server is overloaded or restarting. Throws what else there is. */
export function lostBy(error: unknown): string {
  if (error instanceof CliFault && (error.exit === 6 || error.exit === 1)) return error.message;
  throw error;
}

/** Not for a command's first question: whoever asks a daemon that is not there sees that at once. */
export async function untilAnswered<T>(cli: Cli, ask: () => Promise<T>): Promise<T> {
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(2 * waitMs, longestWaitMs)) {
    try {
      return await ask();
    } catch (error) {
      cli.out.note(`${lostBy(error)}; trying again in ${waitMs / 1000} s`);
      await pause(cli.io.clock, waitMs);
    }
  }
}
