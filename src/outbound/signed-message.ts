// What goes over the wire: a message's stored bytes with its DKIM signatures on top. Signed while it is on its way to
// the disk or when it becomes due, once a message and kept for its other recipients and the next tries. For a receiver that
// takes only ASCII a rendering of its own is made and signed, when one is met (RFC 6152 §3). A tracked message has a
// copy for each recipient instead (tracked-copies.ts).
import type { Clock } from "../clock.ts";
import type { WireMessage } from "../delivery/delivery.ts";
import type { SignHeader } from "../mail/dkim.ts";
import type { Job, QueuedMessage, Unsigned } from "../model/queued-recipient.ts";
import type { Store } from "../store/store.ts";
import { asciiForm } from "./ascii-form.ts";
import { createKept } from "./kept.ts";
import { createSigningDomains } from "./signing-domains.ts";
import { createTrackedCopies, type TrackedCopiesDeps } from "./tracked-copies.ts";

/** A recipient's message, ready to be sent. */
export interface SignedMessage {
  wire: WireMessage;
  /** The message in ASCII alone, which reads the same; null where there is no such form (addresses, signed parts). */
  ascii(): Promise<WireMessage | null>;
}

export interface SignedMessages {
  /** What this recipient gets; null where the domain that must sign is no longer there. */
  of(job: Pick<Job, "key" | "to" | "message">): Promise<SignedMessage | null>;
  /** Begins to sign a message that is on its way to the disk, where few are begun; what fails is made by the attempt. */
  signAhead(message: Unsigned, headerSection: Buffer): void;
}

export interface SignedMessagesDeps {
  store: Pick<Store, "domainByName" | "openContent">;
  signHeader: SignHeader;
  clock: Clock;
  /** False: nothing is signed here, a smart host does it. */
  sign: boolean;
  tokens: TrackedCopiesDeps["tokens"];
  unsubscribeMailto: TrackedCopiesDeps["unsubscribeMailto"];
  /** Where tracked links lead for a domain without a tracking name. */
  publicUrl: string;
  log: TrackedCopiesDeps["log"];
}

const signaturesKept = 2000;
/** Begun at once for mail that may still be refused: no more, or refusals would stand in the way of what was accepted. */
const aheadMost = 64;
const renderingsKept = 100;

export function createSignedMessages({
  store,
  signHeader,
  clock,
  sign: signs,
  tokens,
  unsubscribeMailto,
  publicUrl,
  log,
}: SignedMessagesDeps): SignedMessages {
  const domainOf = createSigningDomains(store, clock, publicUrl);

  /** Null: the domain that must sign is gone. */
  const sign = async (
    { accountKey, signingDomain }: Unsigned,
    headerSection: Buffer,
    bodyHash: Uint8Array,
  ): Promise<Buffer | null> => {
    if (!signs || signingDomain === null) return Buffer.alloc(0);
    const { keys } = await domainOf(accountKey, signingDomain);
    if (keys.length === 0) return null;
    return signHeader({ headerSection, bodyHash, keys, signedAt: clock.now() });
  };
  const sectionOf = ({ content, headerLength }: QueuedMessage): Promise<Buffer> =>
    firstBytes(store.openContent(content), headerLength);
  const copies = createTrackedCopies({
    store,
    domainOf,
    sign,
    sectionOf,
    tokens,
    unsubscribeMailto,
    clock,
    log,
  });

  let ahead = 0;
  const signatures = createKept<Buffer>(clock, signaturesKept);
  const renderings = createKept<WireMessage>(clock, renderingsKept);

  const signatureOf = (message: QueuedMessage): Promise<Buffer | null> =>
    signatures(message.id, async () => {
      if (!signs || message.signingDomain === null) return Buffer.alloc(0);
      return sign(message, await sectionOf(message), message.bodyHash);
    });
  const render = async (message: QueuedMessage): Promise<WireMessage | null> => {
    const { content, headerLength } = message;
    const source = {
      section: await sectionOf(message),
      body: () => store.openContent(content, headerLength),
    };
    return asciiForm(source, (section, bodyHash) => sign(message, section, bodyHash));
  };
  /** The same octets for all recipients. */
  const shared = async (message: QueuedMessage): Promise<SignedMessage | null> => {
    const signature = await signatureOf(message);
    return (
      signature && {
        wire: {
          signature,
          sizeBytes: message.content.sizeBytes,
          open: () => store.openContent(message.content),
        },
        ascii: () => renderings(message.id, () => render(message)),
      }
    );
  };

  return {
    async of(job) {
      const { message } = job;
      if (message.tracking === null) return shared(message);
      const copy = await copies(job, message.tracking);
      return copy === "same" ? shared(message) : copy;
    },
    signAhead(message, headerSection) {
      if (ahead >= aheadMost || message.tracking !== null) return;
      ahead += 1;
      const ended = () => void (ahead -= 1);
      signatures(message.id, () => sign(message, headerSection, message.bodyHash)).then(ended, ended);
    },
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
