// What simulated recipients do with a message after its delivery: open@ opens it, click@ follows a link, unsubscribe@ and
// complaint@ do as their names say. Each passes where a real one would, and none comes onto the suppression list.
import type { Clock } from "../clock.ts";
import type { Recorder } from "../events/record.ts";
import type { Log } from "../log.ts";
import type { Job } from "../model/queued-recipient.ts";
import type { ReactingRecipient } from "../model/reaction.ts";
import type { Store } from "../store/store.ts";
import type { Unsubscribes } from "../tracking/unsubscribes.ts";
import type { Visits } from "../tracking/visits.ts";
import { isSimulated, localPartOf, reactionNames, type ReactionName } from "./simulator.ts";

export interface ReactionDeps {
  store: Pick<Store, "reactingRecipient" | "settleReports">;
  recorder: Pick<Recorder, "complained">;
  visits: Pick<Visits, "note">;
  unsubscribes: Pick<Unsubscribes, "ofRecipient">;
  clock: Clock;
  log: Log;
}

/** An address that documentation may use (RFC 5737), and no name of a machine. */
const visitor = { ip: "192.0.2.1", userAgent: "Mozilla/5.0 (simulator.svc)", prefetch: false };
const followedLink = "https://simulator.svc/";

/** For each delivery, once it is on disk. */
export function createReactions({
  store,
  recorder,
  visits,
  unsubscribes,
  clock,
  log,
}: ReactionDeps): (job: Job) => void {
  const visit = (kind: "opened" | "clicked", { job }: ReactingRecipient): Promise<void> => {
    const { accountKey, id: messageId, test } = job.message;
    const of = { accountKey, messageId, recipientKey: job.key, test, target: followedLink, email: job.to };
    return visits.note({ kind, of, link: `${kind} ${job.key}`, ...visitor });
  };
  const complain = async (recipient: ReactingRecipient): Promise<void> => {
    const { job } = recipient;
    const at = clock.now();
    const complaint = {
      feedbackType: "abuse",
      type: "abuse" as const,
      source: null,
      recipients: [job.to],
      reportedAt: at,
      sendingIp: null,
    };
    const event = recorder.complained(job, complaint, recipient, "simulator", { confirmed: false });
    await store.settleReports([
      {
        kind: "complained",
        recipientKey: job.key,
        messageKey: job.message.key,
        at,
        smtpCode: null,
        smtpStatus: null,
        smtpResponse: null,
        event,
        suppression: null,
      },
    ]);
  };
  const reactions: Record<ReactionName, (recipient: ReactingRecipient) => Promise<void>> = {
    complaint: complain,
    unsubscribe: (recipient) => unsubscribes.ofRecipient(recipient, "one_click"),
    open: (recipient) => visit("opened", recipient),
    click: (recipient) => visit("clicked", recipient),
  };

  const react = async (name: ReactionName, job: Job): Promise<void> => {
    try {
      const recipient = await store.reactingRecipient({ key: job.message.key }, job.key);
      if (recipient) await reactions[name](recipient);
    } catch (error) {
      log.warn({ err: error, message: job.message.id, to: job.to }, "a simulated reaction was not recorded");
    }
  };

  return (job) => {
    if (!isSimulated(job.domain)) return;
    const name = reactionNames.find((known) => known === localPartOf(job));
    if (name) void react(name, job);
  };
}
