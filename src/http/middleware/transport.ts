// Whether a request is taken at all: the server's state, TLS, and how much a proxy's client has under way.
import { Refusal } from "../../errors.ts";
import { forwardedHttps, isLoopback } from "../client-ip.ts";
import { routeOf } from "../exchange.ts";
import type { Middleware } from "./types.ts";

export const refuseDuringShutdown: Middleware = (_x, deps) => {
  if (deps.draining())
    throw new Refusal("service_overloaded", "The service is shutting down.", { retry_after_seconds: 5 });
};

/** What is open to anybody stays so: health, descriptions, and the links of mail that was sent. */
export const refuseDuringMaintenance: Middleware = (x, deps) => {
  if (x.listener === "admin" || routeOf(x)?.scopes === "open") return;
  const refusal = deps.maintenance.refusal();
  if (refusal) throw refusal;
};

export const requireHttps: Middleware = (x, deps) => {
  if (x.listener === "admin" || deps.transport === "tls") return;
  const secure = deps.transport === "proxy" ? forwardedHttps(x.req, deps.trustedProxies) : isLoopback(x.req);
  if (!secure)
    throw new Refusal("invalid_request", "Requests are accepted over HTTPS only.", {
      field: "X-Forwarded-Proto",
    });
};

/** A proxy's connection carries the requests of many: its clients are counted by what they have under way. */
export const limitProxiedClient: Middleware = (x, deps) => {
  if (x.listener === "admin" || deps.connections.has(x.req.socket)) return;
  x.slot = deps.connections.client(x.ip);
  if (!x.slot) {
    throw new Refusal("rate_limit_exceeded", "Too many requests from this address are in progress.", {
      retry_after_seconds: 1,
      bucket: "unauthenticated",
    });
  }
  x.res.once("close", x.slot.leave);
};
