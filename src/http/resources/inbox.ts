// /v1/inbox, on the operator's socket only: mail that a test key or `serve --dev` caught instead of sending it. The
// bytes of a caught mail are the content of its message.
import { z } from "zod";
import { count, emailAddress, idOf, timestamp } from "../../value-schemas.ts";
import { viewOf } from "../codec.ts";
import type { RouteDeps } from "../deps.ts";
import { pageFields } from "../fields.ts";
import { listBody, pageRequest } from "../paging.ts";
import { json, route, type Route } from "../route.ts";
import { list } from "../view-fields.ts";

export const mailSchema = z
  .strictObject({
    message_id: idOf("msg"),
    to: emailAddress,
    from: emailAddress,
    subject: z.string(),
    caught_at: timestamp,
    size_bytes: count,
  })
  .meta({ id: "CaughtMail" });

export const inboxSchema = list(mailSchema);
export const inboxClearedSchema = z.strictObject({ cleared: count }).meta({ id: "InboxCleared" });

const mailView = viewOf(mailSchema);

const common = {
  path: "/v1/inbox",
  scopes: ["admin"],
  bucket: "default",
  listeners: "admin",
  body: null,
} as const;

export function inboxRoutes({ store }: RouteDeps): Route[] {
  return [
    route({
      ...common,
      method: "GET",
      summary: "List the messages in the local inbox",
      answers: { 200: inboxSchema },
      lastModifiedFrom: ["inbox"],
      query: z.object(pageFields()),
      async handle({ account, query }) {
        const page = await store.listInbox(account.key, pageRequest(query));
        return json(200, listBody(page, mailView));
      },
    }),
    route({
      ...common,
      method: "DELETE",
      summary: "Clear the local inbox",
      answers: { 200: inboxClearedSchema },
      query: z.object({}),
      handle: ({ account, idempotent }) =>
        idempotent(
          (writing) => writing.clearInbox(account.key),
          (cleared) => json(200, { cleared }),
        ),
    }),
  ];
}
