// Servers whose TLS handshake failed under an opportunistic policy and that were then spoken to in clear: for ten minutes
// they are dialled in clear at once, since each failure costs a connection of theirs and of ours. Where a policy asks for
// TLS they are not asked about. Known by address and port, in bounded memory.
import type { Clock } from "../clock.ts";
import type { Target } from "./session.ts";

const clearMs = 600_000;
const maxHosts = 2_000;

export class TlsHosts {
  readonly #failedAt = new Map<string, number>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How long ago, in milliseconds, TLS failed there; null: not lately. */
  failedSince(target: Target): number | null {
    if (this.#failedAt.size === 0) return null;
    const at = this.#failedAt.get(keyOf(target));
    if (at === undefined) return null;
    const ago = this.#clock.monotonic() - at;
    if (ago < clearMs) return ago;
    this.#failedAt.delete(keyOf(target));
    return null;
  }

  /** TLS failed there, and clear text worked. */
  failed(target: Target): void {
    const oldest = this.#failedAt.keys().next();
    if (this.#failedAt.size >= maxHosts && !oldest.done) this.#failedAt.delete(oldest.value);
    this.#failedAt.set(keyOf(target), this.#clock.monotonic());
  }
}

const keyOf = ({ address, port }: Target): string => `${address} ${port}`;
