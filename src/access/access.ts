// Authentication of HTTP and SMTP clients, and the writes of API keys and SMTP credentials. A key or password is looked
// up by its SHA-256 at every request, so that a revocation applies from the next one. Scopes and rate limits are
// enforced by HTTP and SMTP (routes, buckets.ts).
import { isoTime, type Clock } from "../clock.ts";
import type { IdMint } from "../ids.ts";
import type { Log } from "../log.ts";
import type { Account } from "../model/account.ts";
import type { ApiKey, KeyStatus, Scope } from "../model/api-key.ts";
import type { Limits } from "../model/limits.ts";
import type { SmtpCredential } from "../model/smtp-credential.ts";
import type { Store } from "../store/store.ts";
import { readSmtpUsername, smtpUsername } from "./credentials.ts";
import { hashSecret, makeKey, makePassword, wellFormedKey } from "./keys.ts";
import { createLockout, lockoutRule, type Lockout } from "./lockout.ts";
import { createNetworks } from "./networks.ts";
import { createSecurity, type Notice, type Security } from "./security.ts";
import { Refusal } from "../errors.ts";

export type Principal =
  | { kind: "key"; account: Account; key: ApiKey }
  /** A person at the admin socket: every scope, no bucket, no lock-out. */
  | { kind: "operator"; account: Account; name: string };

export interface SmtpLogin {
  account: Account;
  test: boolean;
  passwordHash: Uint8Array;
}

export interface Access {
  /** What is noticed goes to the audit log; its minute's sum is written when it is stopped. */
  security: Security;
  lockouts: Pick<Lockout, "list" | "clear">;
  /** Throws Refusal: source_ip_locked, invalid_api_key, key_disabled, ip_not_allowed, in that order. */
  authenticateKey(
    authorization: string | undefined,
    ip: string,
    requestId?: string | null,
  ): Promise<Extract<Principal, { kind: "key" }>>;
  /** Throws Refusal: source_ip_locked, invalid_api_key (535), key_disabled (suspended account). */
  authenticateSmtp(username: string, password: string, ip: string): Promise<SmtpLogin>;
  /** Checks the login of an open session again. Throws Refusal: invalid_api_key (revoked), key_disabled (suspended). */
  renewSmtp(login: SmtpLogin): Promise<SmtpLogin>;
  /** `into`: the store that it is written with, where not its own. Throws Refusal: validation_failed. */
  createKey(accountKey: number, wanted: WantedKey, into?: Store): Promise<{ key: ApiKey; value: string }>;
  /** Throws Refusal: resource_not_found; conflict where the key is revoked. */
  setKeyStatus(accountKey: number, id: string, status: KeyStatus, into?: Store): Promise<ApiKey>;
  createCredential(
    account: Account,
    wanted: { name: string; test: boolean },
    into?: Store,
  ): Promise<MadeCredential>;
  /** Makes a new password under the same name and revokes the old one. Throws Refusal: resource_not_found, conflict. */
  rotateCredential(account: Account, id: string, into?: Store): Promise<MadeCredential>;
}

export interface WantedKey extends Partial<Limits> {
  name: string;
  scope: Scope;
  test: boolean;
  allowIps: string[];
  expiresAt: number | null;
}

export interface MadeCredential {
  credential: SmtpCredential;
  username: string;
  password: string;
}

export interface AccessDeps {
  store: Store;
  clock: Clock;
  log: Log;
  mint: IdMint;
}

/** The last use of a key is recorded at most this often. */
const noteEveryMs = 60_000;

function suspended(): Refusal {
  return new Refusal("key_disabled", "The account is suspended.");
}

function alreadyExpired(at: number): Refusal {
  const issue = `is past: ${isoTime(at)}`;
  return new Refusal("validation_failed", `expires_at ${issue}; a key that expires needs a time to come.`, {
    errors: [{ field: "expires_at", code: "validation_failed", issue }],
  });
}

export function createAccess(deps: AccessDeps): Access {
  const { store, clock, mint } = deps;
  const log = deps.log.component("access");
  const lockout = createLockout(clock);
  const noted = new Map<string, number>();

  const refuseLocked = (ip: string): void => {
    const seconds = lockout.secondsLeft(ip);
    if (seconds > 0) {
      throw new Refusal("source_ip_locked", "Too many failed authentications came from this address.", {
        retry_after_seconds: seconds,
      });
    }
  };
  const security = createSecurity({ store, clock, log });
  const fail = (ip: string, detail: string, requestId: string | null = null): Refusal => {
    if (lockout.failed(ip)) {
      const { failures, lockMs } = lockoutRule;
      security.notice("source_locked", null, { ip, requestId, detail: { failures, seconds: lockMs / 1000 } });
    }
    return new Refusal("invalid_api_key", detail);
  };
  const noteUse = (kind: "apiKeys" | "smtpCredentials", key: number): void => {
    const id = `${kind}:${key}`;
    const last = noted.get(id);
    if (last !== undefined && clock.monotonic() - last < noteEveryMs) return;
    noted.set(id, clock.monotonic());
    store
      .noteUse({ apiKeys: [], smtpCredentials: [], at: clock.now(), [kind]: [key] })
      .catch((error: unknown) =>
        log.debug({ err: String(error) }, "the last use of a key or login was not recorded"),
      );
  };
  const activeAccount = async (accountKey: number): Promise<Account> => {
    const account = await store.accountByKey(accountKey);
    if (account?.status !== "active") throw suspended();
    return account;
  };
  /** Why a known key is refused, and the notice for the audit log. */
  const refusalOf = (key: ApiKey, account: Account | null, ip: string): [Notice, Refusal | string] | null => {
    if (key.status === "revoked") return ["revoked_key", "The API key does not exist or was revoked."];
    if (key.expiresAt !== null && key.expiresAt <= clock.now())
      return ["expired_key", "The API key has expired."];
    if (key.status === "disabled")
      return ["disabled_key", new Refusal("key_disabled", "The API key was disabled by the operator.")];
    if (account?.status !== "active") return ["suspended_account", suspended()];
    if (key.allowIps.length === 0 || createNetworks(key.allowIps).has(ip)) return null;
    return [
      "ip_not_allowed",
      new Refusal("ip_not_allowed", "The API key may not be used from this address."),
    ];
  };

  return {
    security,
    lockouts: lockout,

    async authenticateKey(authorization, ip, requestId = null) {
      refuseLocked(ip);
      const value = bearerToken(authorization);
      if (value === null)
        throw fail(ip, "The request has no Authorization header of the form `Bearer <API key>`.", requestId);
      if (!wellFormedKey(value)) throw fail(ip, "The API key is malformed.", requestId);
      const key = await store.apiKeyByHash(hashSecret(value));
      if (!key) throw fail(ip, "The API key does not exist or was revoked.", requestId);
      const account = await store.accountByKey(key.accountKey);
      const bearer = { kind: "key" as const, id: key.id, accountKey: key.accountKey };
      const refusal = refusalOf(key, account, ip);
      if (refusal) {
        const [what, why] = refusal;
        security.notice(what, bearer, { ip, requestId });
        throw typeof why === "string" ? fail(ip, why, requestId) : why;
      }
      if (!account) throw new Error("a key whose account is missing passed");
      lockout.succeeded(ip);
      noteUse("apiKeys", key.key);
      security.used(bearer, { ip, requestId });
      return { kind: "key", account, key };
    },

    async authenticateSmtp(username, password, ip) {
      refuseLocked(ip);
      const name = readSmtpUsername(username);
      const owner = name && (await store.accountById(name.accountId));
      const passwordHash = hashSecret(password);
      const credential = owner && (await store.smtpCredentialByHash(owner.key, name.test, passwordHash));
      if (!owner || !credential) throw fail(ip, "The SMTP user name or password is wrong.");
      const bearer = { kind: "smtp_credential" as const, id: credential.id, accountKey: owner.key };
      const occasion = { ip, requestId: null };
      if (credential.status !== "active") {
        security.notice("revoked_credential", bearer, occasion);
        throw fail(ip, "The SMTP user name or password is wrong.");
      }
      if (owner.status !== "active") {
        security.notice("suspended_account", bearer, occasion);
        throw suspended();
      }
      lockout.succeeded(ip);
      noteUse("smtpCredentials", credential.key);
      security.used(bearer, occasion);
      return { account: owner, test: name.test, passwordHash };
    },

    async renewSmtp(login) {
      const { account, test, passwordHash } = login;
      const credential = await store.smtpCredentialByHash(account.key, test, passwordHash);
      if (credential?.status !== "active")
        throw new Refusal(
          "invalid_api_key",
          "The SMTP password of this session was revoked; log in with another.",
        );
      return { ...login, account: await activeAccount(account.key) };
    },

    async createKey(accountKey, wanted, into = store) {
      const now = clock.now();
      if (wanted.expiresAt !== null && wanted.expiresAt <= now) throw alreadyExpired(wanted.expiresAt);
      const { value, hash, hint } = makeKey(wanted.test);
      const key = await into.createApiKey({
        rates: {},
        dailyQuota: null,
        ...wanted,
        id: mint("key", now),
        accountKey,
        hash,
        hint,
        status: "active",
        createdAt: now,
      });
      return { key, value };
    },

    async setKeyStatus(accountKey, id, status, into = store) {
      const key = await into.setApiKeyStatus(accountKey, id, status, clock.now());
      if (!key) throw new Refusal("resource_not_found", "There is no such API key.");
      if (key.status !== status)
        throw new Refusal("conflict", "The API key is revoked, which cannot be undone.");
      return key;
    },

    async createCredential(account, wanted, into = store) {
      const { value, hash, hint } = makePassword();
      const now = clock.now();
      const credential = await into.createSmtpCredential({
        ...wanted,
        id: mint("cred", now),
        accountKey: account.key,
        hash,
        hint,
        status: "active",
        createdAt: now,
      });
      return { credential, username: smtpUsername(account.id, wanted.test), password: value };
    },

    async rotateCredential(account, id, into = store) {
      const { value, hash, hint } = makePassword();
      const at = clock.now();
      const fresh = { id: mint("cred", at), hash, hint };
      const credential = await into.rotateSmtpCredential(account.key, id, fresh, at);
      if (!credential) throw new Refusal("resource_not_found", "There is no such SMTP credential.");
      if (credential.id !== fresh.id)
        throw new Refusal("conflict", "The SMTP credential is revoked; create a new one.");
      return { credential, username: smtpUsername(account.id, credential.test), password: value };
    },
  };
}

/** The token of `Bearer <token>`; the scheme in any case and spaces as RFC 9110 §11.4 has them. Several headers arrive joined by a comma and are none. */
function bearerToken(authorization: string | undefined): string | null {
  return /^bearer +([^\s,]+)$/i.exec(authorization ?? "")?.[1] ?? null;
}
