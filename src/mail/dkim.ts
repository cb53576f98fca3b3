// DKIM signing (RFC 6376, RFC 8463).
/** SHA-256 of the relaxed body (RFC 6376 §3.4.4), fed in pieces. */
export class BodyHasher {
  update(chunk: Uint8Array): void {
    throw new Error(String(chunk.length));
  }
  digest(): Buffer {
    throw new Error("digest");
  }
}
export interface SigningKey {
  domain: string;
  selector: string;
  algorithm: "rsa-sha256" | "ed25519-sha256";
  privatePem: string;
}
export interface SignInput {
  headerSection: Uint8Array;
  bodyHash: Uint8Array;
  keys: SigningKey[];
  /** Milliseconds since 1970. */
  signedAt: number;
}
/** DKIM-Signature fields, CRLF terminated, one a key. */
export type SignHeader = (input: SignInput) => Promise<Buffer>;
/** Makes a signer with its own bounded cache of parsed keys; one a process is enough. */
export function createSigner(): SignHeader {
  throw new Error("signer");
}
export function generateDkimKey(algorithm: SigningKey["algorithm"]): Promise<{ privatePem: string; publicKey: string }> {
  throw new Error(algorithm);
}
export function dkimRecordValue(algorithm: SigningKey["algorithm"], publicKey: string): string {
  return `v=DKIM1; k=${algorithm === "rsa-sha256" ? "rsa" : "ed25519"}; p=${publicKey}`;
}
