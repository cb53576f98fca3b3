// /v1/recipients, on the operator's socket only: one person out of what an account keeps, but for its suppressions.
import { z } from "zod";
import type { Forgotten } from "../../model/erasure.ts";
import { canonicalEmail } from "../fields.ts";
import { json, route, type Route } from "../route.ts";
import type { RouteDeps } from "../deps.ts";
import { forgottenShape } from "../shapes/recipients.ts";

/** An answer comes well before a client has waited too long; what is left is asked for again. */
const longestMs = 10_000;

/** Messages that are named in an answer. */
const mostNamed = 100;

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
      summary: "Removes a person from all that the account keeps, but for the suppression list",
      answers: { 200: forgottenShape },
      act: "recipients.forget",
      scopes: ["admin"],
      bucket: "default",
      doors: "admin",
      query: z.object({}),
      body: z.strictObject({ email: canonicalEmail }),
      async handle({ account, body: { email } }) {
        const { underWay, contentKept, hasMore, ...counts } = await forget(account.key, email);
        log.info({ account: account.id, ...counts }, "removed a person");
        const body: z.input<typeof forgottenShape> = {
          email,
          ...counts,
          under_way: underWay,
          content_kept: contentKept.length,
          content_kept_in: contentKept.slice(0, mostNamed),
          has_more: hasMore,
        };
        return json(200, body);
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
