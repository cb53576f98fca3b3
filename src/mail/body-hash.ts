// The relaxed body hash of DKIM (RFC 6376 §3.4.4), fed in pieces of any size: white space at line
// ends is ignored, runs of it are one space, empty lines at the end do not count. Most pieces have
// no such white space; three native searches tell, and then they are hashed as they are.
import { createHash } from "node:crypto";

const space = 32;
const tab = 9;
const cr = 13;
const lf = 10;
const manyLines = Buffer.from("\r\n".repeat(2048), "latin1");

/** SHA-256 of a relaxed body with CRLF line ends. The chunks may be split anywhere. */
export class BodyHasher {
  readonly #hash = createHash("sha256");
  /** CRLFs that count only if something follows. */
  #lines = 0;
  /** White space that counts only if something follows on the line. */
  #wsp = false;
  /** A CR whose LF is still to come. */
  #cr = false;
  /** The body is not empty: it then ends in one CRLF. */
  #content = false;

  update(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    if (this.#isClean(bytes)) this.#take(bytes);
    else this.#reduce(bytes);
  }

  /** 32 bytes; ends the hasher. */
  digest(): Buffer {
    if (this.#cr) this.#writeByte(cr);
    if (this.#content) this.#hash.update("\r\n", "latin1");
    return this.#hash.digest();
  }

  #isClean(bytes: Buffer): boolean {
    const last = bytes[bytes.length - 1];
    if (last === undefined || last === space || last === cr || this.#wsp || this.#cr) return false;
    return !bytes.includes(tab) && !bytes.includes("  ") && !bytes.includes(" \r\n");
  }

  /** A piece whose white space is relaxed already: only its last line ends are held back. */
  #take(bytes: Buffer): void {
    let end = bytes.length;
    while (end >= 2 && bytes[end - 1] === lf && bytes[end - 2] === cr) end -= 2;
    if (end > 0) {
      this.#writeLines();
      this.#hash.update(end === bytes.length ? bytes : bytes.subarray(0, end));
      this.#content = true;
    }
    this.#lines += (bytes.length - end) / 2;
  }

  #reduce(bytes: Buffer): void {
    // Each byte gives at most three: a CR that stood alone, or a held space and itself.
    const out = Buffer.allocUnsafe(bytes.length * 2 + 2);
    let at = 0;
    for (const byte of bytes) {
      if (byte === lf && this.#cr) {
        this.#cr = this.#wsp = false;
        this.#lines++;
        continue;
      }
      if (byte === space || byte === tab || byte === cr) {
        if (this.#cr) at = this.#put(out, at, cr);
        this.#cr = byte === cr;
        this.#wsp ||= byte !== cr;
        continue;
      }
      if (this.#cr) at = this.#put(out, at, cr);
      this.#cr = false;
      at = this.#put(out, at, byte);
    }
    if (at > 0) this.#hash.update(out.subarray(0, at));
  }

  /** Writes what was held back, then the byte. Held lines go to the hash at once, behind what `out` has. */
  #put(out: Buffer, at: number, byte: number): number {
    let to = at;
    if (this.#lines > 0) {
      if (to > 0) this.#hash.update(out.subarray(0, to));
      to = 0;
      this.#writeLines();
    }
    if (this.#wsp) out[to++] = space;
    out[to++] = byte;
    this.#wsp = false;
    this.#content = true;
    return to;
  }

  #writeByte(byte: number): void {
    const one = Buffer.allocUnsafe(2);
    this.#hash.update(one.subarray(0, this.#put(one, 0, byte)));
  }

  #writeLines(): void {
    while (this.#lines > 0) {
      const some = Math.min(this.#lines, 2048);
      this.#hash.update(manyLines.subarray(0, some * 2));
      this.#lines -= some;
    }
  }
}
