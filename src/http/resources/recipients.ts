// /v1/recipients, on the operator's socket only: erases a recipient from all that an account keeps but its suppression
// list.
import { z } from "zod";
import type { Forgotten } from "../../model/erasure.ts";
import { count, emailAddress, idOf } from "../../value-schemas.ts";
import { viewOf } from "../codec.ts";
import type { RouteDeps } from "../deps.ts";
import { canonicalEmail } from "../fields.ts";
import { json, route, type Route } from "../route.ts";

export const forgottenSchema = z
  .strictObject({
    email: emailAddress,
    recipients: count.describe("Recipient records of the address, attempts included."),
    canceled: count.describe("How many of them were still to be sent."),
    messages: count.describe("Messages to this address only; they were removed entirely."),
    content: count.describe("Contents removed, including those of messages to others."),
    events: count,
    inbox: count,
    under_way: count.describe(
      "Recipients that are being sent right now and were not removed; repeat the request in a minute.",
    ),
    content_kept: count.describe(
      "Contents that are kept for recipients who still wait; they may show the address until retention deletes them.",
    ),
    content_kept_in: z.array(idOf("msg")).describe("The first hundred of these messages."),
    has_more: z.boolean().describe("More data is left; repeat the request."),
  })
  .meta({ id: "Forgotten" });

/** Messages that are named in an answer. */
const mostNamed = 100;

interface Erased extends Forgotten {
  email: string;
  hasMore: boolean;
}

const forgottenView = viewOf(forgottenSchema, {
  content_kept: ({ contentKept }: Erased) => contentKept.length,
  content_kept_in: ({ contentKept }: Erased) => contentKept.slice(0, mostNamed),
});

/** An answer comes well before a client has waited too long; what is left is asked for again. */
const longestMs = 10_000;

export function recipientRoutes({ store, clock, log }: RouteDeps): Route[] {
  /** Pieces until there is no more, or the time is over. */
  const forget = async (accountKey: number, canonical: string) => {
    const began = clock.monotonic();
    const { next: first, ...sum } = await store.forgetRecipient(accountKey, canonical, 0);
    let next = first;
    while (next !== null && clock.monotonic() - began < longestMs) {
      const { next: following, ...piece } = await store.forgetRecipient(accountKey, canonical, next);
      add(sum, piece);
      next = following;
    }
    return { ...sum, hasMore: next !== null };
  };

  return [
    route({
      method: "POST",
      path: "/v1/recipients/forget",
      summary: "Erase a recipient from all stored data but the suppression list",
      answers: { 200: forgottenSchema },
      act: "recipients.forget",
      scopes: ["admin"],
      bucket: "default",
      listeners: "admin",
      query: z.object({}),
      body: z.strictObject({ email: canonicalEmail }),
      async handle({ account, body: { email } }) {
        const erased = await forget(account.key, email);
        const { recipients, canceled, messages, content, events, inbox } = erased;
        log.info(
          { account: account.id, recipients, canceled, messages, content, events, inbox },
          "erased a recipient",
        );
        return json(200, forgottenView({ ...erased, email }));
      },
    }),
  ];
}

function add(sum: Forgotten, piece: Forgotten): void {
  sum.recipients += piece.recipients;
  sum.canceled += piece.canceled;
  sum.messages += piece.messages;
  sum.content += piece.content;
  sum.events += piece.events;
  sum.inbox += piece.inbox;
  sum.underWay += piece.underWay;
  sum.contentKept.push(...piece.contentKept);
}
