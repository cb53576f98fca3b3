// What goes over the wire: a message's stored bytes with its DKIM signatures on top. Signed
// when it becomes due, once a message and kept for its other recipients and the next tries.
import type { SignHeader, SigningKey } from "../mail/dkim.ts";
import type { QueuedMessage } from "../mail/envelope.ts";
import type { Clock } from "../clock.ts";
import type { Store } from "../store/store.ts";

export interface Wire {
  /** DKIM-Signature fields for the message; null where the domain that must sign is no longer there. */
  signatureOf(message: QueuedMessage): Promise<Buffer | null>;
  /** The stored bytes. */
  open(message: QueuedMessage): AsyncIterable<Buffer>;
}

export interface WireDeps {
  store: Pick<Store, "domainByName" | "openContent">;
  signHeader: SignHeader;
  clock: Clock;
  /** False: nothing is signed here, a smart host does it. */
  sign: boolean;
}

const signaturesKept = 2000;
/** A signature made longer ago is made anew, so that its t= stays near the attempt. */
const signatureKeptMs = 600_000;
const keysKeptMs = 1_000;

export function createWire({ store, signHeader, clock, sign }: WireDeps): Wire {
  const signatures = new Map<number, { madeAt: number; signature: Promise<Buffer | null> }>();
  const keys = new Map<string, { readAt: number; keys: Promise<SigningKey[]> }>();

  const keysOf = (accountKey: number, domain: string): Promise<SigningKey[]> => {
    const id = `${accountKey}/${domain}`;
    const kept = keys.get(id);
    if (kept && clock.monotonic() - kept.readAt < keysKeptMs) return kept.keys;
    if (keys.size > 10_000) keys.clear();
    const read = store
      .domainByName(accountKey, domain)
      .then((found) =>
        (found?.dkimKeys ?? [])
          .filter((key) => key.status === "active")
          .map(({ selector, algorithm, privatePem }) => ({ domain, selector, algorithm, privatePem })),
      );
    read.catch(() => keys.delete(id));
    keys.set(id, { readAt: clock.monotonic(), keys: read });
    return read;
  };

  const make = async (message: QueuedMessage): Promise<Buffer | null> => {
    if (!sign || message.signingDomain === null) return Buffer.alloc(0);
    const signing = await keysOf(message.accountKey, message.signingDomain);
    if (signing.length === 0) return null;
    const headerSection = await firstBytes(store.openContent(message.content), message.headerLength);
    return signHeader({ headerSection, bodyHash: message.bodyHash, keys: signing, signedAt: clock.now() });
  };

  return {
    signatureOf(message) {
      const kept = signatures.get(message.key);
      if (kept && clock.monotonic() - kept.madeAt < signatureKeptMs) return kept.signature;
      const signature = make(message);
      const forget = () => signatures.delete(message.key);
      signature.then((made) => made === null && forget(), forget);
      signatures.set(message.key, { madeAt: clock.monotonic(), signature });
      for (const oldest of signatures.keys()) {
        if (signatures.size <= signaturesKept) break;
        signatures.delete(oldest);
      }
      return signature;
    },
    open: (message) => store.openContent(message.content),
  };
}

async function firstBytes(chunks: AsyncIterable<Buffer>, length: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    parts.push(chunk);
    size += chunk.length;
    if (size >= length) break;
  }
  return (parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts)).subarray(0, length);
}
