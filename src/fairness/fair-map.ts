// A bounded map whose entries belong to owners: where it is full, the owner with the most loses its oldest entries,
// so that one owner with a million keys evicts only its own.
import type { Owner } from "../fairness.ts";

export interface FairMap<V> {
  get(key: string): V | undefined;
  /** Replaces the key's entry, of whatever owner. `size`: its part of the bounded total, one if not given. */
  set(owner: Owner, key: string, value: V, size?: number): void;
  delete(key: string): void;
  clear(): void;
}

interface Entry<V> {
  value: V;
  size: number;
  share: Share;
}

interface Share {
  owner: Owner;
  /** Oldest first. */
  keys: Set<string>;
  size: number;
}

export function createFairMap<V>(most: number): FairMap<V> {
  const entries = new Map<string, Entry<V>>();
  const shares = new Map<Owner, Share>();
  let total = 0;

  const remove = (key: string): void => {
    const entry = entries.get(key);
    if (!entry) return;
    const { share, size } = entry;
    entries.delete(key);
    share.keys.delete(key);
    share.size -= size;
    total -= size;
    if (share.keys.size === 0) shares.delete(share.owner);
  };

  const makeRoom = (): void => {
    let fullest: Share | null = null;
    for (const share of shares.values()) if (!fullest || share.size > fullest.size) fullest = share;
    const [oldest] = fullest?.keys ?? [];
    if (oldest !== undefined) remove(oldest);
  };

  return {
    get: (key) => entries.get(key)?.value,
    set(owner, key, value, size = 1) {
      remove(key);
      if (size > most) return;
      let share = shares.get(owner);
      if (!share) {
        share = { owner, keys: new Set(), size: 0 };
        shares.set(owner, share);
      }
      entries.set(key, { value, size, share });
      share.keys.add(key);
      share.size += size;
      total += size;
      while (total > most) makeRoom();
    },
    delete: remove,
    clear() {
      entries.clear();
      shares.clear();
      total = 0;
    },
  };
}
