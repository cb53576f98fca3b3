// The known word nearest to a misspelt one: by edits (a letter more, less, other, two swapped) or as the beginning of it.

/** At most so much of the longer word may differ. */
const differsMost = 0.34;

/** The nearest of `words`, in their order; null where none is near. */
export function nearest(written: string, words: readonly string[]): string | null {
  const wanted = written.toLowerCase();
  const begins = wanted.length < 2 ? undefined : words.find((word) => word.startsWith(wanted));
  if (begins !== undefined) return begins;
  let best: { word: string; edits: number } | null = null;
  for (const word of words) {
    const edits = editsBetween(wanted, word);
    const may = Math.max(wanted.length, word.length) * differsMost;
    if (edits <= may && (best === null || edits < best.edits)) best = { word, edits };
  }
  return best?.word ?? null;
}

/** Optimal string alignment. Words of a command line are short: a longer one is near none. */
function editsBetween(from: string, to: string): number {
  if (from.length > 40) return Infinity;
  let [older, old] = [[] as number[], Array.from({ length: to.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= from.length; i++) {
    const now = [i];
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1];
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      now[j] = Math.min(
        (old[j] ?? 0) + 1,
        (now[j - 1] ?? 0) + 1,
        (old[j - 1] ?? 0) + (same ? 0 : 1),
        swapped ? (older[j - 2] ?? 0) + 1 : Infinity,
      );
    }
    [older, old] = [old, now];
  }
  return old[to.length] ?? 0;
}
