// Who asks, for what, and whether they may: the key, the path and its methods, the scope, a paused account. The order of
// lock-out, 401, disabled and allowlist is access's own.
import type { Principal } from "../../access/access.ts";
import { Refusal } from "../../errors.ts";
import { defaultAccount } from "../../model/account.ts";
import { refusePausedAccount as refusePaused } from "../../sending-pause/refusals.ts";
import type { Store } from "../../store/store.ts";
import { accountOf, headerOf, routeOf, sendsMail, type Exchange } from "../exchange.ts";
import { isBelowApi } from "../paths.ts";
import { refuseRate } from "./rates.ts";
import type { Middleware } from "./types.ts";

export const authenticate: Middleware = async (x, deps) => {
  if (x.listener === "admin") {
    x.principal = await operatorOf(x, deps.store);
    return;
  }
  const route = routeOf(x);
  if (route?.scopes === "open") return;
  if (route === null && !isBelowApi(x.path)) return; // no key is asked for outside of the API
  try {
    x.principal = await deps.access.authenticateKey(
      x.req.headersDistinct["authorization"]?.join(", "),
      x.ip,
      x.id,
    );
    x.slot?.known();
    deps.connections.known(x.req.socket);
  } catch (error) {
    x.bucket = deps.buckets.takeSource("unauthenticated", x.ip);
    if (error instanceof Refusal && error.code === "invalid_api_key" && !x.bucket.allowed) refuseRate(x);
    throw error;
  }
};

async function operatorOf(x: Exchange, store: Store): Promise<Principal> {
  const name = headerOf(x, "x-svc-account") ?? defaultAccount;
  const account = await store.accountByName(name);
  if (!account)
    throw new Refusal("resource_not_found", `There is no account "${name.slice(0, 64)}".`, {
      field: "X-Svc-Account",
    });
  const operator = (headerOf(x, "x-svc-operator") ?? "").replace(/[^\x20-\x7e]/g, "").slice(0, 64);
  return { kind: "operator", account, name: operator === "" ? "unknown" : operator };
}

export const refuseUnknownPath: Middleware = (x) => {
  if (x.match.kind === "none") throw new Refusal("resource_not_found", "There is no such path.");
};

export const refuseUnknownMethod: Middleware = (x) => {
  if (x.match.kind !== "method") return;
  throw new Refusal("method_not_allowed", `The path does not support ${x.method}.`, { allow: x.match.allow });
};

export const requireScope: Middleware = (x, deps) => {
  const scopes = routeOf(x)?.scopes;
  if (x.principal?.kind !== "key" || scopes === undefined || scopes === "open") return;
  const { scope, id, accountKey } = x.principal.key;
  if (scope === "admin" || scopes.includes(scope)) return;
  deps.access.security.notice(
    "scope_mismatch",
    { kind: "key", id, accountKey },
    {
      ip: x.ip,
      requestId: x.id,
      detail: { scope, required: scopes[0], method: x.method, path: routeOf(x)?.path },
    },
  );
  throw new Refusal("scope_insufficient", `The key's scope is ${scope}; this request needs ${scopes[0]}.`, {
    required_scope: scopes[0],
  });
};

export const refusePausedAccount: Middleware = (x) => {
  if (sendsMail(x)) refusePaused(accountOf(x));
};
