// The checks that need the store or the configuration: may this sender send, may these
// recipients be sent to. Each reports problems; what the fields say by themselves is request.ts's.
import type { Domains } from "../domains/domains.ts";
import type { Problem, RefusalExtras } from "../errors.ts";
import type { Address } from "../mail/address.ts";
import { isSimulated, simulatedNames } from "../sandbox/simulator.ts";
import type { SenderDomain, Store, Suppression } from "../store/store.ts";
import { suppressedExtras } from "./accept.ts";
import type { Sender } from "./submission.ts";

export interface CheckDeps {
  store: Pick<Store, "suppressed">;
  domains: Pick<Domains, "senderFor">;
  now(): number;
}

export interface Checked {
  problems: Problem[];
  extras: RefusalExtras;
}

/** The domain that signs for `from`, or why it may not send. */
export async function checkSender(
  deps: CheckDeps,
  sender: Sender,
  from: Address,
): Promise<Checked & { domain: SenderDomain | null }> {
  const found = await deps.domains.senderFor(sender.account.key, from.ascii);
  if (found.ok) return { problems: [], extras: {}, domain: found.domain };
  const failing = (found.domain?.records ?? []).filter((record) => record.required && record.status !== "ok");
  const issue = found.domain
    ? `${found.domain.name} is ${found.domain.status}: ${failing.map(({ purpose, issue: why }) => `${purpose} ${why ?? "was not checked yet"}`).join("; ")}. Publish the records and run: svc domains verify ${found.domain.name}`
    : `${from.ascii} is not a domain of this account. Run: svc domains add ${from.ascii}`;
  return {
    problems: [{ field: "from", code: "sender_not_verified", issue }],
    extras: {
      domain: from.ascii,
      failing_records: failing.map(({ purpose, type, name, issue: why }) => ({
        purpose,
        type,
        name,
        issue: why ?? "was not checked yet",
      })),
    },
    domain: null,
  };
}

/** The simulator answers test keys only, and only under the names it knows. */
export function simulatorIssue(sender: Sender, address: Address): string | null {
  if (!isSimulated(address.ascii)) return null;
  if (!sender.test) return "simulator.svc takes mail of test keys only";
  return simulatedNames.includes(address.local.toLowerCase())
    ? null
    : `simulator.svc knows only ${simulatedNames.join(", ")}`;
}

/** Entries of the suppression list among the recipients; the check that decides is inside the acceptance's transaction. */
export async function suppressedAmong(
  deps: CheckDeps,
  sender: Sender,
  canonicals: string[],
): Promise<Suppression[]> {
  return deps.store.suppressed(sender.account.key, canonicals, deps.now());
}

export function suppressedProblems(entries: Suppression[], fieldOf: (canonical: string) => string): Checked {
  if (entries.length === 0) return { problems: [], extras: {} };
  const problems = entries.map(({ canonical, reason }): Problem => ({
    field: fieldOf(canonical),
    code: "recipient_suppressed",
    issue: `is on the suppression list (${reason})`,
  }));
  return { problems, extras: suppressedExtras(entries) };
}
