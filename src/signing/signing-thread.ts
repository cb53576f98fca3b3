// The code of a signing thread: takes headers, returns DKIM-Signature fields (mail/dkim.ts).
import { parentPort } from "node:worker_threads";
import { createSigner } from "../mail/dkim.ts";
import type { SigningKey } from "../mail/dkim.ts";

/** Octets as latin1 and digests as base64: text crosses threads at less cost than views of larger buffers. */
export interface SignCall {
  section: string;
  bodyHash: string;
  keys: SigningKey[];
  signedAt: number;
}

/** In the order of the calls: the fields as latin1, or what was thrown. */
export type SignReport = ({ fields: string } | { error: string })[];

const port = parentPort;
if (!port) throw new Error("signing-thread is started by signing.ts, not by hand");
const sign = createSigner();

function signOne({ section, bodyHash, keys, signedAt }: SignCall): SignReport[number] {
  try {
    const headerSection = Buffer.from(section, "latin1");
    const fields = sign({ headerSection, bodyHash: Buffer.from(bodyHash, "base64"), keys, signedAt });
    return { fields: fields.toString("latin1") };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

port.on("message", (calls: SignCall[]) => {
  const report: SignReport = calls.map(signOne);
  port.postMessage(report);
});
