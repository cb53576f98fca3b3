// When what an account is shown last changed, by kind: what Last-Modified is made of. Every write names here, and
// nowhere else, whose things of which kind it changes; a new write does not compile without. Kept in memory, by the one
// process that writes: its start counts as a change, which costs a reader one answer that it had already.
// Times are whole seconds, as in HTTP. A change in a second in which somebody has asked counts as the next second's, so
// that whoever compares seconds never takes an old answer for the new one. A row's own time says more than its list's,
// but it was put down before the row was to be seen: it counts where both were within a second, and `late` says since when.
import { forwardTime, type Clock } from "../clock.ts";
import { resources, type LastChange, type Resource } from "../model/last-change.ts";
import type { AnsweredCall } from "./answered.ts";
import type { IntentName, WriteName, Writes } from "./writer.ts";

/** In place of an account: anybody's. */
const everyone = 0;

/** In place of a time: rows that are gone say nothing wrong about themselves. */
const removed = Infinity;

/** `writtenAt`: the time that the changed rows carry; left out where they carry none. */
type Touch = (accountKey: number, resource: Resource, writtenAt?: number) => void;
type Arg<K extends WriteName> = Parameters<Writes[K]>[0];
/** Of a write that was kept with its answer the result is not known here. */
type Result<K extends WriteName> = ReturnType<Writes[K]> | undefined;

const nothing = (): void => undefined;

/** The one place: what each write changes. */
const changesOf: { [K in WriteName]: (touch: Touch, arg: Arg<K>, result: Result<K>) => void } = {
  // messages and the queue
  acceptMessage(touch, { accountKey, createdAt }, result) {
    if (result?.kind === "accepted") touch(accountKey, "messages", createdAt);
  },
  acceptMessages(touch, { messages }, result) {
    if (result?.kind !== "accepted") return;
    for (const { accountKey, createdAt } of messages) touch(accountKey, "messages", createdAt);
  },
  claimDue(touch, { now }, result) {
    for (const { accountKey } of result?.messages ?? []) touch(accountKey, "messages", now);
    for (const accountKey of result?.heldOf ?? []) touch(accountKey, "messages");
  },
  releaseHeld: (touch, { accountKey }) => touch(accountKey, "messages"),
  settle(touch, { accountKey, at, suppression, catchInInbox }, result) {
    if (result === false) return;
    touch(accountKey, "messages", at);
    touch(accountKey, "events", at);
    if (suppression) touch(accountKey, "suppressions", at);
    if (catchInInbox) touch(accountKey, "inbox", at);
  },
  settleReports(touch, reports, results) {
    reports.forEach(({ at, event: { accountKey }, suppression }, index) => {
      if (results?.[index] !== "recorded") return;
      touch(accountKey, "messages", at);
      touch(accountKey, "events", at);
      if (suppression) touch(accountKey, "suppressions", at);
    });
  },
  cancelMessage: (touch, { accountKey, at }) => touch(accountKey, "messages", at),
  release: (touch) => touch(everyone, "messages"),
  takeBackLeases: (touch) => touch(everyone, "messages"),
  renewLeases: nothing, // how long a lease is shows nowhere

  // events and webhooks
  recordEvent: (touch, { accountKey, receivedAt }) => touch(accountKey, "events", receivedAt),
  createEndpoint: (touch, { accountKey, updatedAt }) => touch(accountKey, "webhooks", updatedAt),
  updateEndpoint(touch, { accountKey, change, discardBacklog }) {
    touch(accountKey, "webhooks", change.updatedAt);
    if (discardBacklog) touch(accountKey, "events");
  },
  rotateSecret: (touch, { accountKey, at }) => touch(accountKey, "webhooks", at),
  deleteEndpoint(touch, { accountKey }) {
    touch(accountKey, "webhooks", removed);
    touch(accountKey, "events", removed);
  },
  giveBackDeliveries(touch, { deliveries }) {
    for (const { accountKey } of deliveries) touch(accountKey, "events");
  },
  dropAttempts: nothing,
  dropDeliveries: nothing, // they went from sight with their endpoint
  discardBacklog: (touch, { accountKey }) => touch(accountKey, "events"),
  replayDeliveries: (touch, { accountKey }) => touch(accountKey, "events"),
  claimDeliveries(touch, { now }, result) {
    const [first] = result?.deliveries ?? [];
    if (first) touch(first.accountKey, "events", now);
  },
  settleDeliveries(touch, results) {
    for (const { accountKey, at } of results) {
      touch(accountKey, "events", at);
      touch(accountKey, "webhooks", at);
    }
  },

  // suppressions
  addSuppressions(touch, { entries, at }) {
    for (const { accountKey } of entries) touch(accountKey, "suppressions", at);
  },
  removeSuppression: (touch, { accountKey }) => touch(accountKey, "suppressions", removed),
  settleSecondLooks(touch, { suppress, at }) {
    for (const { entry } of suppress) touch(entry.accountKey, "suppressions", at);
  },

  // what changes rarely
  createAccount: (touch) => touch(everyone, "accounts"),
  changeAccount: (touch) => touch(everyone, "accounts"),
  pauseAccount: (touch) => touch(everyone, "accounts"),
  resumeAccount: (touch) => touch(everyone, "accounts"),
  deleteAccount: (touch) => touch(everyone, "accounts"),
  dropSuppressions: nothing, // they went from sight with their account
  changeApiKey: (touch, { accountKey }) => touch(accountKey, "keys"),
  rotateSmtpCredential: (touch, { accountKey }) => touch(accountKey, "smtp_credentials"),
  createApiKey: (touch, { accountKey }) => touch(accountKey, "keys"),
  setApiKeyStatus: (touch, { accountKey }) => touch(accountKey, "keys"),
  createSmtpCredential: (touch, { accountKey }) => touch(accountKey, "smtp_credentials"),
  revokeSmtpCredential: (touch, { accountKey }) => touch(accountKey, "smtp_credentials"),
  noteUse(touch, { apiKeys, smtpCredentials }) {
    if (apiKeys.length > 0) touch(everyone, "keys");
    if (smtpCredentials.length > 0) touch(everyone, "smtp_credentials");
  },
  createDomain: (touch, { accountKey }) => touch(accountKey, "domains"),
  saveDomain: (touch, { accountKey }) => touch(accountKey, "domains"),
  deleteDomain: (touch, { accountKey }) => touch(accountKey, "domains"),
  createPool: (touch, { accountKey }) => touch(accountKey, "ip_pools"),
  updatePool: (touch, { accountKey }) => touch(accountKey, "ip_pools"),
  deletePool: (touch, { accountKey }) => touch(accountKey, "ip_pools"),
  addAddress: (touch, { accountKey }) => touch(accountKey, "ip_pools"),
  updateAddress: (touch, { accountKey }) => touch(accountKey, "ip_pools"),
  removeAddress: (touch, { accountKey }) => touch(accountKey, "ip_pools"),
  saveLooks: (touch) => touch(everyone, "ip_pools"),
  assignAddress: (touch) => touch(everyone, "ip_pools"),
  unassignAddress: (touch) => touch(everyone, "ip_pools"),
  clearInbox: (touch, { accountKey }) => touch(accountKey, "inbox"),

  // statistics: a reading shows all that was counted before it, unless the store could not fold that
  count: (touch) => touch(everyone, "stats"),
  foldStats(touch, { late }) {
    if (late) touch(everyone, "stats");
  },

  // retention, and the store's own
  purge(touch, _request, result) {
    if (!result) return;
    if (result.content + result.messages > 0) {
      touch(everyone, "messages", removed);
      touch(everyone, "inbox", removed);
    }
    if (result.events > 0) touch(everyone, "events", removed);
    if (result.stats > 0) touch(everyone, "stats", removed);
  },
  forgetRecipient(touch, { accountKey }) {
    touch(accountKey, "messages"); // one that stays shows a recipient less, and no later time
    touch(accountKey, "events", removed);
    touch(accountKey, "inbox", removed);
  },
  secret: nothing,
  probe: nothing,
  setMaintenance: nothing, // the answers that show it are made anew each time
  recordAudit: nothing, // the same
};

/** The same, as it is called: the types are held above. */
const byName: Record<WriteName, (touch: Touch, arg: never, result: never) => void> = changesOf;

export interface Changes {
  /** A write was committed. Called before the one who waits for it is answered. */
  note(intent: IntentName, arg: unknown, result: unknown): void;
  /** To be asked before the rows are read, not after. */
  last(accountKey: number, of: readonly Resource[]): LastChange;
}

/** Seconds since 1970. */
interface Mark {
  changed: number;
  asked: number;
  late: number;
}

export function createChanges(clock: Clock): Changes {
  const now = forwardTime(clock);
  const started = Math.floor(now() / 1000) + 1; // whatever the process before did in this second
  const accounts = new Map<number, Record<Resource, Mark>>();

  const marksOf = (accountKey: number): Record<Resource, Mark> => {
    const known = accounts.get(accountKey);
    if (known) return known;
    const mark = (): Mark => ({ changed: started, asked: 0, late: started });
    const marks = Object.fromEntries(resources.map((name) => [name, mark()])) as Record<Resource, Mark>;
    accounts.set(accountKey, marks);
    return marks;
  };

  let at = 0; // of the write that is noted: the clock is read once for it
  const touch: Touch = (accountKey, resource, writtenAt = 0) => {
    const mark = marksOf(accountKey)[resource];
    const second = Math.floor(at / 1000);
    mark.changed = Math.max(mark.changed, mark.asked >= second ? mark.asked + 1 : second);
    if (at - writtenAt > 1000) mark.late = mark.changed;
  };

  return {
    note(intent, arg, result) {
      at = now();
      if (intent !== "answered") return byName[intent](touch, arg as never, result as never);
      const { write } = arg as AnsweredCall;
      const kept = (result as { kind: string }).kind === "kept";
      if (kept && write) byName[write.intent as WriteName](touch, write.arg as never, undefined as never);
    },
    last(accountKey, of) {
      const second = Math.floor(now() / 1000);
      const [own, shared] = [marksOf(accountKey), marksOf(everyone)];
      let [changed, late] = [started, started];
      for (const name of of) {
        own[name].asked = shared[name].asked = second;
        changed = Math.max(changed, own[name].changed, shared[name].changed);
        late = Math.max(late, own[name].late, shared[name].late);
      }
      return { at: changed * 1000, late: late * 1000 };
    },
  };
}
