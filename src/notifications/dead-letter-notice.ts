// The operator's mail when an event could not be delivered to a webhook endpoint in all its attempts. At most one an
// endpoint and hour (notices.ts).
import type { DeadLetter } from "../webhooks/results.ts";
import type { Notices } from "./notices.ts";

export async function notifyDeadLetter(
  notices: Pick<Notices, "notify">,
  { endpoint, eventId, attempts, lastStatus }: DeadLetter,
): Promise<void> {
  await notices.notify(
    `dead_letter:${endpoint.id}`,
    `events for ${new URL(endpoint.url).host} could not be delivered`,
    `The webhook endpoint ${endpoint.id} (${endpoint.url}) refused event ${eventId} in all ${attempts} attempts; ` +
      `its last answer was ${lastStatus ?? "none"}. The event stays in GET /v1/events for 30 days.\n\n` +
      `What to do: repair the endpoint, then list the events that it missed: svc events list --webhook ${endpoint.id}\n`,
  );
}
