// What every request passes before its handler runs, in the order in which refusals win: nothing else decides it. A
// middleware throws a Refusal, or answers with a Reply.
import {
  authenticate,
  refusePausedAccount,
  refuseUnknownMethod,
  refuseUnknownPath,
  requireScope,
} from "./middleware/authorization.ts";
import { parseJson, readRequestBody, replayIdempotent, validateBody } from "./middleware/body.ts";
import { chargeBatch, chargeRequest, refuseSpentQuota } from "./middleware/rates.ts";
import { checkHeaders, readQuery } from "./middleware/request.ts";
import {
  limitProxiedClient,
  refuseDuringMaintenance,
  refuseDuringShutdown,
  requireHttps,
} from "./middleware/transport.ts";
import type { Middleware } from "./middleware/types.ts";

export const middleware: readonly Middleware[] = [
  refuseDuringShutdown, // 503
  refuseDuringMaintenance, // 503
  requireHttps, // 400
  limitProxiedClient, // 429 of a proxy's client with too much under way
  authenticate, // 403 source_ip_locked, 401 (429 where the source's bucket is empty), 403 key_disabled, 403 ip_not_allowed
  refuseUnknownPath, // 404
  refuseUnknownMethod, // 405
  requireScope, // 403 scope_insufficient
  chargeRequest, // 429
  refusePausedAccount, // 403 account_paused
  checkHeaders, // 400 X-API-Version, Idempotency-Key, Content-Type missing; 415
  readQuery, // 400 limit, cursor, filters
  readRequestBody, // 413
  parseJson, // 400
  replayIdempotent, // 409, or the stored answer
  refuseSpentQuota, // 429 of a day's messages
  validateBody, // 422
  chargeBatch, // 429 of what costs more than a token, counted in its body
];
