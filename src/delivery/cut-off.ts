// The end, at once, of every connection that is not past its final dot. A set: an AbortSignal walks all its listeners
// for each that is added or removed, 5 to 8 µs a connection where a thousand are open.
export class CutOff {
  readonly #onCut = new Set<() => void>();
  #cut = false;

  get cut(): boolean {
    return this.#cut;
  }
  /** `onCut` is called once, at the cut, unless it was removed. */
  add(onCut: () => void): void {
    this.#onCut.add(onCut);
  }
  remove(onCut: () => void): void {
    this.#onCut.delete(onCut);
  }
  now(): void {
    this.#cut = true;
    for (const onCut of this.#onCut) onCut();
    this.#onCut.clear();
  }
}
