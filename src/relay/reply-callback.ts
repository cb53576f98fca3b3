// One reply per command: a handler's result or its error, passed to smtp-server exactly once. An error that is neither
// a reply nor a refusal is a bug: it is logged with the session and answered with a temporary failure (RFC 5321 §4.2.1).
import type { SMTPServerSession } from "smtp-server";
import type { Log } from "../log.ts";
import { replyTo, SmtpReply } from "./replies.ts";

export interface Answering {
  /** The reply to an error. */
  explain(error: unknown, session: SMTPServerSession): SmtpReply;
  answer<T>(
    work: Promise<T>,
    session: SMTPServerSession,
    callback: (error: Error | null, result?: T) => void,
  ): void;
}

export function createAnswering(log: Log): Answering {
  const explain: Answering["explain"] = (error, session) => {
    const reply = replyTo(error);
    if (reply) return reply;
    log.error({ err: error, session: session.id }, "an SMTP command failed by a fault of this program");
    return new SmtpReply(451, "4.3.0", `Internal error; report ${session.id} to the operator`);
  };
  return {
    explain,
    answer(work, session, callback) {
      work
        .then(
          (result) => callback(null, result),
          (error: unknown) => callback(explain(error, session)),
        )
        .catch((error: unknown) =>
          log.error({ err: error, session: session.id }, "an SMTP reply could not be sent"),
        );
    },
  };
}
