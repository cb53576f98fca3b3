// A complaint finds its message by what only our mail holds: a signed return path anywhere in the report, or the id
// of the message in the returned part (its Message-ID, the Received field that we wrote). Ids carry 80 random bits,
// so that who knows one has seen the mail. Whom it is about is told by the return path, else by the address that the
// report names, else by there being one recipient only; a report that leaves it open changes nothing.
import type { Complaint } from "../mail/arf.ts";
import type { Original } from "../mail/returned.ts";
import { readReturnPathLocal } from "../mail/return-path.ts";
import { isId } from "../ids.ts";
import type { Report, SentRecipient } from "../store/store.ts";
import { complaintSuppression } from "../suppressions/policy.ts";
import { canonical } from "./bounces.ts";
import type { FeedbackDeps, Mailbox } from "./mailbox.ts";

type Deps = Pick<FeedbackDeps, "store" | "recorder" | "clock" | "verpSecret" | "config">;
type At = Exclude<Mailbox, { kind: "operator" }>;

/** At most one report: a complaint is one recipient's about one mail. */
export async function complaintReports(
  deps: Deps,
  { complaint, original }: { complaint: Complaint; original: Original },
  at: At,
): Promise<Report[]> {
  const found = await sentTo(deps, complaint, original, at);
  if (found.length === 0) return [];
  const source = (at.kind === "complaints" ? at.source : null) ?? complaint.source ?? "generic_arf";
  return found.map((recipient) => reportOf(deps, complaint, recipient, source));
}

async function sentTo(
  deps: Deps,
  complaint: Complaint,
  original: Original,
  at: At,
): Promise<SentRecipient[]> {
  const paths = original.returnPaths.map((local) => readReturnPathLocal(deps.verpSecret, local));
  const path = at.kind === "return_path" ? at : paths.find((keys) => keys !== null);
  if (path) {
    const sent = (await deps.store.sentMessage({ key: path.messageKey })) ?? [];
    return sent.filter(({ job }) => job.key === path.recipientKey && !job.message.test);
  }
  for (const id of messageIds(original, deps.config.hostname)) {
    const sent = ((await deps.store.sentMessage({ id })) ?? []).filter(({ job }) => !job.message.test);
    const named = new Set(complaint.recipients.map(canonical));
    const own = sent.filter(({ job }) => named.has(job.canonical));
    if (own.length > 0) return own;
    // Providers hide the address; the only one that the mail had is still known.
    if (sent.length === 1) return sent;
  }
  return [];
}

/** `msg_…` of the returned part: `<ulid@hostname>`, or as it stands in our Received field. */
function messageIds(original: Original, hostname: string): string[] {
  const suffix = `@${hostname.toLowerCase()}>`;
  const made = original.messageIds
    .map((id) => id.toLowerCase())
    .filter((id) => id.endsWith(suffix))
    .map((id) => `msg_${id.slice(1, -suffix.length)}`);
  return [...new Set([...made, ...original.traceIds])].filter((id) => isId("msg", id));
}

function reportOf(
  { recorder, clock }: Deps,
  complaint: Complaint,
  recipient: SentRecipient,
  source: string,
): Report {
  const { job } = recipient;
  const event = recorder.complained(job, complaint, recipient, source);
  return {
    kind: "complained",
    recipientKey: job.key,
    messageKey: job.message.key,
    at: clock.now(),
    smtpCode: null,
    smtpStatus: null,
    smtpResponse: null,
    event,
    suppression: complaintSuppression(job, source, event.id),
  };
}
