// What `serve --dev` prints: a verified domain example.test, a test key and an SMTP login. No mail
// leaves the machine in that mode, so the domain counts as verified without a DNS look-up.
import type { Access } from "../access/access.ts";
import type { Clock } from "../clock.ts";
import type { Domains } from "../domains/domains.ts";
import type { Account } from "../model/account.ts";
import type { Store } from "../store/store.ts";

export const devDomain = "example.test";

export interface DevCredentials {
  key: string;
  smtpUsername: string;
  smtpPassword: string;
}

export async function makeDevCredentials(
  deps: {
    store: Pick<Store, "domainByName" | "saveDomain">;
    domains: Domains;
    access: Access;
    clock: Clock;
  },
  account: Account,
): Promise<DevCredentials> {
  const { store, domains, access } = deps;
  const domain =
    (await store.domainByName(account.key, devDomain)) ?? (await domains.add(account.key, devDomain));
  const now = deps.clock.now();
  const records = domain.records.map((record) => ({ ...record, status: "ok" as const, issue: null }));
  const verified = { updatedAt: now, verifiedAt: now, checkedAt: now, failingSince: null };
  await store.saveDomain({ ...domain, status: "verified", records, ...verified });
  const wanted = { name: "serve --dev", test: true };
  const key = await access.createKey(account.key, {
    ...wanted,
    scope: "send",
    allowIps: [],
    expiresAt: null,
  });
  const login = await access.createCredential(account, wanted);
  return { key: key.value, smtpUsername: login.username, smtpPassword: login.password };
}
