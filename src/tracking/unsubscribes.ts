// A recipient that wants no more mail, by the page, by one click (RFC 8058) or by mail (RFC 2369): the suppression, and once
// a recipient the event, in one transaction. The address of a link stands in its token, so that it works when the message
// is gone. Mail of a test key, and to a simulated recipient, suppresses nobody.
import type { Clock } from "../clock.ts";
import type { Recorder } from "../events/record.ts";
import type { Log } from "../log.ts";
import { canonicalAddress, parseAddress } from "../mail/address.ts";
import { createMac } from "../mail/mac.ts";
import { unsubscribeLocal } from "../mail/return-path.ts";
import type { Job } from "../model/queued-recipient.ts";
import type { NewUnsubscribe, ReactingRecipient, UnsubscribeMethod } from "../model/reaction.ts";
import type { Store } from "../store/store.ts";
import { isSimulated, unsubscribeSuppression } from "../suppressions/policy.ts";
import type { TokenContent } from "./tokens.ts";

export interface Unsubscribes {
  /** By a link. Resolves when it is on disk; throws StoreUnavailable. */
  ofToken(of: TokenContent, method: UnsubscribeMethod): Promise<void>;
  /** Of a recipient whose message is there. */
  ofRecipient(recipient: ReactingRecipient, method: UnsubscribeMethod): Promise<void>;
}

/**
 * The `mailto:` that List-Unsubscribe names beside the page, of a recipient's own. Null for mail of a test key, which leaves
 * no machine, and where `hostname` is null: nothing takes mail there. `secret`: that of the return paths.
 */
export function unsubscribeMailtos(
  secret: Uint8Array,
  hostname: string | null,
): (job: Pick<Job, "key" | "message">) => string | null {
  const mac = createMac(secret);
  return ({ key: recipientKey, message }) => {
    if (hostname === null || message.test) return null;
    const local = unsubscribeLocal(mac, message.key, recipientKey);
    return `mailto:${local}@${hostname.toLowerCase()}?subject=unsubscribe`;
  };
}

export interface UnsubscribesDeps {
  store: Pick<Store, "reactingRecipient" | "recordUnsubscribe">;
  recorder: Pick<Recorder, "ofRecipient">;
  clock: Clock;
  log: Log;
}

export function createUnsubscribes({ store, recorder, clock, log }: UnsubscribesDeps): Unsubscribes {
  const record = async (unsubscribe: NewUnsubscribe, method: UnsubscribeMethod): Promise<void> => {
    const result = await store.recordUnsubscribe(unsubscribe);
    log.info({ message_id: unsubscribe.suppression?.messageId, method, result }, "a recipient unsubscribed");
  };
  const ofRecipient = (
    { job, sendingIp, provider }: ReactingRecipient,
    method: UnsubscribeMethod,
  ): Promise<void> => {
    const { message, canonical, to, key } = job;
    const at = clock.now();
    const event = recorder.ofRecipient("message.unsubscribed", job, at, { method }, { sendingIp, provider });
    return record(
      {
        accountKey: message.accountKey,
        at,
        recipient: { recipientKey: key, messageKey: message.key, event },
        suppression: isSimulated(job)
          ? null
          : unsubscribeSuppression({
              accountKey: message.accountKey,
              canonical,
              email: to,
              messageId: message.id,
              eventId: event.id,
            }),
      },
      method,
    );
  };

  return {
    ofRecipient,
    async ofToken(of, method) {
      const found = await store.reactingRecipient({ id: of.messageId }, of.recipientKey);
      if (found?.job.message.accountKey === of.accountKey) return ofRecipient(found, method);
      const parsed = parseAddress(of.email);
      if (of.test || !parsed.ok) return;
      const suppression = unsubscribeSuppression({
        accountKey: of.accountKey,
        canonical: canonicalAddress(parsed.value),
        email: of.email,
        messageId: of.messageId,
        eventId: null,
      });
      const { accountKey } = of;
      return record({ accountKey, at: clock.now(), recipient: null, suppression }, method);
    },
  };
}
