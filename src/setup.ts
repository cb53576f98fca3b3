// What `svc init` makes in the store, without a running daemon: the first admin key and SMTP login of the default account,
// and its first domain. Also what the store and the domains need to be opened, which the daemon shares.
import { readdirSync, writeSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { createAccess } from "./access/access.ts";
import { systemClock, type Clock } from "./clock.ts";
import type { Config } from "./config.ts";
import { createResolver, type CachingResolver } from "./dns/resolve.ts";
import type { Resolver } from "./dns/resolver.ts";
import { createDomains } from "./domains/manage.ts";
import { createIdMint } from "./ids.ts";
import type { Log } from "./log.ts";
import { defaultAccount } from "./model/account.ts";
import type { AuditEntry } from "./model/audit.ts";
import type { SenderDomain } from "./model/domain.ts";
import { theNode } from "./model/node.ts";
import { handToOwner } from "./owner.ts";
import { lookUpPtr, recordsOf } from "./pools/ptr.ts";
import { openStore } from "./store/sqlite/sqlite-store.ts";
import type { Store } from "./store/store.ts";

/** `svc init`: what a first start needs, made without a running daemon. */
export async function initialise(options: {
  config: Config;
  log: Log;
  domain: string | null;
  checkNetwork: boolean;
}): Promise<{
  adminKey: string;
  smtp: { username: string; password: string };
  domain: SenderDomain | null;
  remarks: string[];
}> {
  const { config, log } = options;
  const clock = systemClock;
  const mint = createIdMint();
  const store = await openStore({
    dataDir: config.dataDir,
    node: theNode,
    clock,
    log,
    mint,
    minFreeShare: 0,
    onLost: endWithoutWriter,
  });
  const resolver = resolverOf(config, clock, log);
  try {
    const access = createAccess({ store, clock, log, mint });
    const domains = createDomains({
      store,
      resolver: resolver.uncached,
      config: domainConfig(config),
      clock,
      mint,
    });
    const account = await defaultAccountOf(store);
    const domain = options.domain === null ? null : await domains.add(account.key, options.domain);
    const key = await access.createKey(account.key, {
      name: "first admin key",
      scope: "admin",
      test: false,
      allowIps: [],
      expiresAt: null,
    });
    const smtp = await access.createCredential(account, { name: "first login", test: false });
    await store.recordAudit([
      auditOf("keys.create", account.key, key.key.id, clock.now()),
      auditOf("smtp_credentials.create", account.key, smtp.credential.id, clock.now()),
    ]);
    const remarks = options.checkNetwork ? await hostRemarks(resolver, config.hostname) : [];
    const login = { username: smtp.username, password: smtp.password };
    return { adminKey: key.value, smtp: login, domain, remarks };
  } finally {
    resolver.stop();
    await store.close();
    handToOwner(
      config.dataDir,
      readdirSync(config.dataDir).map((name) => join(config.dataDir, name)),
    );
  }
}

/** What receivers would hold against the host name: no address, or one whose reverse name is another. */
async function hostRemarks(resolver: Resolver, hostname: string): Promise<string[]> {
  const answers = await Promise.all([resolver.a(hostname), resolver.aaaa(hostname)]);
  if (answers.some(({ kind }) => kind === "failed"))
    return [`The DNS does not answer for ${hostname}: whether it has an address is not known.`];
  const addresses = answers.flatMap(recordsOf);
  if (addresses.length === 0)
    return [`${hostname} has no address in the DNS: receivers distrust it. Publish an A or AAAA record.`];
  const looks = await Promise.all(
    addresses.map(async (address) => ({ address, look: await lookUpPtr(resolver, address, hostname) })),
  );
  return looks.flatMap(({ address, look }) =>
    look?.ptrOk === false
      ? [
          `The reverse name of ${address} is ${look.ptr ?? "not set"}: have your provider set it to ${hostname}.`,
        ]
      : [],
  );
}

/** What `svc init` does, as an entry of the audit log. */
function auditOf(action: string, accountKey: number, target: string, at: number): AuditEntry {
  const unknown = { sourceIp: null, requestId: null, times: 1, detail: {} };
  return { at, accountKey, actorKind: "system", actor: "init", action, target, ...unknown };
}

export function resolverOf(config: Config, clock: Clock, log: Log): CachingResolver {
  // A retry that comes sooner than usual, where the operator wants that, must really ask.
  const failureMs = Math.min(30_000, ...config.outbound.retryMs);
  return createResolver({ ...config.dns, failureMs, clock, log: log.component("dns") });
}

export function domainConfig({ hostname, outbound, publicUrl }: Config) {
  const host = new URL(publicUrl).hostname;
  const isName = isIP(host) === 0 && !host.startsWith("["); // a CNAME leads to a name
  return { hostname, sources: outbound.source, publicHost: isName ? host : hostname };
}

/** The account that `svc init` makes and the operator's own mail is sent from. */
export async function defaultAccountOf(store: Store) {
  const account = await store.accountByName(defaultAccount);
  if (!account) throw new Error(`the account ${defaultAccount} is missing from the database`);
  return account;
}

export const endWithoutWriter = (detail: string): never =>
  endAtOnce(`the store lost its writing thread (${detail})`);

/** The addresses that mail leaves from without a pool's; null: none is ours, with a smart host and in `serve --dev`. */
export async function systemChoiceOf({ hostname, outbound, dev }: Config, store: Store) {
  if (dev || outbound.smartHost !== null) return null;
  return { hostname, sources: outbound.source, accountKey: (await defaultAccountOf(store)).key };
}

/** Continuing could acknowledge mail that is not on disk. Written to stderr directly, since the log is buffered. */
export function endAtOnce(detail: string): never {
  writeSync(2, `svc: ${detail}; the program ends, start it again\n`);
  process.exit(1);
}
