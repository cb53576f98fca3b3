// A bounce that came back to a return path: which recipients of its message it is about, and what that changes.
// Everybody else that it names is ignored, so that a report, true or forged, reaches nobody whom we did not write to
// in that very message.
import { reportedReply } from "../events/record.ts";
import { canonicalAddress, parseAddress } from "../mail/address.ts";
import type { Failure } from "../mail/failure.ts";
import type { Report, SentRecipient } from "../store/store.ts";
import { bounceEntry, failureSuppresses } from "../suppressions/policy.ts";
import type { FeedbackDeps } from "./mailbox.ts";

type Deps = Pick<FeedbackDeps, "store" | "recorder" | "clock">;

/** One report a recipient that failed; none where the bounce speaks of others alone. */
export async function bounceReports(
  deps: Deps,
  failures: readonly Failure[],
  path: { messageKey: number; recipientKey: number },
): Promise<Report[]> {
  const sent = (await deps.store.sentMessage({ key: path.messageKey })) ?? [];
  const found = new Map<number, Report>();
  for (const failure of failures) {
    const recipient = recipientOf(failure, sent, path.recipientKey);
    if (!recipient || found.has(recipient.job.key)) continue;
    found.set(recipient.job.key, reportOf(deps, failure, recipient));
  }
  return [...found.values()];
}

/** Who is named; the return path's own recipient where nobody is. */
function recipientOf(
  failure: Failure,
  sent: readonly SentRecipient[],
  recipientKey: number,
): SentRecipient | undefined {
  if (failure.recipients.length === 0) return sent.find(({ job }) => job.key === recipientKey);
  const named = new Set(failure.recipients.map(canonical));
  const own = sent.filter(({ job }) => named.has(job.canonical));
  return own.find(({ job }) => job.key === recipientKey) ?? own[0];
}

/** As the store keeps recipients; what is no address is nobody's. */
export function canonical(text: string): string {
  const parsed = parseAddress(text);
  return parsed.ok ? canonicalAddress(parsed.value) : text.toLowerCase();
}

function reportOf({ recorder, clock }: Deps, failure: Failure, recipient: SentRecipient): Report {
  const { job } = recipient;
  const suppressed = failureSuppresses(failure);
  const event = recorder.reported(job, failure, recipient, { suppressed });
  const reply = reportedReply(failure);
  return {
    kind: "bounced",
    recipientKey: job.key,
    messageKey: job.message.key,
    at: clock.now(),
    smtpCode: reply.code,
    smtpStatus: reply.status,
    smtpResponse: reply.text,
    event,
    suppression: suppressed ? bounceEntry(job, reply, event.id) : null,
  };
}
