// The messages under way, a recipient each, in typed arrays: 22 bytes a message, and the place of one that is done is used
// again. A domain's due messages are a list through them.

/** What the recipient's mailbox says whenever it is reached. */
export const fates = { delivered: 0, unknownUser: 1, mailboxFull: 2 };
export const none = 0xffff_ffff;

export class Messages {
  #queuedAt = new Float64Array(1024);
  #firstTriedAt = new Float64Array(1024);
  #domain = new Uint32Array(1024);
  #next = new Uint32Array(1024);
  #attempts = new Uint16Array(1024);
  #fate = new Uint8Array(1024);
  #size = 0;
  /** Places to be used again, a list through `#next`. */
  #free = none;

  add(domain: number, fate: number, queuedAt: number): number {
    const reused = this.#free !== none;
    const i = reused ? this.#free : this.#size++;
    if (reused) this.#free = this.next(i);
    else if (i === this.#fate.length) this.#grow();
    this.#queuedAt[i] = queuedAt;
    this.#domain[i] = domain;
    this.#fate[i] = fate;
    this.#attempts[i] = 0;
    return i;
  }

  remove(i: number): void {
    this.#next[i] = this.#free;
    this.#free = i;
  }

  queuedAt(i: number): number {
    return this.#queuedAt[i] ?? 0;
  }
  firstTriedAt(i: number): number {
    return this.#firstTriedAt[i] ?? 0;
  }
  domain(i: number): number {
    return this.#domain[i] ?? 0;
  }
  fate(i: number): number {
    return this.#fate[i] ?? 0;
  }
  next(i: number): number {
    return this.#next[i] ?? none;
  }
  setNext(i: number, next: number): void {
    this.#next[i] = next;
  }

  /** Counts an attempt that begins, and answers which it is, 1 for the first. */
  beginAttempt(i: number, now: number): number {
    const attempt = (this.#attempts[i] ?? 0) + 1;
    this.#attempts[i] = attempt;
    if (attempt === 1) this.#firstTriedAt[i] = now;
    return attempt;
  }

  #grow(): void {
    const grown = <T extends { length: number; set(from: T): void }>(from: T, to: T): T => (to.set(from), to);
    const size = 2 * this.#fate.length;
    this.#queuedAt = grown(this.#queuedAt, new Float64Array(size));
    this.#firstTriedAt = grown(this.#firstTriedAt, new Float64Array(size));
    this.#domain = grown(this.#domain, new Uint32Array(size));
    this.#next = grown(this.#next, new Uint32Array(size));
    this.#attempts = grown(this.#attempts, new Uint16Array(size));
    this.#fate = grown(this.#fate, new Uint8Array(size));
  }
}
