// Every endpoint, on one screen. A new one is an entry in resources/<noun>.ts, and nothing else.
import type { RouteDeps } from "./deps.ts";
import type { Route } from "./route.ts";
import { attemptRoutes } from "./resources/attempts.ts";
import { activityRoutes } from "./resources/activity.ts";
import { auditRoutes } from "./resources/audit.ts";
import { backupRoutes } from "./resources/backups.ts";
import { databaseRoutes } from "./resources/database.ts";
import { retentionRoutes } from "./resources/retention.ts";
import { blacklistRoutes } from "./resources/blacklists.ts";
import { certificateRoutes } from "./resources/certificates.ts";
import { accountRoutes } from "./resources/accounts.ts";
import { descriptionRoutes } from "./resources/description.ts";
import { doctorRoutes } from "./resources/doctor.ts";
import { domainRoutes } from "./resources/domains.ts";
import { errorRoutes } from "./resources/errors.ts";
import { eventRoutes } from "./resources/events.ts";
import { healthRoutes } from "./resources/health.ts";
import { inboxRoutes } from "./resources/inbox.ts";
import { ipAssignmentRoutes } from "./resources/ip-assignments.ts";
import { ipPoolRoutes } from "./resources/ip-pools.ts";
import { ipRoutes } from "./resources/ips.ts";
import { keyRoutes } from "./resources/keys.ts";
import { lockoutRoutes } from "./resources/lockouts.ts";
import { logRoutes } from "./resources/logs.ts";
import { maintenanceRoutes } from "./resources/maintenance.ts";
import { metricsRoutes } from "./resources/metrics.ts";
import { messageContentRoutes } from "./resources/message-content.ts";
import { messageWaitRoutes } from "./resources/message-waits.ts";
import { messageRoutes } from "./resources/messages.ts";
import { queuePauseRoutes } from "./resources/queue-pauses.ts";
import { queueRoutes } from "./resources/queue.ts";
import { probeRoutes } from "./resources/probe.ts";
import { recipientRoutes } from "./resources/recipients.ts";
import { reloadRoutes } from "./resources/reload.ts";
import { shapingRoutes } from "./resources/shaping.ts";
import { smtpCredentialRoutes } from "./resources/smtp-credentials.ts";
import { sendingRoutes } from "./resources/sending.ts";
import { statsRoutes } from "./resources/stats.ts";
import { suppressionRoutes } from "./resources/suppressions.ts";
import { tailRoutes } from "./resources/tail.ts";
import { webhookDeliveryRoutes } from "./resources/webhook-deliveries.ts";
import { webhookRoutes } from "./resources/webhooks.ts";

export function allRoutes(deps: RouteDeps): Route[] {
  const routes = [
    ...sendingRoutes(deps), // POST /v1/messages, batch, validate
    ...messageRoutes(deps), // GET /v1/messages, {id}, POST {id}/cancel
    ...attemptRoutes(deps), // GET /v1/messages/{id}/attempts
    ...messageContentRoutes(deps), // GET /v1/messages/{id}/content
    ...eventRoutes(deps), // GET /v1/events
    ...webhookRoutes(deps), // POST GET /v1/webhooks, GET PATCH DELETE {id}, POST {id}/test, rotate_secret
    ...webhookDeliveryRoutes(deps), // GET /v1/webhooks/{id}/deliveries, POST {id}/replay
    ...domainRoutes(deps), // POST GET /v1/domains, GET PATCH DELETE {name}, POST {name}/verify, {name}/dkim/rotate; on the socket suspend, resume
    ...ipPoolRoutes(deps), // POST GET /v1/ip_pools, GET PATCH DELETE {name}
    ...ipRoutes(deps), // POST /v1/ip_pools/{name}/ips, PATCH DELETE {name}/ips/{ip}, GET /v1/ips
    ...suppressionRoutes(deps), // POST GET /v1/suppressions, GET DELETE {email}
    ...statsRoutes(deps), // GET /v1/stats, summary, timeseries, tags, domains, recipient_domains, providers, ips, ip_pools, bounces, webhooks
    ...errorRoutes(), // GET /errors/{code}
    ...healthRoutes(deps), // /healthz, /readyz; on the socket GET /v1/status
    // The operator's own, on the socket only:
    ...doctorRoutes(deps), // POST /v1/doctor
    ...activityRoutes(deps), // GET /v1/activity
    ...metricsRoutes(deps), // GET /metrics; on metrics.listen too
    ...accountRoutes(deps), // GET POST /v1/accounts, GET PATCH DELETE {account}, POST {account}/suspend, resume
    ...ipAssignmentRoutes(deps), // GET POST /v1/ip_assignments, DELETE {ip}
    ...blacklistRoutes(deps), // GET /v1/blacklists, POST check, GET POST zones, DELETE zones/{zone}, POST zones/{zone}/test
    ...keyRoutes(deps), // GET POST /v1/keys, GET PATCH {id}, POST {id}/revoke, disable, enable, rotate
    ...smtpCredentialRoutes(deps), // GET POST /v1/smtp_credentials, POST {id}/rotate, revoke
    ...auditRoutes(deps), // GET /v1/audit
    ...inboxRoutes(deps), // GET DELETE /v1/inbox
    ...tailRoutes(deps), // GET /v1/events/tail
    ...lockoutRoutes(deps), // GET /v1/lockouts, DELETE {ip}
    ...logRoutes(deps), // GET /v1/logs
    ...reloadRoutes(deps), // POST /v1/reload
    ...backupRoutes(deps), // GET POST /v1/backups
    ...certificateRoutes(deps), // GET /v1/certificates, POST renew, install
    ...databaseRoutes(deps), // GET POST /v1/database/check
    ...retentionRoutes(deps), // GET POST /v1/retention
    ...maintenanceRoutes(deps), // GET POST DELETE /v1/maintenance
    ...queueRoutes(deps), // GET /v1/queue, count, POST retry, hold, release, fail, delete
    ...queuePauseRoutes(deps), // GET /v1/queue/pauses, POST /v1/queue/pause, resume
    ...probeRoutes(deps), // POST /v1/probe
    ...messageWaitRoutes(deps), // GET /v1/messages/{id}/waits
    ...shapingRoutes(deps), // GET /v1/shaping, GET PATCH DELETE {name}
    ...recipientRoutes(deps), // POST /v1/recipients/forget
  ];
  return [...routes, ...descriptionRoutes(deps, routes)]; // GET /openapi.json, /docs
}
