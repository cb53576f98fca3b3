// The harness over a store on disk: what is written is what is read back. Rates are such that no test meets them, and time
// is moved by hand.
import { accountBuckets } from "../../src/access/buckets.ts";
import type { Domains } from "../../src/domains/domains.ts";
import { Refusal } from "../../src/errors.ts";
import { createIdMint } from "../../src/ids.ts";
import { parseDomain } from "../../src/mail/address.ts";
import type { SenderDomain } from "../../src/model/domain.ts";
import type { Store } from "../../src/store/store.ts";
import type { Submission } from "../../src/submission/submission.ts";
import { createSubmission } from "../../src/submission/submit.ts";
import type { Webhooks } from "../../src/webhooks/webhooks.ts";
import { mint, newDirectory, openSqlite } from "../store/fixtures.ts";
import { FakeRunner, makeDomain, poolsNamed, tokens } from "../submission/rig.ts";
import { ManualClock } from "../support/clock.ts";
import { asAdded } from "../support/domains.ts";
import { list, startHttp, text, type Answer, type Ask, type Harness } from "./harness.ts";

const high = { burst: 1e9, perSecond: 1e9 };
const rates = Object.fromEntries(accountBuckets.map((name) => [name, high]));

export interface Stored extends Harness {
  store: Store;
  call(method: string, path: string, body?: unknown, more?: Partial<Ask>): Promise<Answer>;
}

type Options = NonNullable<Parameters<typeof startHttp>[0]>;
export type Opened = NonNullable<Options["opened"]>;

/** `rest`: what stands on that store beside the harness. */
export async function startStored(
  rest: (opened: Opened) => Omit<Options, "opened" | "store"> = () => ({}),
): Promise<Stored> {
  const clock = new ManualClock();
  const opened = { store: await openSqlite(newDirectory(), clock), clock };
  const options = rest(opened);
  const http = await startHttp({ ...options, opened, config: { rates, ...options.config } });
  return {
    ...http,
    store: opened.store,
    call: (method, path, body, more = {}) =>
      http.ask({ method, path, ...(body === undefined ? {} : { body }), ...more }),
  };
}

/** The fields that a refusal names. */
export const fields = (answer: Answer): string[] =>
  list(answer.json["errors"]).map((row) => text(row["field"]));
export const alphabetical = (a: string, b: string): number => (a < b ? -1 : 1);

/** Of the URLs of webhooks, those that are https pass. */
export const checkUrl: Webhooks["checkUrl"] = (url) => {
  if (url.startsWith("https://")) return Promise.resolve();
  const errors = [{ field: "url", code: "validation_failed" as const, issue: "is not https" }];
  return Promise.reject(new Refusal("validation_failed", "url is not https", { errors }));
};

/** Adds a domain with one record and one key, and asks no DNS. */
export const addDomain =
  ({ store, clock }: Opened): Domains["add"] =>
  async (account, given, into = store) => {
    const name = parseDomain(given);
    if (!name.ok) throw new Refusal("validation_failed", `name ${name.issue}`, { field: "name" });
    const domain = await into.createDomain(newDomain(account, name.value, clock.now()));
    if (!domain) throw new Refusal("conflict", "The account has this domain already.");
    return domain;
  };

export const newDomain = (accountKey: number, name: string, at: number): Omit<SenderDomain, "key"> => ({
  id: mint("dom", at),
  accountKey,
  name,
  status: "pending",
  returnPathDomain: `rp.${name}`,
  records: [
    {
      purpose: "spf",
      type: "TXT",
      name: `rp.${name}`,
      value: "v=spf1 -all",
      required: true,
      status: "unchecked",
      found: [],
      issue: null,
    },
  ],
  dkimKeys: [
    {
      selector: "s1",
      algorithm: "rsa-sha256",
      privatePem: "-----SECRET-----",
      publicKey: "AAAA",
      status: "active",
    },
  ],
  createdAt: at,
  updatedAt: at,
  verifiedAt: null,
  checkedAt: null,
  failingSince: null,
  ...asAdded,
});

/** Real submission on that store, for a sender domain that is verified; every attempt has a slot. */
export const submissionOver = ({ store, clock }: Opened, domain: string): Submission =>
  createSubmission({
    store,
    domains: {
      senderFor: (_account, name) =>
        Promise.resolve(
          name === domain ? { ok: true, domain: makeDomain(name) } : { ok: false, domain: null },
        ),
    },
    pools: poolsNamed("default"),
    runner: new FakeRunner(),
    config: { hostname: "mail.svc.test", limits: { maxQueue: 0 }, dev: false },
    clock,
    mint: createIdMint(),
    tokens,
  });
