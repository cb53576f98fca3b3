// A bounce that came back to a return path. Every recipient has a return path of his own, so it speaks for that
// recipient and for nobody else, whatever others the report names: whoever knows one return path can bounce nobody but
// its recipient. Where a report names only others, the address itself took the mail and what it forwards to failed:
// that is a bounce, and says nothing about the address.
import type { KeyObject } from "node:crypto";
import { reportedReply } from "../events/data-text.ts";
import { canonicalAddress, parseAddress } from "../mail/address.ts";
import type { Failure } from "../mail/failure.ts";
import { readReturnPathLocal } from "../mail/return-path.ts";
import type { Report, SentRecipient } from "../model/report.ts";
import { bounceEntry, failureSuppresses } from "../suppressions/policy.ts";
import type { FeedbackDeps } from "./mailbox.ts";

type Deps = Pick<FeedbackDeps, "store" | "recorder" | "clock">;

/** A failure with what the judgement needs, made once a mail: a hostile one holds thousands of names. */
export interface NamedFailure {
  failure: Failure;
  /** Whom it names, as the store keeps recipients. */
  names: ReadonlySet<string>;
  /** It names a return path of ours: a bounce of our own bounce address, which is about no mail of ours. */
  ofReturnPath: boolean;
}

export function namedFailures(failures: readonly Failure[], verpKey: KeyObject): NamedFailure[] {
  return failures.map((failure) => ({
    failure,
    names: new Set(failure.recipients.map(canonical)),
    ofReturnPath: failure.recipients.some(
      (name) => readReturnPathLocal(verpKey, name.slice(0, Math.max(0, name.lastIndexOf("@")))) !== null,
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
  // The entry that names him, else one that names nobody.
  const own =
    failures.find(({ names }) => names.has(recipient.job.canonical)) ??
    failures.find(({ names }) => names.size === 0);
  if (own) return [reportOf(deps, own.failure, recipient, true)];
  const other = failures.find(({ ofReturnPath }) => !ofReturnPath);
  return other ? [reportOf(deps, other.failure, recipient, false)] : [];
}

/** As the store keeps recipients; what is no address is nobody's. */
export function canonical(text: string): string {
  const parsed = parseAddress(text);
  return parsed.ok ? canonicalAddress(parsed.value) : text.toLowerCase();
}

/** `ofAddress`: false where it names only others, and so says nothing about the recipient's address. */
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
