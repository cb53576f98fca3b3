// The resources whose endpoints the API has. A new endpoint is an entry in resources/<noun>.ts, and nothing else; lists of the
// endpoints are made of the routes: docs/sending-by-rest.md, GET /openapi.json.
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
    ...sendingRoutes(deps),
    ...messageRoutes(deps),
    ...attemptRoutes(deps),
    ...messageContentRoutes(deps),
    ...eventRoutes(deps),
    ...webhookRoutes(deps),
    ...webhookDeliveryRoutes(deps),
    ...domainRoutes(deps),
    ...ipPoolRoutes(deps),
    ...ipRoutes(deps),
    ...suppressionRoutes(deps),
    ...statsRoutes(deps),
    ...errorRoutes(),
    ...healthRoutes(deps),
    // The operator's own, on the socket only:
    ...doctorRoutes(deps),
    ...activityRoutes(deps),
    ...metricsRoutes(deps),
    ...accountRoutes(deps),
    ...ipAssignmentRoutes(deps),
    ...blacklistRoutes(deps),
    ...keyRoutes(deps),
    ...smtpCredentialRoutes(deps),
    ...auditRoutes(deps),
    ...inboxRoutes(deps),
    ...tailRoutes(deps),
    ...lockoutRoutes(deps),
    ...logRoutes(deps),
    ...reloadRoutes(deps),
    ...backupRoutes(deps),
    ...certificateRoutes(deps),
    ...databaseRoutes(deps),
    ...retentionRoutes(deps),
    ...maintenanceRoutes(deps),
    ...queueRoutes(deps),
    ...queuePauseRoutes(deps),
    ...probeRoutes(deps),
    ...messageWaitRoutes(deps),
    ...shapingRoutes(deps),
    ...recipientRoutes(deps),
  ];
  return [...routes, ...descriptionRoutes(deps, routes)]; // GET /openapi.json, /docs
}
