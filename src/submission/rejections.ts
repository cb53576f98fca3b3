// Counts recipients that are refused because they are suppressed. For a request with other problems, tags and pool are
// left out, since they may be invalid too; at RCPT only the account and the recipient are known.
import type { Rejection } from "../model/statistics.ts";
import type { Suppression } from "../model/suppression.ts";
import type { Pools } from "../pools/pools.ts";
import type { Store } from "../store/store.ts";
import type { ReadRequest } from "./request.ts";
import type { Sender } from "./submission.ts";

export interface Rejections {
  ofRequest(sender: Sender, entries: Suppression[], read: ReadRequest, domain: string | null): void;
  ofRecipient(sender: Sender, canonical: string): void;
}

export function createRejections(
  store: Pick<Store, "countRejection">,
  pools: Pick<Pools, "nameFor">,
  now: () => number,
): Rejections {
  const count = (
    { account, test }: Sender,
    canonicals: string[],
    of: Pick<Rejection, "domain" | "pool" | "tagsJson">,
  ): void => {
    const recipientDomains = canonicals.map((canonical) => canonical.slice(canonical.lastIndexOf("@") + 1));
    store.countRejection({ accountKey: account.key, test, recipientDomains, at: now(), ...of });
  };
  return {
    ofRequest(sender, entries, { request, problems }, domain) {
      const holds = problems.length === 0;
      count(
        sender,
        entries.map(({ canonical }) => canonical),
        {
          domain,
          pool: holds ? pools.nameFor(sender.account.key, request.ipPool) : null,
          tagsJson: JSON.stringify(holds ? request.tags : []),
        },
      );
    },
    ofRecipient: (sender, canonical) =>
      count(sender, [canonical], { domain: null, pool: null, tagsJson: "[]" }),
  };
}
