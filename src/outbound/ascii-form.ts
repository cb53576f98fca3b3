// The form of a message for a receiver that takes only ASCII (RFC 6152 §3), with a signature of its own.
import type { WireMessage } from "../delivery/delivery.ts";
import { convert, planConversion, type Source } from "../mail/conversion.ts";
import { BodyHasher } from "../mail/dkim.ts";
import { MailSyntaxError } from "../mail/header.ts";

/** Null: the domain that must sign is gone. */
export type Sign = (headerSection: Buffer, bodyHash: Uint8Array) => Promise<Buffer | null>;

/** Null where there is no such form (addresses, signed parts), or nobody to sign it. */
export async function asciiForm(source: Source, sign: Sign): Promise<WireMessage | null> {
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
  const signature = await sign(section ?? source.section, hasher.digest());
  return signature && { signature, sizeBytes, open: () => convert(source, plan) };
}
