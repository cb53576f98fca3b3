// GET /v1/messages/{id}/waits, on the operator's socket only, since limits are shared by all accounts: what each recipient
// that is not final waits for, and until when. Which rules there are: model/queue.ts.
import { z } from "zod";
import { isoTime, isoTimeOrNull } from "../../clock.ts";
import { parseAddress } from "../../mail/address.ts";
import type { Account } from "../../model/account.ts";
import type { MessageRecord } from "../../model/message.ts";
import { waitRules, type WaitRule } from "../../model/queue.ts";
import { finalStates, recipientStates, type RecipientRecord } from "../../model/recipient.ts";
import { capWaitEnd } from "../../pools/warmup.ts";
import { queueNameOf, sandboxQueue } from "../../queue/queue-name.ts";
import type { QueueWait } from "../../queue/runner.ts";
import { emailAddress, timestamp } from "../../value-schemas.ts";
import type { RouteDeps } from "../deps.ts";
import { json, route, type Route } from "../route.ts";
import { messageOf, messageRead } from "./messages.ts";

const waitSchema = z
  .strictObject({
    recipient: emailAddress,
    status: z.enum(recipientStates),
    rule: z.enum(waitRules).describe("What it waits for."),
    until: timestamp.nullable().describe("When that ends, as far as it is known."),
    group: z.string().nullable().describe("Whose limits hold: svc limits show."),
    why: z.string().describe("The same in words."),
  })
  .meta({ id: "MessageWait" });

const waitsSchema = z.strictObject({ data: z.array(waitSchema) }).meta({ id: "MessageWaitList" });

interface Wait extends QueueWait {
  until: number | null;
}

export function messageWaitRoutes({ store, queue, config, clock }: RouteDeps): Route[] {
  const queueNameFor = ({ test, accountKey, ipPool }: MessageRecord, domain: string): string =>
    test || config.dev ? sandboxQueue : queueNameOf(accountKey, ipPool, domain);

  /** When the last attempt of each deferred recipient said that the next is due. */
  const decidedNext = async (
    message: MessageRecord,
    account: Account,
  ): Promise<Map<string, number | null>> => {
    if (!message.recipients.some(({ state }) => state === "deferred")) return new Map();
    const attempts = await store.attempts(account.key, message.id);
    return new Map(
      attempts
        .toSorted((a, b) => a.attempt - b.attempt)
        .map(({ recipient, nextAttemptAt }) => [recipient, nextAttemptAt]),
    );
  };

  const waitOf = (
    message: MessageRecord,
    account: Account,
    recipient: RecipientRecord,
    decided: number | null,
  ): Wait => {
    const now = clock.now();
    const { state, nextAttemptAt, to } = recipient;
    const none = { ms: null, group: null, limiters: [] };
    if (nextAttemptAt !== null && nextAttemptAt > now) {
      const before = state === "scheduled" && (message.sendAt ?? 0) > now;
      // Nothing else puts off what was not tried, or later than its attempt decided.
      const put = decided !== nextAttemptAt ? "warmup" : "retry";
      return { ...none, rule: before ? "send_at" : put, until: nextAttemptAt };
    }
    const claimed = state === "sending";
    if (account.pausedAt !== null && !claimed) return { ...none, rule: "account", until: null };
    if (nextAttemptAt === null && !claimed) return { ...none, rule: "hold", until: null };
    const address = parseAddress(to);
    const queueName = queueNameFor(message, address.ok ? address.value.ascii : "");
    const wait = queue.waitOf(queueName, claimed, (job) => job.message.id === message.id && job.to === to);
    return { ...wait, until: wait.ms === null ? null : now + wait.ms };
  };

  return [
    route({
      ...messageRead,
      method: "GET",
      path: "/v1/messages/{id}/waits",
      summary: "List what the recipients of a message wait for",
      listeners: "admin",
      lastModifiedFrom: "always",
      answers: { 200: waitsSchema },
      refuses: ["resource_not_found"],
      async handle(call) {
        const message = await messageOf(store, call);
        const decided = await decidedNext(message, call.account);
        const data = message.recipients
          .filter(({ state }) => !finalStates.includes(state))
          .map((recipient): z.input<typeof waitSchema> => {
            const wait = waitOf(message, call.account, recipient, decided.get(recipient.to) ?? null);
            return {
              recipient: recipient.to,
              status: recipient.state,
              rule: wait.rule,
              until: isoTimeOrNull(wait.until),
              group: wait.group,
              why: whyOf(wait, message, call.account, config.outbound.maxAgeMs),
            };
          });
        return json(200, { data });
      },
    }),
  ];
}

function whyOf(
  { rule, until, group, limiters }: Wait,
  message: MessageRecord,
  account: Account,
  maxAgeMs: number,
): string {
  const at = until === null ? "" : ` at ${isoTime(until)}`;
  const running = limiters.reduce((sum, { taken }) => sum + taken, 0);
  const slowed = limiters.find((limiter) => limiter.slowed);
  // Time for which it was held is not known here, and comes on top.
  const overCapAt = Math.max(until ?? 0, capWaitEnd(message.sendAt ?? message.createdAt, maxAgeMs));
  const slow = slowed?.slowed
    ? `; slowed to ${Math.round(slowed.factor * 100)} % since ${isoTime(slowed.slowed.since)} by the reply: ${slowed.slowed.reply}`
    : "";
  const words: Record<WaitRule, string> = {
    send_at: `it is to be sent${at}`,
    retry: `its next attempt is due${at}`,
    warmup: `every address of the pool ${message.ipPool} has sent there what its warm-up allows today (svc ips warmup status); it is looked at again${at}, and goes over the cap at ${isoTime(overCapAt)}`,
    account: `sending of the account ${account.name} is paused${account.pauseReason === null ? "" : `: ${account.pauseReason}`}`,
    hold: "it is held until it is released: svc queue release",
    pause: "its domain, provider or pool is paused: svc queue pauses",
    store: "outcomes cannot be written to the disk, and until they are nothing new is begun",
    route: "the DNS is asked for the mail hosts of its domain",
    pool: `no address of the pool ${message.ipPool} can be used`,
    connections: `${running} attempts run at ${group}, as many as may${slow}`,
    rate: `the rate at ${group} allows the next message${at}${slow}`,
    attempts: "all slots for attempts, or the account's share of them, are in use",
    turn: `it is due, and mail before it is tried first${slow}`,
    attempt: "an attempt runs now",
  };
  return words[rule];
}
