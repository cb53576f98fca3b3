// Each call of the Store, handed to the one that serves it: writes to the group commit, look-ups by key to the loop's
// own connection, lists to the reader's thread. No SQL here; what a call means stands in interface/. Over 300 lines
// because that interface is long: a short function a call.
import { statSync } from "node:fs";
import type { Clock } from "../../clock.ts";
import { decodeCursor, encodeCursor } from "../../cursor.ts";
import type { NewMessage } from "../../model/acceptance.ts";
import type { ContentRef } from "../../model/content.ts";
import type { Page, PageRequest } from "../../model/page.ts";
import type { Job } from "../../model/queued-recipient.ts";
import type { Suppression } from "../../model/suppression.ts";
import { jobsOf, packBatch, packMessage } from "./acceptance.ts";
import type { Inserted } from "./acceptance.ts";
import { runAnswered } from "./with-idempotency.ts";
import type { Changes } from "../changes.ts";
import type { Spool } from "../spool.ts";
import { kindOf } from "../cursor.ts";
import type { PageAt, PageFound } from "../cursor.ts";
import type { Commit } from "../interface/engine.ts";
import type { Lookups } from "./lookups.ts";
import type { PragmasReadBack } from "./engine/open.ts";
import type { UnsentPiece } from "./queue-views.ts";
import { jobsOfClaim } from "./queue.ts";
import { createRowCache, createByteCache } from "./engine/cache.ts";
import { packSettlement } from "./settlement.ts";
import type { ReplayedPiece, ReplayPiece } from "./webhook-replay.ts";
import type { Call } from "./engine/group-commit.ts";
import type { Space } from "./engine/space.ts";
import type { Questions } from "./reader.ts";
import type { Remote } from "./remote.ts";
import type { Writes } from "./writer.ts";
import type { StatsCalls } from "./stats-calls.ts";
import { ContentGone, LimitReached } from "../store.ts";
import type { Store } from "../store.ts";
import type { Over } from "./suppressions.ts";
import { attemptsPiece, discardPiece } from "./webhooks.ts";

/** Enough for what is in flight; a message that is deferred is read back when its time comes. */
const recentContentBytes = 2 * 1024 * 1024;

export interface CallParts {
  path: string;
  pragmas: PragmasReadBack;
  clock: Clock;
  write: Remote<Writes>;
  /** The same, as the engine takes it. */
  call: Call;
  /** Clearing up in pieces once a write is done; at once where nothing else is given. */
  after?: (work: () => Promise<void>) => Promise<void>;
  /** Writes that go ahead of a write, in pieces; the writer itself where nothing else is given. */
  ahead?: Remote<Writes>;
  lists: Remote<Questions>;
  checkpoint(): Promise<void>;
  lookups: Lookups;
  changes: Pick<Changes, "last">;
  spool: Spool;
  space: Space;
  stats: StatsCalls;
  listeners: Set<(commit: Commit) => void>;
  close(): Promise<void>;
}

export function createCalls(parts: CallParts): Store {
  const { path, pragmas, clock, write, lists, checkpoint, lookups, changes, spool, space, stats, listeners } =
    parts;
  const { ahead = write, after = (work) => work() } = parts;
  let closed: Promise<void> | null = null;
  const recent = createByteCache(recentContentBytes);
  const rare = createRowCache();
  /** A write to what `rare` holds. */
  const rarely = <T>(write: Promise<T>): Promise<T> => write.finally(() => rare.clear());

  /** What a deleted endpoint left. */
  const dropDeliveries = async (key: number): Promise<void> => {
    await inPieces(() => ahead.dropDeliveries({ key }));
    await inPieces(() => ahead.dropAttempts({ key }), attemptsPiece);
  };

  /** The jobs of a message that is on disk; what their first attempts are about to read is kept at hand. */
  const started = (message: NewMessage, inserted: Inserted): Job[] => {
    const jobs = jobsOf(message, inserted);
    const [first] = jobs;
    if (first && message.content.kind === "inline")
      recent.keep(first.message.key, asBuffer(message.content.bytes));
    return jobs;
  };

  return {
    // access
    accountByName: async (name) => rare.get(`name ${name}`, () => lookups.accountByName(name)),
    accountByKey: async (key) => rare.get(`key ${key}`, () => lookups.accountByKey(key)),
    accountById: async (id) => rare.get(`id ${id}`, () => lookups.accountById(id)),
    createAccount: (account) => rarely(write.createAccount(account)),
    async listAccounts(page) {
      const after = Number(decodeCursor("c", page.cursor, ["number"])?.[0] ?? 0);
      return pageOf("c", pageFound(lookups.accounts(after, page.limit + 1), page.limit));
    },
    changeAccount: (id, change) => rarely(write.changeAccount({ id, change })),
    async hasUnsent(accountKey) {
      for (let before: UnsentPiece["next"] = null; ;) {
        const piece: UnsentPiece = await lists.unsentOf({ accountKey, before });
        if (piece.unsent || piece.next === null) return piece.unsent;
        before = piece.next;
      }
    },
    async deleteAccount(id, at) {
      const deleted = await rarely(write.deleteAccount({ id, at }));
      if (deleted === null) return false;
      const { key: accountKey, endpoints } = deleted;
      await after(async () => {
        for (const key of endpoints) await dropDeliveries(key);
        await inPieces(() => ahead.dropSuppressions({ accountKey }));
      });
      return true;
    },
    async createApiKey({ hash, ...key }) {
      return {
        ...key,
        key: await write.createApiKey(key, [hash]),
        lastUsedAt: null,
        revokedAt: null,
      };
    },
    apiKeyByHash: async (hash) => lookups.apiKeyByHash(hash),
    apiKey: async (accountKey, id) => lookups.apiKey(accountKey, id),
    async listApiKeys(accountKey, page) {
      const after = Number(decodeCursor("k", page.cursor, ["number"])?.[0] ?? 0);
      return pageOf("k", pageFound(lookups.apiKeys(accountKey, after, page.limit + 1), page.limit));
    },
    changeApiKey: (accountKey, id, change) => write.changeApiKey({ accountKey, id, change }),
    setApiKeyStatus: (accountKey, id, status, at) => write.setApiKeyStatus({ accountKey, id, status, at }),
    async createSmtpCredential({ hash, ...credential }) {
      const key = await write.createSmtpCredential(credential, [hash]);
      return { ...credential, key, lastUsedAt: null, revokedAt: null };
    },
    smtpCredentialByHash: async (accountKey, test, hash) => lookups.credentialByHash(accountKey, test, hash),
    listSmtpCredentials: async (accountKey) => lookups.credentials(accountKey),
    rotateSmtpCredential: (accountKey, id, { hash, ...fresh }, at) =>
      write.rotateSmtpCredential({ accountKey, id, fresh, at }, [hash]),
    revokeSmtpCredential: (accountKey, id, at) => write.revokeSmtpCredential({ accountKey, id, at }),
    noteUse: (use) => write.noteUse(use),

    // domains
    async createDomain(domain, most) {
      const key = within(await rarely(write.createDomain({ ...domain, ...mostOf(most) })));
      return key === null ? null : { ...domain, key };
    },
    domainByName: async (accountKey, name) =>
      rare.get(`domain ${accountKey} ${name}`, () => lookups.domainByName(accountKey, name)),
    countDomains: async (accountKey) => lookups.countDomains(accountKey),
    listDomains: async (accountKey) => lookups.domains(accountKey),
    domainsToCheck: async (pendingBefore, othersBefore, limit) =>
      lookups.domainsToCheck(pendingBefore, othersBefore, limit),
    saveDomain: (domain) => rarely(write.saveDomain(domain)),
    deleteDomain: (accountKey, name) => rarely(write.deleteDomain({ accountKey, name })),

    // content and messages
    putContent: (bytes) => spool.put(bytes),
    dropContent: (content) => spool.drop(content),
    openContent: (ref, offset = 0) =>
      ref.kind === "spool"
        ? spool.open(ref.name, offset)
        : openInline(recent.find(ref.id) ?? lookups.content(ref.id), ref, offset),
    spentQuota: async (quotas, at) => lookups.spentQuota(quotas, at),
    async acceptMessage(message) {
      const { packed, blobs } = packMessage(message, space.room());
      const accepted = await write.acceptMessage(packed, blobs);
      if (accepted.kind !== "accepted") return accepted;
      return { kind: "accepted", jobs: started(message, accepted) };
    },
    async acceptMessages(messages, answer) {
      const { packed, blobs } = packBatch(messages, answer, space.room());
      const result = await write.acceptMessages(packed, blobs);
      if (result.kind !== "accepted") return result;
      const jobs = messages.map((message, index) => {
        const inserted = result.messages[index];
        return inserted ? started(message, inserted) : [];
      });
      return { kind: "accepted", jobs };
    },
    idempotent: async (accountKey, test, key, notBefore) => lookups.answer(accountKey, test, key, notBefore),
    answered: (request, effect, answer) =>
      rarely(
        runAnswered(
          parts.call,
          (view) => createCalls({ ...parts, ...view, ahead: write }),
          request,
          effect,
          answer,
        ),
      ),
    message: async (accountKey, id) => lookups.messages.record(accountKey, id, clock.now()),
    async listMessages(accountKey, filter, page) {
      const kind = kindOf("m", filter);
      const at = pageAt(kind, page, filter.to === undefined ? ["number", "number"] : ["number"]);
      return pageOf(kind, await lists.listMessages({ accountKey, filter, page: at, now: clock.now() }));
    },
    attempts: (accountKey, messageId) => lists.attempts({ accountKey, messageId }),
    cancelMessage: (accountKey, id, at) => write.cancelMessage({ accountKey, id, at }),

    // queue
    lanes: (afterLane, limit) => lists.lanes({ afterLane, limit }),
    async claimDue(claim) {
      const found = await write.claimDue(claim);
      return { jobs: jobsOfClaim(found, claim.leaseUntil), nextDueAt: found.nextDueAt };
    },
    renewLeases: (owner, until) => write.renewLeases({ owner, until }),
    release: (owner, recipientKeys, dueAt) => write.release({ owner, recipientKeys, dueAt }),
    takeBackLeases: (owner, now, localLane) => write.takeBackLeases({ owner, now, localLane }),
    settle: (settlement) => write.settle(packSettlement(settlement)),
    queueCounts: () => lists.queueCounts({ now: clock.now() }),

    // holds
    pauseAccount: (accountKey, at, reason, audit = null) =>
      rarely(write.pauseAccount({ accountKey, at, reason, audit })),
    resumeAccount: (accountKey, guarded) => rarely(write.resumeAccount({ accountKey, guarded })),
    pausedAccounts: async () => lookups.pausedAccounts(),
    accountsOnHold: async () => lookups.accountsOnHold(),
    releaseHeld: (accountKey, at, limit) => write.releaseHeld({ accountKey, at, limit }),

    // maintenance
    maintenance: async () => lookups.maintenance(),
    setMaintenance: (window) => write.setMaintenance(window),

    // reports
    sentMessage: async (of) => lookups.sent(of, clock.now()),
    settleReports: (reports) => write.settleReports(reports),

    // events
    recordEvent: (event) => write.recordEvent(event),
    accountsWithEvents: (afterSeq) => lists.accountsWithEvents({ afterSeq }),
    async listEvents(accountKey, filter, page) {
      const at = pageAt("e", page, ["number"]);
      return pageOf("e", await lists.listEvents({ accountKey, filter, page: at }));
    },

    // suppressions
    suppression: async (accountKey, canonical, now) => lookups.suppression(accountKey, canonical, now),
    async suppressed(accountKey, canonicals, now) {
      const entries = canonicals.map((canonical) => lookups.suppression(accountKey, canonical, now));
      return entries.filter((entry): entry is Suppression => entry !== null);
    },
    async listSuppressions(accountKey, filter, page) {
      const kind = kindOf("s", filter);
      const at = pageAt(kind, page, ["string"]);
      return pageOf(kind, await lists.listSuppressions({ accountKey, filter, page: at, now: clock.now() }));
    },
    async addSuppressions(entries, at, most) {
      const changes = within(await write.addSuppressions({ entries, at, ...mostOf(most) }));
      const count = (kind: string): number => changes.filter(({ change }) => change === kind).length;
      const rows = changes.map(({ row }) => row);
      return { added: count("added"), updated: count("updated"), unchanged: count("unchanged"), rows };
    },
    removeSuppression: (accountKey, canonical) => write.removeSuppression({ accountKey, canonical }),
    secondLooksDue: (now, limit) => lists.secondLooksDue({ now, limit }),
    settleSecondLooks: (looks) => write.settleSecondLooks(looks),
    domainsDelivered: (limit) => lists.domainsDelivered({ limit }),

    // webhooks
    async createEndpoint(endpoint, most) {
      const key = within(await write.createEndpoint({ ...endpoint, ...mostOf(most) }));
      return { ...endpoint, key };
    },
    endpoint: async (accountKey, id) => lookups.endpoint(accountKey, id),
    endpointByKey: async (key) => lookups.endpointByKey(key),
    listEndpoints: async (accountKey) => lookups.endpoints(accountKey),
    async updateEndpoint(accountKey, id, change, { discardBacklog = false } = {}) {
      const endpoint = lookups.endpoint(accountKey, id);
      if (!endpoint) return null;
      const { key } = endpoint;
      if (discardBacklog) await inPieces(() => ahead.discardBacklog({ accountKey, key }));
      return write.updateEndpoint({ accountKey, key, change, discardBacklog });
    },
    async rotateSecret(accountKey, id, rotation) {
      const endpoint = lookups.endpoint(accountKey, id);
      return endpoint && write.rotateSecret({ accountKey, key: endpoint.key, ...rotation });
    },
    async replayDeliveries(accountKey, id, which, at) {
      const endpoint = lookups.endpoint(accountKey, id);
      if (!endpoint) return null;
      let total = 0;
      let from: number | null = 0;
      while (from !== null) {
        const piece: ReplayPiece = { accountKey, endpointKey: endpoint.key, which, afterSeq: from, at };
        const done: ReplayedPiece = await ahead.replayDeliveries(piece);
        total += done.queued;
        from = done.next;
      }
      return total;
    },
    async deleteEndpoint(accountKey, id) {
      const key = await write.deleteEndpoint({ accountKey, id });
      if (key === null) return false;
      await after(() => dropDeliveries(key));
      return true;
    },
    endpointsDue: async () => lookups.endpointsDue(),
    claimDeliveries: (claim) => write.claimDeliveries(claim),
    settleDeliveries: (results) => write.settleDeliveries(results),
    giveBackDeliveries: (deliveries, at) =>
      write.giveBackDeliveries({
        at,
        deliveries: deliveries.map(({ body: _body, eventId: _id, ...delivery }) => delivery),
      }),
    async listDeliveries(accountKey, id, filter, page) {
      const endpoint = lookups.endpoint(accountKey, id);
      if (!endpoint) return null;
      const at = pageAt("d", page, ["number", "number", "number"]);
      const endpointKey = endpoint.key;
      return pageOf("d", await lists.listDeliveries({ accountKey, endpointKey, filter, page: at }));
    },

    // audit
    recordAudit: (entries) => write.recordAudit({ entries }),
    async listAudit(filter, page) {
      const at = pageAt("u", page, ["number", "number"]);
      return pageOf("u", await lists.listAudit({ filter, page: at }));
    },

    // pools
    listPools: async (accountKey) => lookups.pools.of(accountKey),
    accountsWithPools: async () => lookups.pools.accounts(),
    createPool: (pool) => write.createPool(pool),
    updatePool: (accountKey, name, change, at) => write.updatePool({ accountKey, name, change, at }),
    deletePool: (accountKey, name, lanes) => write.deletePool({ accountKey, name, lanes }),
    addAddress: (accountKey, pool, address, at, rules = {}) =>
      write.addAddress({ accountKey, pool, address, at, rules }),
    updateAddress: (accountKey, pool, address, change, at) =>
      write.updateAddress({ accountKey, pool, address, change, at }),
    removeAddress: (accountKey, pool, address, at) => write.removeAddress({ accountKey, pool, address, at }),
    saveLooks: (looks, at) => write.saveLooks({ looks, at }),
    mayHoldAddress: async (accountKey, address) => lookups.assignments.isOwn(accountKey, address),
    listAssignments: async () => lookups.assignments.all(),
    assignAddress: (accountKey, address, at) => write.assignAddress({ accountKey, address, at }),
    unassignAddress: (address, at) => write.unassignAddress({ address, at }),

    // inbox
    async listInbox(accountKey, page) {
      return pageOf("i", await lists.listInbox({ accountKey, page: pageAt("i", page, ["number"]) }));
    },
    clearInbox: (accountKey) => write.clearInbox({ accountKey }),

    // one person
    async forgetRecipient(accountKey, canonical, afterKey) {
      const { files, ...forgotten } = await write.forgetRecipient({
        accountKey,
        canonical,
        afterKey,
      });
      if (forgotten.content > 0) recent.clear();
      await unlinkAll(spool, files);
      return forgotten;
    },

    // statistics
    countRejection: (rejection) => stats.countRejection(rejection),
    statsTotals: (accountKey, range) => stats.statsTotals(accountKey, range),
    statsSums: (of, bounds) => stats.statsSums(of, bounds),
    statsList: (of, range) => stats.statsList(of, range),
    foldStats: () => stats.foldStats(),

    // retention
    async purge(request) {
      const { files, shorter, ...purged } = await write.purge(request);
      if (purged.content > 0) recent.clear();
      await unlinkAll(spool, files);
      if (shorter) await checkpoint();
      return { ...purged, files: files.length };
    },

    // the store itself
    secret: async (name) => lookups.secret(name) ?? (await write.secret({ name })),
    health: async () => ({
      ...pragmas,
      freeBytes: space.freeBytes(),
      walBytes: statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0,
      writable: closed === null && space.writable(),
    }),
    async lastChange(accountKey, of) {
      const change = changes.last(accountKey, of);
      // Some of it changes with time alone, and no row is touched by that.
      const passed = lookups.lastPassed(accountKey, of, clock.now());
      return { ...change, at: Math.max(change.at, passed === null ? 0 : secondAfter(passed)) };
    },
    full: () => space.full(),
    onCommit(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    close: () => (closed ??= parts.close()),
  };
}

/** One read: a row's bytes are in memory as a whole or not at all. */
async function* openInline(
  bytes: Buffer | null,
  ref: Extract<ContentRef, { kind: "inline" }>,
  offset: number,
): AsyncIterable<Buffer> {
  if (!bytes) throw new ContentGone(`the content of message ${ref.id} was removed`);
  if (offset < bytes.byteLength) yield bytes.subarray(offset);
}

/** What was written; a write that was refused by a limit throws. */
function within<T>(result: T | Over): T {
  if (typeof result === "object" && result !== null && "over" in result) throw new LimitReached(result.over);
  return result;
}

const mostOf = (most: number | undefined): { most?: number } => (most === undefined ? {} : { most });

/** The start of the second after a moment. */
function secondAfter(ms: number): number {
  return (Math.floor(ms / 1000) + 1) * 1000;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

async function inPieces(piece: () => Promise<number>, size = discardPiece): Promise<void> {
  while ((await piece()) === size) continue;
}

/** All of them, whatever one says; what stays is an orphan, swept at the next start. */
async function unlinkAll(spool: Spool, names: string[]): Promise<void> {
  const drops = names.map((name) => spool.drop({ kind: "spool", name, sizeBytes: 0 }));
  for (const drop of await Promise.allSettled(drops)) if (drop.status === "rejected") throw drop.reason;
}

function pageAt(kind: string, page: PageRequest, shape: ("string" | "number")[]): PageAt {
  return { limit: page.limit, after: decodeCursor(kind, page.cursor, shape) };
}

/** `rows`: in the order of their keys, one more than the page holds where there are more. */
function pageFound<T extends { key: number }>(rows: T[], limit: number): PageFound<T> {
  const shown = rows.slice(0, limit);
  const last = rows.length > limit ? shown.at(-1) : undefined;
  return { rows: shown, next: last ? [last.key] : null, hasMore: last !== undefined };
}

function pageOf<T>(kind: string, { rows, next, hasMore }: PageFound<T>): Page<T> {
  return { rows, next: next === null ? null : encodeCursor(kind, next), hasMore };
}
