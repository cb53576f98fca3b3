// A stored mail as a parsing thread reads it: piece by piece, at any place, without the event loop.
import { readSync } from "node:fs";
import type { OpenedContent } from "../model/content.ts";

/** Octets of a piece: what is read and parsed at once. */
export const pieceBytes = 64 * 1024;

export interface OpenedMail {
  /** The octets from `offset` on, `pieceBytes` at most, in a buffer of its own; none at the end. */
  piece(offset: number): Buffer;
}

export function openedMail(content: OpenedContent): OpenedMail {
  if (content.kind === "bytes") {
    const { buffer, byteOffset, byteLength } = content.bytes;
    const bytes = Buffer.from(buffer, byteOffset, byteLength);
    return { piece: (offset) => bytes.subarray(offset, offset + pieceBytes) };
  }
  return {
    piece(offset) {
      const bytes = Buffer.allocUnsafeSlow(pieceBytes);
      return bytes.subarray(0, readSync(content.fd, bytes, 0, pieceBytes, offset));
    },
  };
}
