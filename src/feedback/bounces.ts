// A bounce message to a return path. Every recipient has its own return path, so the bounce applies to that recipient
// only, whatever others the report names: a sender who knows one return path can bounce only its recipient. If a report
// names only others, the address itself accepted the mail and forwarding from it failed: that is a bounce, but no
// evidence against the address.
import { reportedReply } from "../events/data-text.ts";
import { canonicalAddress, parseAddress } from "../mail/address.ts";
import type { Failure } from "../mail/failure.ts";
import type { Mac } from "../mail/mac.ts";
import { readReturnPathLocal } from "../mail/return-path.ts";
import type { Report, SentRecipient } from "../model/report.ts";
import { bounceEntry, failureSuppresses } from "../suppressions/policy.ts";
import type { FeedbackDeps } from "./mailbox.ts";

type Deps = Pick<FeedbackDeps, "store" | "recorder" | "clock">;

/** A failure with what the judgement needs, made once a mail: a hostile one has thousands of names. */
export interface NamedFailure {
  failure: Failure;
  /** The recipients that it names, in the canonical form of the store. */
  names: ReadonlySet<string>;
  /** It names a return path of ours: a bounce of our own bounce address, which is about no mail of ours. */
  ofReturnPath: boolean;
}

export function namedFailures(failures: readonly Failure[], verpMac: Mac): NamedFailure[] {
  return failures.map((failure) => ({
    failure,
    names: new Set(failure.recipients.map(canonical)),
    ofReturnPath: failure.recipients.some(
      (name) => readReturnPathLocal(verpMac, name.slice(0, Math.max(0, name.lastIndexOf("@")))) !== null,
    ),
  }));
}

/** At most one report, on the return path's own recipient; none where nothing in the bounce concerns him. */
export async function bounceReports(
  deps: Deps,
  failures: readonly NamedFailure[],
  path: { messageKey: number; recipientKey: number },
): Promise<Report[]> {
  const sent = await deps.store.sentMessage({ key: path.messageKey });
  const recipient = sent?.find(({ job }) => job.key === path.recipientKey);
  if (!recipient) return [];
  // The entry that names the recipient, else one that names no recipient.
  const own =
    failures.find(({ names }) => names.has(recipient.job.canonical)) ??
    failures.find(({ names }) => names.size === 0);
  if (own) return [reportOf(deps, own.failure, recipient, true)];
  const other = failures.find(({ ofReturnPath }) => !ofReturnPath);
  return other ? [reportOf(deps, other.failure, recipient, false)] : [];
}

/** In the canonical form of the store; text that is not an address matches no recipient. */
export function canonical(text: string): string {
  const parsed = parseAddress(text);
  return parsed.ok ? canonicalAddress(parsed.value) : text.toLowerCase();
}

/** `ofAddress`: false if the report names only others, and so does not count against the recipient's address. */
function reportOf(
  { recorder, clock }: Deps,
  failure: Failure,
  recipient: SentRecipient,
  ofAddress: boolean,
): Report {
  const { job } = recipient;
  const suppressed = ofAddress && failureSuppresses(failure);
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
