// The last step of every acceptance: one transaction that holds the message, its recipients and
// what proves it, and then the start of those that have a slot. Both doors end here.
import type { Config } from "../config.ts";
import { Refusal } from "../errors.ts";
import { isoTime } from "../clock.ts";
import type { Address } from "../mail/address.ts";
import { canonicalAddress, rcptTo } from "../mail/address.ts";
import { laneOf, sandboxLane } from "../queue/lane.ts";
import type { Reservation, Runner } from "../queue/runner.ts";
import type {
  AcceptResult,
  IdempotencyRecord,
  NewMessage,
  NewRecipient,
  PutContent,
  Store,
  Suppression,
} from "../store/store.ts";

export interface AcceptDeps {
  store: Pick<Store, "acceptMessage" | "full">;
  runner: Pick<Runner, "reserve" | "forgo" | "run" | "note">;
  config: Pick<Config, "limits" | "dev">;
}

export interface Acceptable {
  message: NewMessage["message"];
  content: PutContent;
  recipients: { type: "to" | "cc" | "bcc"; address: Address }[];
  createdAt: number;
  sendAt: number | null;
  idempotency: IdempotencyRecord | null;
}

export type Accepted = { kind: "accepted" } | { kind: "replayed"; status: number; body: string };

/** Seconds after which a client may expect room again. */
const retryAfterSeconds = 5;

/** Throws Refusal: recipient_suppressed, duplicate_idempotency_key, service_overloaded; StoreUnavailable. */
export async function accept(deps: AcceptDeps, mail: Acceptable): Promise<Accepted> {
  const { store, runner } = deps;
  if (store.full()) throw noRoom("the disk is nearly full");
  const reservations: (Reservation | null)[] = [];
  const recipients = mail.recipients.map(({ type, address }): NewRecipient => {
    const lane =
      mail.message.test || deps.config.dev ? sandboxLane : laneOf(mail.message.ipPool, address.ascii);
    const reservation = mail.sendAt === null ? runner.reserve(lane) : null;
    reservations.push(reservation);
    return {
      type,
      to: address.email,
      rcptTo: rcptTo(address),
      canonical: canonicalAddress(address),
      domain: address.ascii,
      lane,
      lease: reservation?.lease ?? null,
    };
  });
  const { message, content, createdAt, sendAt, idempotency } = mail;
  let result: AcceptResult | null = null;
  try {
    result = await store.acceptMessage({
      message,
      content,
      createdAt,
      sendAt,
      recipients,
      idempotency,
      maxQueue: deps.config.limits.maxQueue,
    });
  } finally {
    if (result?.kind !== "accepted")
      for (const reservation of reservations) if (reservation) runner.forgo(reservation);
  }
  if (result.kind === "accepted") {
    const jobs = result.jobs.values();
    for (const reservation of reservations) {
      const job = reservation ? jobs.next().value : undefined;
      if (reservation && job) runner.run(reservation, job);
    }
    for (const { lane, lease } of recipients) if (!lease) runner.note(lane, sendAt ?? createdAt);
    return { kind: "accepted" };
  }
  return refused(result);
}

function refused(result: Exclude<AcceptResult, { kind: "accepted" }>): Accepted {
  switch (result.kind) {
    case "replayed":
      return result;
    case "idempotency_conflict":
      throw new Refusal(
        "duplicate_idempotency_key",
        "this Idempotency-Key was used with another request in the last 24 hours; use a new key",
      );
    case "queue_full":
      throw noRoom("the queue is full");
    case "suppressed":
      throw suppressedRefusal(result.entries);
  }
}

function noRoom(why: string): Refusal {
  return new Refusal("service_overloaded", `${why}; nothing was accepted, try again later`, {
    retry_after_seconds: retryAfterSeconds,
  });
}

/** What REST answers for recipients on the suppression list; `problems` of the same request stand beside. */
export function suppressedRefusal(entries: Suppression[]): Refusal {
  return new Refusal(
    "recipient_suppressed",
    `suppressed: ${entries.map(({ email }) => email).join(", ")}`,
    suppressedExtras(entries),
  );
}

export function suppressedExtras(entries: Suppression[]) {
  return {
    suppressed_recipients: entries.map(({ email, reason, createdAt }) => ({
      email,
      reason,
      created_at: isoTime(createdAt),
    })),
  };
}
