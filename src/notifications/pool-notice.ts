// The operator's mail about a pool whose mail waits: the addresses, why each cannot be used, and what to do. The same
// addresses with the same faults are one cause, of which the operator hears once an hour at most (notices.ts). The words
// are those of `svc status`: pools/problems.ts.
import { defaultAccount } from "../model/account.ts";
import { adviceOf, effectOf, subjectOf, type PoolProblem } from "../pools/problems.ts";
import type { Store } from "../store/store.ts";
import type { Notices } from "./notices.ts";

export async function notifyPoolProblem(
  notices: Pick<Notices, "notify">,
  store: Pick<Store, "accountByKey">,
  problem: PoolProblem,
): Promise<void> {
  const account = (await store.accountByKey(problem.accountKey))?.name ?? defaultAccount;
  const subject = subjectOf(problem);
  const faults = problem.addresses.map(({ address, fault }) => `${address}:${fault}`);
  await notices.notify(
    `pool:${problem.accountKey}.${problem.pool} ${faults.join()}`,
    subject,
    `${effectOf(problem)}\n\n` +
      `What to do:\n${adviceOf(problem, account)
        .map((line) => `  ${line}\n`)
        .join("")}`,
  );
}
