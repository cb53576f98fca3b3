// What goes over the wire: a message's stored bytes with its DKIM signatures on top. Signed while it is on its way to
// the disk or when it becomes due, once a message and kept for its other recipients and the next tries. For a receiver that
// takes only ASCII a rendering of its own is made and signed, when one is met (RFC 6152 §3).
import { convert, planConversion, type Source } from "../mail/conversion.ts";
import { BodyHasher } from "../mail/dkim.ts";
import { MailSyntaxError } from "../mail/header.ts";
import type { SignHeader, SigningKey } from "../mail/dkim.ts";
import type { QueuedMessage, Unsigned } from "../mail/envelope.ts";
import type { Clock } from "../clock.ts";
import type { WireMessage } from "../delivery/delivery.ts";
import type { Store } from "../store/store.ts";

export interface SignedMessages {
  /** DKIM-Signature fields for the message; null where the domain that must sign is no longer there. */
  signatureOf(message: QueuedMessage): Promise<Buffer | null>;
  /** Begins `signatureOf` for a message that is on its way to the disk, where few are begun; what fails is made by the attempt. */
  signAhead(message: Unsigned, headerSection: Buffer): void;
  /** The stored bytes. */
  open(message: QueuedMessage): AsyncIterable<Buffer>;
  /** The message in ASCII alone, which reads the same; null where there is no such form (addresses, signed parts). */
  ascii(message: QueuedMessage): Promise<WireMessage | null>;
}

export interface SignedMessagesDeps {
  store: Pick<Store, "domainByName" | "openContent">;
  signHeader: SignHeader;
  clock: Clock;
  /** False: nothing is signed here, a smart host does it. */
  sign: boolean;
}

const signaturesKept = 2000;
/** Begun at once for mail that may still be refused: no more, or refusals would stand in the way of what was accepted. */
const aheadMost = 64;
const renderingsKept = 100;
/** A signature made longer ago is made again, so that its t= stays near the attempt. */
const signatureKeptMs = 600_000;
const keysKeptMs = 1_000;

export function createSignedMessages({
  store,
  signHeader,
  clock,
  sign: signs,
}: SignedMessagesDeps): SignedMessages {
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

  /** Null: the domain that must sign is gone. */
  const sign = async (
    message: Unsigned,
    headerSection: Buffer,
    bodyHash: Uint8Array,
  ): Promise<Buffer | null> => {
    if (!signs || message.signingDomain === null) return Buffer.alloc(0);
    const signing = await keysOf(message.accountKey, message.signingDomain);
    if (signing.length === 0) return null;
    return signHeader({ headerSection, bodyHash, keys: signing, signedAt: clock.now() });
  };
  const sectionOf = ({ content, headerLength }: QueuedMessage): Promise<Buffer> =>
    firstBytes(store.openContent(content), headerLength);

  const render = async (message: QueuedMessage): Promise<WireMessage | null> => {
    const source: Source = {
      section: await sectionOf(message),
      body: () => store.openContent(message.content, message.headerLength),
    };
    const plan = await planConversion(source, "ascii").catch((error: unknown) => {
      if (error instanceof MailSyntaxError) return null;
      throw error;
    });
    if (plan === null) return null;
    const hasher = new BodyHasher();
    let section: Buffer | null = null;
    let sizeBytes = 0;
    for await (const chunk of convert(source, plan)) {
      sizeBytes += chunk.length;
      if (section === null) section = chunk;
      else hasher.update(chunk);
    }
    const signature = await sign(message, section ?? source.section, hasher.digest());
    return signature && { signature, sizeBytes, open: () => convert(source, plan) };
  };

  let ahead = 0;
  const signatures = createKept<Buffer>(clock, signaturesKept);
  const renderings = createKept<WireMessage>(clock, renderingsKept);
  return {
    signatureOf: (message) =>
      signatures(message.id, async () => {
        if (!signs || message.signingDomain === null) return Buffer.alloc(0);
        return sign(message, await sectionOf(message), message.bodyHash);
      }),
    signAhead(message, headerSection) {
      if (ahead >= aheadMost) return;
      ahead += 1;
      const ended = () => void (ahead -= 1);
      signatures(message.id, () => sign(message, headerSection, message.bodyHash)).then(ended, ended);
    },
    ascii: (message) => renderings(message.id, () => render(message)),
    open: (message) => store.openContent(message.content),
  };
}

/** What was made for a message is made once, unless it is old, was null or failed. */
function createKept<T>(
  clock: Pick<Clock, "monotonic">,
  most: number,
): (id: string, make: () => Promise<T | null>) => Promise<T | null> {
  const made = new Map<string, { madeAt: number; value: Promise<T | null> }>();
  return (id, make) => {
    const before = made.get(id);
    if (before && clock.monotonic() - before.madeAt < signatureKeptMs) return before.value;
    const value = make();
    const forget = () => made.delete(id);
    value.then((result) => result === null && forget(), forget);
    made.set(id, { madeAt: clock.monotonic(), value });
    for (const oldest of made.keys()) {
      if (made.size <= most) break;
      made.delete(oldest);
    }
    return value;
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
