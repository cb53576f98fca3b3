// What the writer sums in memory while transactions run: the unsent recipients and the bytes of their content, in all and
// of each account, so that no acceptance counts rows. A transaction that is rolled back, whole or one call of it, undoes
// what it added: `mark` before, `undo` after.
import type { Counted } from "./counters.ts";

/** What an account has in the queue. */
export interface Usage {
  recipients: number;
  /** Of the content of its unsent messages; of a message to several, the parts of those that are unsent. */
  bytes: number;
}

export interface Mark {
  changes: number;
  counted: number;
  events: boolean;
  deliveries: boolean;
}

export interface Tally {
  /** Recipients that wait or are leased: the queue's length. */
  readonly unsent: number;
  usageOf(accountKey: number): Readonly<Usage>;
  /** Recipients that were queued, or (negative) became final, with their part of the content. */
  change(accountKey: number, recipients: number, bytes: number): void;
  /** Accounts that send; null: to be counted again. */
  accounts: number | null;
  /** An event was recorded since this was last cleared. */
  events: boolean;
  /** One was that is to be posted to endpoints. */
  deliveries: boolean;
  /** What is to be counted with the transaction, in its order: taking a call back is cutting off what it added. */
  counted: Counted[];
  /** A transaction begins. */
  begin(): void;
  mark(): Mark;
  undo(to: Mark): void;
}

const nothing: Readonly<Usage> = { recipients: 0, bytes: 0 };

export function createTally(start: Iterable<[accountKey: number, usage: Usage]> = []): Tally {
  const usages = new Map<number, Usage>();
  /** The changes of this transaction, to be undone from the end. */
  const changes: { usage: Usage; recipients: number; bytes: number }[] = [];
  let unsent = 0;
  const usageFor = (accountKey: number): Usage => {
    const known = usages.get(accountKey);
    if (known) return known;
    const fresh = { recipients: 0, bytes: 0 };
    usages.set(accountKey, fresh);
    return fresh;
  };
  for (const [accountKey, { recipients, bytes }] of start) {
    const usage = usageFor(accountKey);
    usage.recipients += recipients;
    usage.bytes += bytes;
    unsent += recipients;
  }
  return {
    get unsent() {
      return unsent;
    },
    usageOf: (accountKey) => usages.get(accountKey) ?? nothing,
    change(accountKey, recipients, bytes) {
      const usage = usageFor(accountKey);
      usage.recipients += recipients;
      usage.bytes += bytes;
      unsent += recipients;
      changes.push({ usage, recipients, bytes });
    },
    accounts: null,
    events: false,
    deliveries: false,
    counted: [],
    begin() {
      changes.length = 0;
      this.counted.length = 0;
      this.events = this.deliveries = false;
    },
    mark() {
      return {
        changes: changes.length,
        counted: this.counted.length,
        events: this.events,
        deliveries: this.deliveries,
      };
    },
    undo(to) {
      for (const { usage, recipients, bytes } of changes.splice(to.changes)) {
        usage.recipients -= recipients;
        usage.bytes -= bytes;
        unsent -= recipients;
      }
      this.counted.length = to.counted;
      this.events = to.events;
      this.deliveries = to.deliveries;
      this.accounts = null;
    },
  };
}
