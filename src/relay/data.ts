// The DATA of one mail as submission reads it: chunks with back-pressure, and an error instead of an end
// where the mail did not come in full, is too large, or the relay is shutting down. The rest of a
// refused mail is read and discarded, so that the reply comes where the client expects it: after the dot.
import { once } from "node:events";
import { MailTooLarge } from "../mail/intake.ts";
import type { MailData } from "./mail-data.ts";
import { SmtpReply } from "./replies.ts";

/** Bytes with the dot-stuffing undone. A caller that stops reading leaves the data to `drain`. */
export function readData(data: MailData, shared: { stopping: boolean }): AsyncIterable<Buffer> {
  const next = async (): Promise<IteratorResult<Buffer, undefined>> => {
    const value = await data.take();
    if (data.sizeExceeded) throw new MailTooLarge();
    if (value !== null) return { done: false, value };
    // From here on the commit may begin; a shutdown that came before it has the mail sent again.
    if (shared.stopping) throw new SmtpReply(421, "4.3.2", "Shutting down; try again later");
    return { done: true, value: undefined };
  };
  return { [Symbol.asyncIterator]: () => ({ next }) };
}

/** Reads to the end of the data and keeps nothing. */
export async function drain(data: MailData): Promise<void> {
  if (!data.readable) return;
  const over = Promise.race([once(data, "end"), once(data, "close")]);
  data.resume();
  await over;
}
