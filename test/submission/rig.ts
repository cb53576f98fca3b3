// Submission over fakes that keep what they are given: a store that collects, a runner that counts its slots.
import { Refusal } from "../../src/errors.ts";
import { createIdMint } from "../../src/ids.ts";
import { createMessageTokens } from "../../src/mail/message-token.ts";
import { parseAddress, type Address } from "../../src/mail/address.ts";
import type { AcceptResult, BatchAcceptResult, NewMessage } from "../../src/model/acceptance.ts";
import type { PutContent } from "../../src/model/content.ts";
import type { DkimKey } from "../../src/model/dkim-key.ts";
import type { SenderDomain } from "../../src/model/domain.ts";
import type { BatchAnswer } from "../../src/model/idempotency.ts";
import type { Job } from "../../src/model/queued-recipient.ts";
import type { Rejection } from "../../src/model/statistics.ts";
import type { Suppression } from "../../src/model/suppression.ts";
import type { Reservation } from "../../src/queue/reservations.ts";
import type { Runner } from "../../src/queue/runner.ts";
import type { Arrival, Sender, Submission } from "../../src/submission/submission.ts";
import { createSubmission, type SubmissionDeps } from "../../src/submission/submit.ts";
import { newAccount } from "../support/account.ts";
import { ManualClock } from "../support/clock.ts";
import { makeJob, makeMessage } from "../support/jobs.ts";
import { asAdded } from "../support/domains.ts";

export class FakeStore {
  accepted: NewMessage[] = [];
  /** Every call of acceptMessage, refused ones too. */
  asked: NewMessage[] = [];
  spool = new Map<string, Buffer>();
  dropped: PutContent[] = [];
  suppressions: Suppression[] = [];
  /** Those that only the commit of a batch sees. */
  suppressedAtCommit: Suppression[] = [];
  rejections: Rejection[] = [];
  /** The answers that batches were to be kept with. */
  batches: (BatchAnswer | null)[] = [];
  isFull = false;
  /** What acceptMessage answers instead of accepting. */
  answer: AcceptResult | Error | null = null;

  store(): SubmissionDeps["store"] {
    return {
      full: async () => this.isFull,
      countRejection: (rejection) => void this.rejections.push(rejection),
      suppressed: async (accountKey, canonicals) =>
        this.suppressions.filter((s) => s.accountKey === accountKey && canonicals.includes(s.canonical)),
      putContent: async (bytes) => {
        const chunks: Uint8Array[] = [];
        for await (const chunk of bytes) chunks.push(Buffer.from(chunk));
        const name = `spool-${this.spool.size}`;
        this.spool.set(name, Buffer.concat(chunks));
        return { kind: "spool", name, sizeBytes: Buffer.concat(chunks).length };
      },
      dropContent: async (content) => void this.dropped.push(content),
      openContent: (ref, offset = 0) => {
        const bytes = (ref.kind === "spool" && this.spool.get(ref.name)) || Buffer.alloc(0);
        return slowly(chunksOf(bytes.subarray(offset), 10_000));
      },
      acceptMessage: async (input) => {
        this.asked.push(input);
        if (this.answer instanceof Error) throw this.answer;
        const result = this.answer ?? this.#known(input) ?? this.#take(input);
        return result;
      },
      acceptMessages: (inputs, answer) => this.#takeAll(inputs, answer),
    };
  }

  async #takeAll(inputs: NewMessage[], answer: BatchAnswer | null): Promise<BatchAcceptResult> {
    this.asked.push(...inputs);
    if (this.answer instanceof Error) throw this.answer;
    this.batches.push(answer);
    const refusals = inputs.map(({ recipients }) => {
      const entries = this.suppressedAtCommit.filter(({ canonical }) =>
        recipients.some((recipient) => recipient.canonical === canonical),
      );
      return entries.length > 0 ? { kind: "suppressed" as const, entries } : null;
    });
    if (refusals.some((refusal) => refusal !== null)) return { kind: "refused", refusals };
    const results = inputs.map((input) => this.#take(input));
    return {
      kind: "accepted",
      jobs: results.map((result) => (result.kind === "accepted" ? result.jobs : [])),
    };
  }

  /** The bytes of the message that was accepted last. */
  bytes(): Buffer {
    const { content } = this.last();
    return content.kind === "inline"
      ? Buffer.from(content.bytes)
      : (this.spool.get(content.name) ?? Buffer.alloc(0));
  }

  last(): NewMessage {
    const message = this.accepted.at(-1);
    if (!message) throw new Error("nothing was accepted");
    return message;
  }

  #known(input: NewMessage): AcceptResult | null {
    const { idempotency } = input;
    const before = this.accepted.find((one) => idempotency && one.idempotency?.key === idempotency.key);
    if (!before?.idempotency || !idempotency) return null;
    const { fingerprint, status, body } = before.idempotency;
    if (Buffer.compare(fingerprint, idempotency.fingerprint) !== 0) return { kind: "idempotency_conflict" };
    return { kind: "replayed", status, body };
  }

  #take(input: NewMessage): AcceptResult {
    this.accepted.push(input);
    const message = makeMessage({ id: input.message.id });
    const jobs = input.recipients.flatMap((recipient, i): Job[] =>
      recipient.leaseOwner !== null
        ? [makeJob(i + 1, { message, rcptTo: recipient.rcptTo, to: recipient.to })]
        : [],
    );
    return { kind: "accepted", jobs };
  }
}

/** A runner with `slots` in each scheduled queue. */
export class FakeRunner implements Pick<Runner, "reserve" | "cancelReservation" | "run" | "note"> {
  slots = 0;
  reserved: string[] = [];
  held = new Set<Reservation>();
  ran: Job[] = [];
  noted: { queueName: string; dueAt: number }[] = [];
  /** Header sections whose signature was begun before the commit, and how many slots were held then. */
  prepared: { section: string; held: number }[] = [];

  reserve = (queueName: string): Reservation | null => {
    if (this.slots === 0) return null;
    this.slots -= 1;
    this.reserved.push(queueName);
    const to = {
      prepare: (_message: unknown, section: Buffer) =>
        void this.prepared.push({ section: String(section), held: this.held.size }),
    };
    const reservation = { leaseOwner: "boot", to } as unknown as Reservation;
    this.held.add(reservation);
    return reservation;
  };
  cancelReservation = (reservation: Reservation): void => this.#letGo(reservation);
  run = (reservation: Reservation, job: Job): void => {
    this.#letGo(reservation);
    this.ran.push(job);
  };
  note = (queueName: string, dueAt: number): void => void this.noted.push({ queueName, dueAt });

  #letGo(reservation: Reservation): void {
    if (!this.held.delete(reservation)) throw new Error("this slot is not held");
  }
}

export const startMs = Date.parse("2026-11-27T09:00:00.000Z");

export function makeDomain(name: string, over: Partial<SenderDomain> = {}): SenderDomain {
  return {
    key: 1,
    id: "dom_01jdkq4y8z0000000000000001",
    accountKey: 1,
    name,
    status: "verified",
    returnPathDomain: `bounce.${name}`,
    records: [],
    dkimKeys: [],
    createdAt: 0,
    updatedAt: 0,
    verifiedAt: 0,
    checkedAt: 0,
    failingSince: null,
    ...asAdded,
    ...over,
  };
}

export function makeDkimKey(over: Partial<DkimKey> = {}): DkimKey {
  return {
    selector: "s1",
    algorithm: "ed25519-sha256",
    privatePem: "pem",
    publicKey: "p",
    status: "active",
    ...over,
  };
}

export function makeSuppression(email: string, over: Partial<Suppression> = {}): Suppression {
  return {
    accountKey: 1,
    canonical: email.toLowerCase(),
    email,
    reason: "hard_bounce",
    source: "system",
    description: null,
    messageId: null,
    eventId: null,
    smtpCode: "550",
    smtpStatus: "5.1.1",
    expiresAt: null,
    createdAt: startMs - 1000,
    updatedAt: startMs - 1000,
    ...over,
  };
}

export const liveSender: Sender = {
  account: newAccount({ id: "acct_01jdkq4y8z0000000000000001" }),
  test: false,
  apiKey: 7,
  quotas: [],
};
export const testSender: Sender = { ...liveSender, test: true };
export const http: Arrival = { ip: "192.0.2.9", helo: null, protocol: "HTTP" };
export const smtp: Arrival = { ip: "192.0.2.9", helo: "client.test", protocol: "ESMTPSA" };

export interface Rig {
  submission: Submission;
  store: FakeStore;
  runner: FakeRunner;
  clock: ManualClock;
  domains: Map<string, SenderDomain>;
  /** Sends as a live key unless told otherwise. */
  send: (json: unknown, sender?: Sender) => ReturnType<Submission["send"]>;
  /** Relays a mail to `rcptTo` (by default one recipient), in chunks of `chunkSize` bytes. */
  relay: (
    mail: string | Buffer,
    options?: { rcptTo?: string[]; chunkSize?: number; sender?: Sender },
  ) => Promise<string>;
}

/** Message tokens under a key of the tests. */
export const tokens = createMessageTokens(new Uint8Array(32).fill(7));

/** Every account's pools, the default one first. */
export function poolsNamed(first: string, ...others: string[]): SubmissionDeps["pools"] {
  const names = [first, ...others];
  return {
    nameFor: (_account, name) => (name === null ? first : names.includes(name) ? name : null),
    names: () => names,
  };
}

export function makeRig(over: { dev?: boolean; pools?: [string, ...string[]] } = {}): Rig {
  const store = new FakeStore();
  const runner = new FakeRunner();
  const clock = new ManualClock(startMs);
  const domains = new Map([["ok.test", makeDomain("ok.test")]]);
  const submission = createSubmission({
    store: store.store(),
    domains: {
      async senderFor(_account, name) {
        const domain = domains.get(name) ?? domains.get(name.slice(name.indexOf(".") + 1)) ?? null;
        return domain?.status === "verified" ? { ok: true, domain } : { ok: false, domain };
      },
    },
    pools: poolsNamed(...(over.pools ?? ["default"])),
    runner,
    config: {
      hostname: "mail.svc.test",
      limits: { maxQueue: 1000 },
      dev: over.dev ?? false,
    },
    clock,
    mint: createIdMint(),
    tokens,
  });
  return {
    submission,
    store,
    runner,
    clock,
    domains,
    send: (json, sender = liveSender) => submission.send(sender, json, http, null),
    relay: async (mail, { rcptTo = ["a@x.test"], chunkSize = 1_000_000, sender = liveSender } = {}) => {
      const envelope = { mailFrom: "me@ok.test", rcptTo: rcptTo.map(address), smtpUtf8: false };
      const { id } = await submission.relay(sender, envelope, chunksOf(Buffer.from(mail), chunkSize), smtp);
      return id;
    },
  };
}

export function address(text: string): Address {
  const parsed = parseAddress(text);
  if (!parsed.ok) throw new Error(`${text} ${parsed.issue}`);
  return parsed.value;
}

/** As a disk does: the loop turns between two chunks. */
async function* slowly(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    await new Promise((resolve) => setImmediate(resolve));
    yield chunk;
  }
}

async function* chunksOf(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield Buffer.from(bytes.subarray(at, at + size));
}

/** A request that is taken. */
export function good(over: Record<string, unknown> = {}): Record<string, unknown> {
  return { from: "shop@ok.test", to: "a@x.test", subject: "Hello", text: "Hi", ...over };
}

/** The refusal that `work` ends in; fails where it ends in anything else. */
export async function refusalOf(work: Promise<unknown>): Promise<Refusal> {
  const error = await work.then(
    () => new Error("it was accepted"),
    (reason: unknown) => reason,
  );
  if (error instanceof Refusal) return error;
  throw error;
}

/** `field code` of every problem that a refusal lists. */
export function rowsOf(refusal: Refusal): string[] {
  return (refusal.extras.errors ?? []).map(({ field, code }) => `${field} ${code}`);
}
