// Processor time of this thread, for tests that input of a hostile shape costs no more than its length. Time on the
// clock would count what else runs on the machine; even processor time grows where another program shares the core and its
// caches, so that the least of a few tries counts, against a bound that knows how slow the machine is at the moment.

/** Milliseconds of processor time that `run` took. */
export function cpuMs(run: () => void): number {
  const before = process.threadCpuUsage();
  run();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

const tries = 5;
/** Of `reference` on an idle core of 2026's rented machines. */
const referenceMs = 12;

/** The least of a few tries; the first one below `enough` ends them. */
export function leastCpuMs(enough: number, run: () => void): number {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < tries && least >= enough; i++) least = Math.min(least, cpuMs(run));
  return least;
}

/** As `leastCpuMs`, of figures that `measure` finds by itself. */
export async function leastOf(enough: number, measure: () => Promise<number>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < tries && least >= enough; i++) least = Math.min(least, await measure());
  return least;
}

/** `ms` of a quick machine in those of this one, as it is just now; never less. */
export function here(ms: number): number {
  const took = Math.min(...Array.from({ length: 3 }, () => cpuMs(reference)));
  return ms * Math.max(1, took / referenceMs);
}

/** Work of the kind that is measured: text cut up, looked up and sorted. */
function reference(): void {
  const words = "From: <a@b.test> quoted text and numbers 12345\r\n".repeat(4_000).split(" ");
  const seen = new Map<string, number>();
  for (const word of words) seen.set(word, (seen.get(word) ?? 0) + word.length);
  words.sort();
  Buffer.from(words.join(" ")).indexOf("nowhere");
}
