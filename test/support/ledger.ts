// The test's own book, kept outside of the product: what was acknowledged, what came in at the receivers. At the end
// nothing acknowledged is missing, and a mail that came twice was allowed to.
import { expect } from "vitest";
import { eventually } from "./appliance.ts";
import type { ReceivedMail } from "./smtp-receiver.ts";

export interface Ledger {
  /** A text for the body by which the mail is known again, e.g. `token-17-`. */
  token(): string;
  acknowledge(token: string): void;
  readonly acknowledged: number;
  /** Waits until everything acknowledged is there, then judges copies: none, but for the `ambiguous` tokens. */
  settle(
    mails: () => ReceivedMail[],
    options?: { withinMs?: number; ambiguous?: Set<string> },
  ): Promise<void>;
}

export function createLedger(): Ledger {
  const acknowledged = new Set<string>();
  let number = 0;
  return {
    token: () => `token-${++number}-`,
    acknowledge: (token) => void acknowledged.add(token),
    get acknowledged() {
      return acknowledged.size;
    },
    async settle(mails, { withinMs = 120_000, ambiguous = new Set() } = {}) {
      const arrived = () => Map.groupBy(mails(), tokenOf);
      await eventually(
        async () => {
          const here = arrived();
          return [...acknowledged].every((token) => here.has(token));
        },
        withinMs,
        "every acknowledged mail arriving",
      );
      const copies = [...arrived()].filter(([, all]) => all.length > 1).map(([token]) => token);
      expect(copies.filter((token) => !ambiguous.has(token))).toEqual([]);
    },
  };
}

export function tokenOf(mail: ReceivedMail): string {
  return /token-\d+-/.exec(mail.data.toString("latin1"))?.[0] ?? "none";
}
