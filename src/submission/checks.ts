// The checks that need the store or the configuration: may this sender send, may these
// recipients be sent to. Each reports problems; what the fields say by themselves is request.ts's.
import type { Domains } from "../domains/domains.ts";
import { Refusal, type Problem } from "../errors.ts";
import type { Address } from "../mail/address.ts";
import type { SenderDomain } from "../model/domain.ts";
import { simulatorDomain } from "../model/simulator.ts";
import type { Suppression } from "../model/suppression.ts";
import type { Pools } from "../pools/pools.ts";
import { isSimulated, simulatedNames } from "../sandbox/simulator.ts";
import type { Store } from "../store/store.ts";
import { refuseProblems, sound, suppressedProblems, type Checked } from "./refusals.ts";
import type { RecipientRequest, TrackingRequest } from "./shape.ts";
import type { Sender } from "./submission.ts";

export interface CheckDeps {
  store: Pick<Store, "suppressed">;
  domains: Pick<Domains, "senderFor">;
  pools: Pick<Pools, "nameFor" | "names">;
  /** --dev: no mail leaves the machine, and the simulator accepts every sender. */
  dev: boolean;
  now(): number;
}

const poolsShown = 20;

/** The domain that signs for `from`, or why it may not send; `known`: the domain, whether it may or not. */
export async function checkSender(
  { domains }: Pick<CheckDeps, "domains">,
  sender: Sender,
  from: Address,
): Promise<Checked & { domain: SenderDomain | null; known: SenderDomain | null }> {
  const found = await domains.senderFor(sender.account.key, from.ascii);
  if (found.ok) return { ...sound, domain: found.domain, known: found.domain };
  return { ...unverified(from, found.domain), domain: null, known: found.domain };
}

/** What must be mended, and the command that looks again: the domain's name is the one to verify, maybe a parent of the sender's. */
function unverified(from: Address, domain: SenderDomain | null): Checked {
  const name = domain?.name ?? from.ascii;
  const failing = (domain?.records ?? [])
    .filter((record) => record.required && record.status !== "ok")
    .map(({ purpose, type, name: at, value, issue }) => ({
      purpose,
      type,
      name: at,
      value,
      issue: issue ?? "The record was not checked yet.",
    }));
  const issue = domain
    ? `${name} is ${domain.status}: ${whatMends(domain, failing)}`
    : `${name} is not a domain of this account. Run: svc domains add ${name}`;
  return {
    problems: [{ field: "from", code: "sender_not_verified", issue }],
    extras: { domain: name, failing_records: failing },
  };
}

/** Names the records briefly, to fit one line of SMTP; `failing_records` has their values. */
function whatMends({ status, name }: SenderDomain, failing: { purpose: string; name: string }[]): string {
  if (status === "suspended") return "the operator has stopped mail from it";
  const records = failing.map(({ purpose, name: at }) => `${purpose} (${at})`).join(", ");
  const what = records === "" ? "" : `these DNS records are missing or wrong: ${records}. `;
  return `${what}See what to publish with: svc domains records ${name}, then run: svc domains verify ${name}`;
}

/** Several authors only where each one's domain is verified; the first one's signs. Throws Refusal. */
export async function checkAuthors(
  deps: CheckDeps,
  sender: Sender,
  authors: Address[],
): Promise<SenderDomain> {
  const checks = await Promise.all(authors.map((author) => checkSender(deps, sender, author)));
  refuseProblems(checks);
  const domain = checks[0]?.domain;
  if (!domain) throw new Error("the intake accepted a mail without an author");
  return domain;
}

export async function checkRecipients(
  deps: CheckDeps,
  sender: Sender,
  recipients: RecipientRequest[],
): Promise<Checked & { suppressed: Suppression[] }> {
  const problems = recipients.flatMap(({ field, mailbox }): Problem[] => {
    const issue = simulatorIssue(deps, sender, mailbox.address);
    return issue ? [{ field, code: "invalid_email_address", issue }] : [];
  });
  const fields = new Map(recipients.map(({ canonical, field }) => [canonical, field]));
  const entries = await suppressedAmong(deps, sender, [...fields.keys()]);
  const suppressed = suppressedProblems(entries, (canonical) => fields.get(canonical) ?? "to");
  return {
    problems: [...problems, ...suppressed.problems],
    extras: suppressed.extras,
    suppressed: entries,
  };
}

/** The same for the RCPT of a mail program: null when the recipient may be named. */
export async function recipientRefusal(
  deps: CheckDeps,
  sender: Sender,
  address: Address,
  canonical: string,
): Promise<Refusal | null> {
  const issue = simulatorIssue(deps, sender, address);
  if (issue) return new Refusal("invalid_email_address", issue);
  const [entry] = await suppressedAmong(deps, sender, [canonical]);
  if (!entry) return null;
  return new Refusal(
    "recipient_suppressed",
    `${entry.email} is on the suppression list (${entry.reason}); remove it there if it should get mail again`,
  );
}

/** The simulator answers test keys only, except under --dev, and only under the names it knows. */
function simulatorIssue({ dev }: Pick<CheckDeps, "dev">, sender: Sender, address: Address): string | null {
  if (!isSimulated(address.ascii)) return null;
  if (!sender.test && !dev) return `${simulatorDomain} takes mail of test keys only`;
  return simulatedNames.includes(address.local.toLowerCase())
    ? null
    : `${simulatorDomain} knows only ${simulatedNames.join(", ")}`;
}

/** Collects what to tell; the check that decides is inside the acceptance's transaction. */
async function suppressedAmong(
  deps: CheckDeps,
  sender: Sender,
  canonicals: string[],
): Promise<Suppression[]> {
  if (canonicals.length === 0) return [];
  return deps.store.suppressed(sender.account.key, canonicals, deps.now());
}

/** The pool of a message, or why there is none. */
export function checkPool(
  { pools }: Pick<CheckDeps, "pools">,
  sender: Sender,
  name: string | null,
): Checked & { pool: string | null } {
  const pool = pools.nameFor(sender.account.key, name);
  if (pool !== null) return { ...sound, pool };
  const shown = pools.names(sender.account.key).slice(0, poolsShown).join(", ");
  const issue = `no pool of that name; this account has: ${shown}`;
  return { problems: [{ field: "ip_pool", code: "ip_pool_not_found", issue }], extras: {}, pool };
}

/** Whether the domain allows it; null: there is none. */
export function checkTracking(domain: SenderDomain | null, { opens, clicks }: TrackingRequest): Checked {
  if (domain?.trackingEnabled) return sound;
  const issue = domain
    ? `tracking is not enabled for ${domain.name}; run: svc domains tracking set ${domain.name}`
    : "tracking is not enabled for this sender";
  const problems = [opens, clicks].flatMap((wanted): Problem[] =>
    wanted?.on ? [{ field: wanted.field, code: "tracking_disabled", issue }] : [],
  );
  return problems.length === 0 ? sound : { problems, extras: {} };
}
