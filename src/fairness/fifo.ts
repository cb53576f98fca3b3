// A first-in, first-out list whose both ends cost the same however long it is. The last one in can be taken too.
export class Fifo<T> {
  #items: T[] = [];
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  /** The next one, which stays. */
  peek(): T | undefined {
    return this.#items[this.#head];
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** Puts one back that was taken: it is the next again. */
  unshift(item: T): void {
    if (this.#head === 0) this.#items.unshift(item);
    else this.#items[--this.#head] = item;
  }

  shift(): T | undefined {
    const item = this.#items[this.#head];
    if (this.size === 0) return undefined;
    this.#head += 1;
    if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Takes the one that was pushed last. */
  pop(): T | undefined {
    if (this.size === 0) return undefined;
    const item = this.#items.pop();
    if (this.size === 0) [this.#items, this.#head] = [[], 0];
    return item;
  }
}
