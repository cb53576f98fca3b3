// What the local inbox of test mail answers, on the operator's socket.
import { z } from "zod";
import { count, emailAddress, idOf, list, timestamp } from "./common.ts";

export const mailShape = z
  .strictObject({
    message_id: idOf("msg"),
    to: emailAddress,
    from: emailAddress,
    subject: z.string(),
    caught_at: timestamp,
    size_bytes: count,
  })
  .meta({ id: "CaughtMail" });

export const inboxShape = list(mailShape);
export const inboxClearedShape = z.strictObject({ cleared: count }).meta({ id: "InboxCleared" });
