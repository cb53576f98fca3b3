// The last step of every acceptance: one transaction that holds the message, its recipients and
// what proves it, and then the start of those that have a slot. Both doors end here.
import type { Config } from "../config.ts";
import { Refusal } from "../errors.ts";
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
} from "../store/store.ts";
import { noRoom, refuseProblems, suppressedProblems } from "./refusals.ts";

export interface AcceptDeps {
  store: Pick<Store, "acceptMessage" | "full">;
  runner: Pick<Runner, "reserve" | "forgo" | "run" | "note">;
  config: { limits: Pick<Config["limits"], "maxQueue">; dev: boolean };
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

/** A recipient and the slot that is kept for it, if there is one. */
interface Held {
  recipient: NewRecipient;
  reservation: Reservation | null;
}

/** Throws Refusal: recipient_suppressed, duplicate_idempotency_key, service_overloaded; StoreUnavailable. */
export async function accept(deps: AcceptDeps, mail: Acceptable): Promise<Accepted> {
  const { store, runner, config } = deps;
  if (store.full()) throw noRoom("the disk is nearly full");
  const held: Held[] = [];
  let result: AcceptResult | null = null;
  try {
    for (const recipient of mail.recipients) held.push(hold(deps, mail, recipient));
    const recipients = held.map(({ recipient }) => recipient);
    result = await store.acceptMessage({ ...mail, recipients, maxQueue: config.limits.maxQueue });
  } finally {
    if (result?.kind !== "accepted")
      for (const { reservation } of held) if (reservation) runner.forgo(reservation);
  }
  if (result.kind === "accepted") {
    start(runner, held, result.jobs, mail.sendAt ?? mail.createdAt);
    return { kind: "accepted" };
  }
  return refused(result, held);
}

function hold({ runner, config }: AcceptDeps, mail: Acceptable, to: Acceptable["recipients"][number]): Held {
  const { type, address } = to;
  const { test, ipPool } = mail.message;
  const lane = test || config.dev ? sandboxLane : laneOf(ipPool, address.ascii);
  const reservation = mail.sendAt === null ? runner.reserve(lane) : null;
  const recipient: NewRecipient = {
    type,
    to: address.email,
    rcptTo: rcptTo(address),
    canonical: canonicalAddress(address),
    domain: address.ascii,
    lane,
    lease: reservation?.lease ?? null,
  };
  return { recipient, reservation };
}

/** `jobs`: of the recipients that hold a slot, in their order. */
function start(
  runner: AcceptDeps["runner"],
  held: Held[],
  jobs: Extract<AcceptResult, { kind: "accepted" }>["jobs"],
  dueAt: number,
): void {
  const next = jobs.values();
  for (const { recipient, reservation } of held) {
    if (!reservation) {
      runner.note(recipient.lane, dueAt);
      continue;
    }
    const { value: job } = next.next();
    if (job) runner.run(reservation, job);
    else runner.forgo(reservation);
  }
}

function refused(result: Exclude<AcceptResult, { kind: "accepted" }>, held: Held[]): Accepted {
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
    case "suppressed": {
      const typeOf = new Map(held.map(({ recipient }) => [recipient.canonical, recipient.type]));
      refuseProblems([suppressedProblems(result.entries, (canonical) => typeOf.get(canonical) ?? "to")]);
      throw new Error("a suppressed result names its entries");
    }
  }
}
