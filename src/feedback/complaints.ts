// What proves a complaint: a signed return path in the report, which names its recipient, or a message token
// (mail/message-token.ts), which all recipients of the message share; the recipient is then the one that the report
// names of that message, or the only one. An id of ours without its MAC proves nothing. A return path suppresses its
// recipient; a token does so only where the message had one recipient and the report comes from a known loop
// (loops.ts). The abuse guard counts what a known loop reports and one recipient must have meant.
import type { Complaint } from "../mail/arf.ts";
import type { Mac } from "../mail/mac.ts";
import { readReturnPathLocal } from "../mail/return-path.ts";
import type { Original, Returned } from "../mail/returned.ts";
import type { Report, SentRecipient } from "../model/report.ts";
import { complaintSuppression } from "../suppressions/policy.ts";
import { canonical } from "./bounces.ts";
import type { Standing } from "./loops.ts";
import type { FeedbackDeps, Mailbox } from "./mailbox.ts";

type Deps = Pick<FeedbackDeps, "store" | "recorder" | "clock" | "tokens"> & {
  verpMac: Mac;
  /** Whether the report comes from a known loop. */
  standingOfSender(): Promise<Standing>;
};
type At = Exclude<Mailbox, { kind: "operator" | "unsubscribe" }>;

interface Proved {
  recipient: SentRecipient;
  /** The report can only be this recipient's own. */
  by: "return path" | "token of one" | "token of several";
}

/**
 * At most one report: a complaint is one recipient's about one mail. "later": who sent it decides what it does, and
 * that could not be looked up now.
 */
export async function complaintReports(
  deps: Deps,
  returned: Extract<Returned, { kind: "complaint" }>,
  at: At,
): Promise<Report[] | "later"> {
  const { complaint, original } = returned;
  const proved = await provedBy(deps, complaint, original, at);
  if (proved === null) return [];
  const { recipient, by } = proved;
  // Nothing is looked up for a report that proves nothing, or that a loop could not prove either.
  const standing = by === "token of several" ? "unknown" : await deps.standingOfSender();
  if (standing === "undecided" && by === "token of one") return "later";
  const source = (at.kind === "complaints" ? at.source : null) ?? complaint.source ?? "generic_arf";
  return [
    reportOf(deps, complaint, recipient, source, {
      suppresses: by === "return path" || standing === "known",
      confirmed: standing === "known",
    }),
  ];
}

async function provedBy(
  deps: Deps,
  complaint: Complaint,
  original: Original,
  at: At,
): Promise<Proved | null> {
  const paths = original.returnPaths.map((local) => readReturnPathLocal(deps.verpMac, local));
  const path = at.kind === "return_path" ? at : paths.find((keys) => keys !== null);
  if (path) {
    const sent = (await deps.store.sentMessage({ key: path.messageKey })) ?? [];
    const recipient = sent.find(({ job }) => job.key === path.recipientKey && !job.message.test);
    return recipient ? { recipient, by: "return path" } : null;
  }
  for (const token of original.tokens) {
    const id = deps.tokens.read(token);
    const sent = id === null ? [] : ((await deps.store.sentMessage({ id })) ?? []);
    if (sent[0]?.job.message.test !== false) continue;
    const named = new Set(complaint.recipients.map(canonical));
    // Providers hide the address; the only one that the mail had is still known.
    const recipient =
      sent.find(({ job }) => named.has(job.canonical)) ?? (sent.length === 1 ? sent[0] : null);
    if (recipient) return { recipient, by: sent.length === 1 ? "token of one" : "token of several" };
  }
  return null;
}

function reportOf(
  { recorder, clock }: Deps,
  complaint: Complaint,
  recipient: SentRecipient,
  source: string,
  { suppresses, confirmed }: { suppresses: boolean; confirmed: boolean },
): Report {
  const { job } = recipient;
  const event = recorder.complained(job, complaint, recipient, source, { confirmed });
  return {
    kind: "complained",
    recipientKey: job.key,
    messageKey: job.message.key,
    at: clock.now(),
    smtpCode: null,
    smtpStatus: null,
    smtpResponse: null,
    event,
    suppression: suppresses ? complaintSuppression(job, source, event.id) : null,
  };
}
