// What each write changes for Last-Modified (changes.ts).
import { everyone, nothing, removed, type Touch, type Touches } from "../changes.ts";
import type { AnsweredCall, AnsweredOutcome } from "./idempotent-write.ts";
import type { Writes } from "./writer.ts";

/** What each write changes; a new one does not compile without. */
const changesOf: Touches<Writes> = {
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
const byName: Record<string, (touch: Touch, arg: never, result: never) => void> = changesOf;

/** Of every command that the writer runs. */
export const touches = {
  ...byName,
  answered(touch: Touch, { write }: AnsweredCall, result: AnsweredOutcome) {
    if (result.kind === "kept" && write)
      byName[write.command]?.(touch, write.arg as never, undefined as never);
  },
};
