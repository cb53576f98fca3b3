// A binary min-heap of keys by time. A key stands in it once, at its earliest time, so that it grows with the keys and
// not with how often they come and go.
export interface TimeHeap {
  readonly size: number;
  /** Puts `key` at `at`, or moves it there if that is earlier than where it stands. */
  push(key: string, at: number): void;
  /** The earliest time, or null. */
  peek(): number | null;
  /** Takes the earliest key if its time is not after `now`. */
  popDue(now: number): string | null;
}

interface Entry {
  key: string;
  at: number;
}

export function createTimeHeap(): TimeHeap {
  const heap: Entry[] = [];
  const places = new Map<string, number>();

  const put = (i: number, entry: Entry): void => {
    heap[i] = entry;
    places.set(entry.key, i);
  };
  const up = (start: number, entry: Entry): void => {
    let i = start;
    while (i > 0) {
      const parent = heap[(i - 1) >> 1];
      if (!parent || parent.at <= entry.at) break;
      put(i, parent);
      i = (i - 1) >> 1;
    }
    put(i, entry);
  };
  const down = (entry: Entry): void => {
    let i = 0;
    for (;;) {
      const [left, right] = [heap[2 * i + 1], heap[2 * i + 2]];
      const least = right && left && right.at < left.at ? right : left;
      if (!least || least.at >= entry.at) break;
      const next = least === right ? 2 * i + 2 : 2 * i + 1;
      put(i, least);
      i = next;
    }
    put(i, entry);
  };

  return {
    get size() {
      return heap.length;
    },
    push(key, at) {
      const place = places.get(key);
      const known = place === undefined ? undefined : heap[place];
      if (known && known.at <= at) return;
      up(place ?? heap.length, { key, at });
    },
    peek: () => heap[0]?.at ?? null,
    popDue(now) {
      const top = heap[0];
      if (!top || top.at > now) return null;
      places.delete(top.key);
      const last = heap.pop();
      if (last && heap.length > 0) down(last);
      return top.key;
    },
  };
}
