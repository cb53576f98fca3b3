// Every endpoint, on one screen. A new one is an entry in routes/<resource>.ts, and nothing else.
import type { RouteDeps } from "./deps.ts";
import type { Route } from "./route.ts";
import { auditRoutes } from "./routes/audit.ts";
import { accountRoutes } from "./routes/accounts.ts";
import { descriptionRoutes } from "./routes/description.ts";
import { domainRoutes } from "./routes/domains.ts";
import { errorRoutes } from "./routes/errors.ts";
import { eventRoutes } from "./routes/events.ts";
import { healthRoutes } from "./routes/health.ts";
import { inboxRoutes } from "./routes/inbox.ts";
import { ipAssignmentRoutes } from "./routes/ip-assignments.ts";
import { ipPoolRoutes } from "./routes/ip-pools.ts";
import { ipRoutes } from "./routes/ips.ts";
import { keyRoutes } from "./routes/keys.ts";
import { maintenanceRoutes } from "./routes/maintenance.ts";
import { messageRoutes } from "./routes/messages.ts";
import { recipientRoutes } from "./routes/recipients.ts";
import { smtpCredentialRoutes } from "./routes/smtp-credentials.ts";
import { statsRoutes } from "./routes/stats.ts";
import { suppressionRoutes } from "./routes/suppressions.ts";
import { tailRoutes } from "./routes/tail.ts";
import { webhookRoutes } from "./routes/webhooks.ts";

export function allRoutes(deps: RouteDeps): Route[] {
  const routes = [
    ...messageRoutes(deps), // POST GET /v1/messages, POST batch, validate, GET {id}, {id}/attempts, {id}/content, POST {id}/cancel
    ...eventRoutes(deps), // GET /v1/events
    ...webhookRoutes(deps), // POST GET /v1/webhooks, GET PATCH DELETE {id}, POST {id}/test, rotate_secret, replay, GET {id}/deliveries
    ...domainRoutes(deps), // POST GET /v1/domains, GET PATCH DELETE {name}, POST {name}/verify, {name}/dkim/rotate; on the socket suspend, resume
    ...ipPoolRoutes(deps), // POST GET /v1/ip_pools, GET PATCH DELETE {name}
    ...ipRoutes(deps), // POST /v1/ip_pools/{name}/ips, PATCH DELETE {name}/ips/{ip}, GET /v1/ips
    ...suppressionRoutes(deps), // POST GET /v1/suppressions, GET DELETE {email}
    ...statsRoutes(deps), // GET /v1/stats, summary, timeseries, tags, domains, recipient_domains, providers, ips, ip_pools, bounces, webhooks
    ...errorRoutes(), // GET /errors/{code}
    ...healthRoutes(deps), // /healthz, /readyz; on the socket GET /v1/status
    // The operator's own, on the socket only:
    ...accountRoutes(deps), // GET POST /v1/accounts, GET PATCH DELETE {account}, POST {account}/suspend, resume
    ...ipAssignmentRoutes(deps), // GET POST /v1/ip_assignments, DELETE {ip}
    ...keyRoutes(deps), // GET POST /v1/keys, GET PATCH {id}, POST {id}/revoke, disable, enable, rotate
    ...smtpCredentialRoutes(deps), // GET POST /v1/smtp_credentials, POST {id}/rotate, revoke
    ...auditRoutes(deps), // GET /v1/audit
    ...inboxRoutes(deps), // GET DELETE /v1/inbox
    ...tailRoutes(deps), // GET /v1/events/tail
    ...maintenanceRoutes(deps), // GET POST DELETE /v1/maintenance
    ...recipientRoutes(deps), // POST /v1/recipients/forget
  ];
  return [...routes, ...descriptionRoutes(deps, routes)]; // GET /openapi.json, /docs
}
