// /v1/inbox, on the operator's socket only: what a test key or `serve --dev` caught in place of sending
// it. The bytes of a caught mail are its message's content.
import { z } from "zod";
import { isoTime } from "../../clock.ts";
import type { InboxMail } from "../../model/inbox.ts";
import { pageFields } from "../fields.ts";
import { listBody, pageRequest } from "../paging.ts";
import { json, route, type Route } from "../route.ts";
import type { RouteDeps } from "../deps.ts";
import { inboxClearedShape, inboxShape, type mailShape } from "../shapes/inbox.ts";

const common = {
  path: "/v1/inbox",
  scopes: ["admin"],
  bucket: "default",
  doors: "admin",
  body: null,
} as const;

export function inboxRoutes({ store }: RouteDeps): Route[] {
  return [
    route({
      ...common,
      method: "GET",
      summary: "Lists the mail that was caught",
      answers: { 200: inboxShape },
      changes: ["inbox"],
      query: z.object(pageFields()),
      async handle({ account, query }) {
        const page = await store.listInbox(account.key, pageRequest(query));
        return json(200, listBody(page, mailBody));
      },
    }),
    route({
      ...common,
      method: "DELETE",
      summary: "Empties the inbox",
      answers: { 200: inboxClearedShape },
      query: z.object({}),
      handle: ({ account, once }) =>
        once(
          (writing) => writing.clearInbox(account.key),
          (cleared) => json(200, { cleared }),
        ),
    }),
  ];
}

function mailBody(mail: InboxMail): z.input<typeof mailShape> {
  return {
    message_id: mail.messageId,
    to: mail.to,
    from: mail.from,
    subject: mail.subject,
    caught_at: isoTime(mail.caughtAt),
    size_bytes: mail.sizeBytes,
  };
}
