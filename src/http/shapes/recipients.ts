// What /v1/recipients answers.
import { z } from "zod";
import { count, emailAddress, idOf } from "./common.ts";

export const forgottenShape = z
  .strictObject({
    email: emailAddress,
    recipients: count.describe("Records of it as a recipient of a message, attempts included."),
    canceled: count.describe("Of those, how many were still to be sent."),
    messages: count.describe("That were to nobody else, and were removed whole."),
    content: count.describe("Contents removed, those of messages to others among them."),
    events: count,
    inbox: count,
    under_way: count.describe("Left, since they are being sent right now: ask again in a minute."),
    content_kept: count.describe(
      "Of messages that others still wait for: it may show the address until it is too old.",
    ),
    content_kept_in: z.array(idOf("msg")).describe("The first hundred of these messages."),
    has_more: z.boolean().describe("There is more to remove: ask again."),
  })
  .meta({ id: "Forgotten" });
