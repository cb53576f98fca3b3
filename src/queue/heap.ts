// A binary min-heap of keys by time. A key stands in it once, at its earliest time.
export interface TimeHeap {
  readonly size: number;
  /** Puts `key` at `at`, or moves it there if that is earlier than where it stands. */
  push(key: string, at: number): void;
  /** The earliest time, or null. */
  peek(): number | null;
  /** Takes the earliest key if its time is not after `now`. */
  popDue(now: number): string | null;
}

export function createTimeHeap(): TimeHeap {
  const heap: { key: string; at: number }[] = [];
  /** Where each key counts; entries of the heap that differ are left-overs, dropped when they come up. */
  const times = new Map<string, number>();

  const swap = (i: number, j: number): void => {
    const a = heap[i];
    const b = heap[j];
    if (a && b) {
      heap[i] = b;
      heap[j] = a;
    }
  };
  const at = (i: number): number => heap[i]?.at ?? Number.POSITIVE_INFINITY;
  const up = (start: number): void => {
    for (let i = start; i > 0;) {
      const parent = (i - 1) >> 1;
      if (at(parent) <= at(i)) return;
      swap(parent, i);
      i = parent;
    }
  };
  const down = (): void => {
    for (let i = 0; ;) {
      const left = 2 * i + 1;
      const least = at(left + 1) < at(left) ? left + 1 : left;
      if (at(least) >= at(i)) return;
      swap(i, least);
      i = least;
    }
  };
  const removeTop = (): void => {
    const last = heap.pop();
    if (last && heap.length > 0) {
      heap[0] = last;
      down();
    }
  };
  const dropStale = (): void => {
    for (let top = heap[0]; top && times.get(top.key) !== top.at; top = heap[0]) removeTop();
  };

  return {
    get size() {
      return times.size;
    },
    push(key, when) {
      const known = times.get(key);
      if (known !== undefined && known <= when) return;
      times.set(key, when);
      heap.push({ key, at: when });
      up(heap.length - 1);
    },
    peek() {
      dropStale();
      return heap[0]?.at ?? null;
    },
    popDue(now) {
      dropStale();
      const top = heap[0];
      if (!top || top.at > now) return null;
      removeTop();
      times.delete(top.key);
      return top.key;
    },
  };
}
