// Servers that close the connection at EHLO where they should refuse it with 500 or 502 (RFC 5321 §3.2, §4.1.1.1): they
// can be reached with HELO, without extensions and so without TLS. A dropped connection alone is not proof, since a server
// that restarts or is overloaded drops one too: HELO is tried only where EHLO was not answered lately, and later sessions
// begin with it only after drops in two attempts, for ten minutes. Known by address and port, in bounded memory.
import type { Clock } from "../clock.ts";
import type { Target } from "./session.ts";

const heloMs = 600_000;
/** Drops that are closer together may have one cause, those that are further apart say nothing about each other. */
const dropsApartMs = 60_000;
const dropsTogetherMs = 3_600_000;
const answeredMs = 6 * 3_600_000;
const maxHelo = 2_000;
const maxAnswered = 10_000;

interface Helo {
  /** The last drop at EHLO after which HELO worked; null: HELO failed too. */
  droppedAt: number | null;
  /** Until then sessions begin with HELO, or HELO is not tried where it failed. */
  until: number;
}

export class HeloHosts {
  readonly #helo = new Map<string, Helo>();
  readonly #answered = new Map<string, number>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Sessions begin with HELO. */
  heloFirst(target: Target): boolean {
    if (this.#helo.size === 0) return false;
    const known = this.#helo.get(keyOf(target));
    return known !== undefined && known.droppedAt !== null && this.#clock.monotonic() < known.until;
  }

  /** After a drop at EHLO: neither was EHLO answered lately, nor did HELO fail. */
  mayTryHelo(target: Target): boolean {
    const known = this.#helo.get(keyOf(target));
    const failed = known?.droppedAt === null && this.#clock.monotonic() < known.until;
    return !failed && !this.#answeredLately(target);
  }

  /** EHLO was answered, so it is what sessions begin with. */
  ehloAnswered(target: Target): void {
    const key = keyOf(target);
    this.#helo.delete(key);
    keep(this.#answered, key, this.#clock.monotonic(), maxAnswered);
  }

  /** HELO was tried after a drop at EHLO. */
  heloTried(target: Target, worked: boolean): void {
    const now = this.#clock.monotonic();
    const key = keyOf(target);
    if (this.#answeredLately(target)) return;
    if (!worked) return keep(this.#helo, key, { droppedAt: null, until: now + heloMs }, maxHelo);
    const ago = now - (this.#helo.get(key)?.droppedAt ?? -Infinity);
    if (ago < dropsApartMs) return;
    const until = ago < dropsTogetherMs ? now + heloMs : now;
    keep(this.#helo, key, { droppedAt: now, until }, maxHelo);
  }

  forget(target: Target): void {
    this.#helo.delete(keyOf(target));
  }

  #answeredLately(target: Target): boolean {
    const at = this.#answered.get(keyOf(target));
    return at !== undefined && this.#clock.monotonic() - at < answeredMs;
  }
}

/** The entry renewed longest ago is evicted. */
function keep<T>(map: Map<string, T>, key: string, value: T, max: number): void {
  map.delete(key);
  if (map.size >= max) {
    const oldest = map.keys().next();
    if (!oldest.done) map.delete(oldest.value);
  }
  map.set(key, value);
}

const keyOf = ({ address, port }: Target): string => `${address} ${port}`;
