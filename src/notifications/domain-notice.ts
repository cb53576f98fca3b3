// The operator's mail when a DNS check changed the status of a sender domain to degraded or failed: the records that
// fail, and until when the domain sends. A domain that became verified is only logged.
import { hourMs } from "../clock.ts";
import { graceMs } from "../domains/check.ts";
import type { Log } from "../log.ts";
import type { DomainStatus, SenderDomain } from "../model/domain.ts";
import type { Notices } from "./notices.ts";

export async function notifyDomainStatus(
  notices: Pick<Notices, "notify">,
  log: Log,
  domain: SenderDomain,
  before: DomainStatus,
): Promise<void> {
  const { name, status } = domain;
  const failing = domain.records.filter((record) => record.required && record.status !== "ok");
  const issues = failing.map(({ issue }) => issue);
  const fields = { domain: name, before, status, failing: issues };
  if (status === "verified") return log.info(fields, "a sender domain is verified");
  log.warn(fields, "a sender domain fails its DNS checks");
  const what =
    status === "degraded"
      ? `Its mail is accepted for ${graceMs / hourMs} hours; after that, mail from it is refused.`
      : "Mail from it is refused until the records are correct.";
  await notices.notify(
    `domain:${domain.id}:${status}`,
    `the domain ${name} is ${status}: its DNS records are wrong`,
    `The DNS records of the sender domain ${name} were checked and are missing or wrong. ${what}\n\n` +
      `${failing.map((record) => `- ${record.issue ?? record.name}\n`).join("")}\n` +
      `What to do: publish what is missing (svc domains records ${name}), then run: svc domains verify ${name}\n`,
  );
}
