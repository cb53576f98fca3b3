// The DATA of one mail as submission reads it: chunks with back-pressure, and an error instead of an end
// where the mail did not come in full, is too large, or the relay is shutting down. The rest of a
// refused mail is read and discarded, so that the reply comes where the client expects it: after the dot.
import type { SMTPServerDataStream } from "smtp-server";
import { MailTooLarge } from "../mail/intake.ts";
import { SmtpReply } from "./replies.ts";

/** Bytes with the dot-stuffing undone. A caller that leaves the loop leaves the stream usable for `drain`. */
export async function* readData(
  stream: SMTPServerDataStream,
  shared: { stopping: boolean },
): AsyncGenerator<Buffer, void, undefined> {
  const chunks: AsyncIterable<Buffer> = stream.iterator({ destroyOnReturn: false });
  try {
    for await (const chunk of chunks) {
      if (stream.sizeExceeded) throw new MailTooLarge();
      yield chunk;
    }
  } catch (error) {
    // smtp-server destroys the stream when the client goes away.
    throw stream.destroyed ? new SmtpReply(451, "4.4.2", "The connection ended before the data did") : error;
  }
  if (stream.sizeExceeded) throw new MailTooLarge();
  // From here on the commit may begin; a shutdown that came before it has the mail sent again.
  if (shared.stopping) throw new SmtpReply(421, "4.3.2", "Shutting down; try again later");
}

/** Reads to the end of the data and keeps nothing. */
export async function drain(stream: SMTPServerDataStream): Promise<void> {
  if (stream.readableEnded || stream.destroyed) return;
  await new Promise<void>((resolve) => {
    stream.once("end", resolve);
    stream.once("close", resolve);
    stream.resume();
  });
}
