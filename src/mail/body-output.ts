// What a rewriting of a mail's body has written and nobody has taken yet. It ends in CRLF (RFC 5321 §4.1.1.4).

const lineEnd = Buffer.from("\r\n", "latin1");

export class BodyOutput {
  #chunks: Buffer[] = [];
  /** The last two octets. */
  #tail: Buffer = lineEnd;

  /** Copies: what the walk of a mail hands on is a view. */
  put(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#chunks.push(Buffer.from(bytes));
    this.#tail =
      bytes.length > 1 ? Buffer.from(bytes.subarray(-2)) : Buffer.concat([this.#tail, bytes]).subarray(-2);
  }

  end(): void {
    if (!this.#tail.equals(lineEnd)) this.put(lineEnd);
  }

  /** What was put since the last time. */
  take(): Buffer {
    const [only] = this.#chunks;
    const all = this.#chunks.length === 1 && only ? only : Buffer.concat(this.#chunks);
    this.#chunks = [];
    return all;
  }
}
