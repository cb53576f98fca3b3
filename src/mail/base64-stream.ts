// Base64 (RFC 2045 §6.8) in a stream: pieces of any size in, lines of 76 out, CRLF between them and none at
// the end. `Base64Rewrap` takes what is base64 already and only breaks it into lines; octets that are not
// of the alphabet mean nothing to a decoder and are left out.
import { base64Lines } from "./transfer.ts";

/** 57 octets are one line of 76. */
const lineOctets = 57;
const lineLength = 76;
const nothing: Buffer = Buffer.alloc(0);
const lineEnd = Buffer.from("\r\n", "latin1");

export class Base64 {
  #held: Buffer = nothing;
  #begun = false;

  push(chunk: Buffer): Buffer {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const whole = bytes.length - (bytes.length % lineOctets);
    // A copy: the caller may use its buffer again.
    this.#held = Buffer.from(bytes.subarray(whole));
    return this.#lines(bytes.subarray(0, whole));
  }

  end(): Buffer {
    return this.#lines(this.#held);
  }

  #lines(bytes: Buffer): Buffer {
    if (bytes.length === 0) return nothing;
    const lines = base64Lines(bytes);
    const first = !this.#begun;
    this.#begun = true;
    return first ? lines : Buffer.concat([lineEnd, lines]);
  }
}

export class Base64Rewrap {
  #held = "";
  #begun = false;

  push(chunk: Buffer): Buffer {
    const text = this.#held + chunk.toString("latin1").replace(/[^A-Za-z0-9+/=]+/g, "");
    const whole = text.length - (text.length % lineLength);
    this.#held = text.slice(whole);
    return this.#lines(text.slice(0, whole));
  }

  end(): Buffer {
    return this.#lines(this.#held);
  }

  #lines(text: string): Buffer {
    if (text === "") return nothing;
    const lines = text.match(/.{1,76}/g)?.join("\r\n") ?? "";
    const first = !this.#begun;
    this.#begun = true;
    return Buffer.from(first ? lines : `\r\n${lines}`, "latin1");
  }
}
