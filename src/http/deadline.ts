// A wait that ends. What is still running when its time is over goes on by itself; `discard` gets its
// result so that nothing in it is lost.
import type { Clock, Timer } from "../clock.ts";
import { Refusal } from "../errors.ts";

/** Of a handler whose route names none, and of what a middleware waits for. */
export const handlerTimeoutMs = 30_000;

/** The work's result, or upstream_timeout after `ms`. */
export async function within<T>(
  clock: Clock,
  ms: number,
  work: Promise<T>,
  discard: (late: T) => void,
): Promise<T> {
  let timer: Timer | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = clock.after(ms, () => {
      work.then(discard, () => undefined);
      reject(
        new Refusal("upstream_timeout", `The request took longer than ${Math.round(ms / 1000)} seconds.`),
      );
    });
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    timer?.cancel();
  }
}
