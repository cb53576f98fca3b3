// Servers that close the connection at EHLO where they should refuse it with 500 or 502 (RFC 5321 §3.2, §4.1.1.1): they
// are spoken to with HELO, without extensions. Whether that works is known only after a try, and remembered for an
// hour by address and port, so that neither each mail costs two connections nor a server is never asked again.
import type { Clock } from "../clock.ts";
import type { Target } from "./session.ts";

const rememberedMs = 3_600_000;
const maxRemembered = 2_000;

export class HeloHosts {
  readonly #known = new Map<string, { worked: boolean; since: number }>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True: HELO worked here, false: it did not, null: it was not tried lately. */
  worked(target: Target): boolean | null {
    if (this.#known.size === 0) return null;
    const key = keyOf(target);
    const known = this.#known.get(key);
    if (known === undefined) return null;
    if (this.#clock.monotonic() - known.since < rememberedMs) return known.worked;
    this.#known.delete(key);
    return null;
  }

  remember(target: Target, worked: boolean): void {
    const oldest = this.#known.keys().next();
    if (this.#known.size >= maxRemembered && !oldest.done) this.#known.delete(oldest.value);
    this.#known.set(keyOf(target), { worked, since: this.#clock.monotonic() });
  }

  forget(target: Target): void {
    this.#known.delete(keyOf(target));
  }
}

const keyOf = ({ address, port }: Target): string => `${address} ${port}`;
