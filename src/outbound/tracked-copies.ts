// The copies of a tracked message: each recipient's has links, a pixel and a List-Unsubscribe of its own, and is signed as
// it is. Made for an attempt, from a plan that is made once a message (tracking/copy-plan.ts). A small one is in
// memory; a large one is written twice from the stored message, to be hashed and to be sent: the tokens are made once,
// so both are the same octets. Large ones are planned few at a time, and of the processor an account has its share for
// them, and for small ones that are hard work.
import type { Clock } from "../clock.ts";
import type { WireMessage } from "../delivery/delivery.ts";
import { createFairSlots } from "../fairness.ts";
import type { Log } from "../log.ts";
import type { Source } from "../mail/conversion.ts";
import { BodyHasher } from "../mail/dkim.ts";
import { foldField, withFieldsAtEnd } from "../mail/header-write.ts";
import { MailSyntaxError } from "../mail/header.ts";
import { listUnsubscribe } from "../mail/list-unsubscribe.ts";
import type { Job, QueuedMessage, Unsigned } from "../model/queued-recipient.ts";
import type { MessageTracking, TokenRecipient } from "../model/tracking.ts";
import { createProcessorTime } from "../parsing/processor-time.ts";
import type { Store } from "../store/store.ts";
import { copyBody, copySection, pixelMarkup, type Fills } from "../tracking/copies.ts";
import { planCopy, type CopyPlan } from "../tracking/copy-plan.ts";
import type { TrackingTokens } from "../tracking/tokens.ts";
import { asciiForm } from "./ascii-form.ts";
import { createKept } from "./kept.ts";
import type { SigningDomains } from "./signing-domains.ts";

export interface TrackedCopiesDeps {
  store: Pick<Store, "openContent">;
  domainOf: SigningDomains;
  /** Null: the domain that must sign is gone. */
  sign(message: Unsigned, headerSection: Buffer, bodyHash: Uint8Array): Promise<Buffer | null>;
  sectionOf(message: QueuedMessage): Promise<Buffer>;
  tokens: Pick<TrackingTokens, "open" | "click" | "unsubscribe">;
  /** The `mailto:` by which this recipient unsubscribes; null where nothing takes its mail. */
  unsubscribeMailto(job: Pick<Job, "key" | "message">): string | null;
  clock: Clock;
  log: Pick<Log, "info">;
}

export interface TrackedCopy {
  wire: WireMessage;
  ascii(): Promise<WireMessage | null>;
}

/** `same`: nothing of it differs between recipients. Null: the domain that must sign is gone. */
export type TrackedCopies = (
  job: Pick<Job, "key" | "to" | "message">,
  tracking: MessageTracking,
) => Promise<TrackedCopy | "same" | null>;

/** In memory, and planned at once. */
const smallBytes = 65_536;
const plansKept = 100;
/** A small one whose plan takes longer is charged to its account: some hundred parts, or more than a thousand links. */
const freeMs = 4;
/** Large ones at once; the decoded HTML of each is in memory, twice. */
const largePlans = 2;
const largePatienceMs = 60_000;
const nothingTracked: CopyPlan = { parts: new Map(), targets: [], untouched: [], tookMs: 0, top: [] };

export function createTrackedCopies(deps: TrackedCopiesDeps): TrackedCopies {
  const { store, domainOf, sign, sectionOf, tokens, clock, log } = deps;
  const plans = createKept<CopyPlan>(clock, plansKept);
  const slots = createFairSlots({ slots: largePlans, patienceMs: largePatienceMs, lingering: 0, clock });
  const time = createProcessorTime(clock);

  const sourceOf = async (message: QueuedMessage): Promise<Source> => {
    const { content, headerLength } = message;
    if (content.sizeBytes > smallBytes)
      return { section: await sectionOf(message), body: () => store.openContent(content, headerLength) };
    const bytes = await collected(store.openContent(content));
    const body = [bytes.subarray(headerLength)];
    return { section: bytes.subarray(0, headerLength), body: () => inMemory(body) };
  };

  const plan = async (
    message: QueuedMessage,
    tracking: MessageTracking,
    source: Source,
  ): Promise<CopyPlan> => {
    try {
      const made = await planCopy(source, tracking);
      if (made.untouched.length > 0)
        log.info(
          { message: message.id, parts: made.untouched },
          "HTML goes out without tracking, or without some of it",
        );
      return made;
    } catch (error) {
      if (!(error instanceof MailSyntaxError)) throw error;
      log.info({ message: message.id, detail: error.message }, "a message goes out without tracking");
      return nothingTracked;
    }
  };
  /** One that may cost more than a moment waits until its account may. */
  const planLarge = async (
    message: QueuedMessage,
    tracking: MessageTracking,
    source: Source,
  ): Promise<CopyPlan> => {
    const { accountKey } = message;
    await time.turn(accountKey);
    const leave = await new Promise<() => void>((begin) => slots.enter(accountKey, begin));
    try {
      const found = await plan(message, tracking, source);
      time.spent(accountKey, found.tookMs);
      return found;
    } finally {
      leave();
    }
  };
  const planSmall: typeof planLarge = async (message, tracking, source) => {
    const found = await plan(message, tracking, source);
    if (found.tookMs > freeMs) time.spent(message.accountKey, found.tookMs);
    return found;
  };
  const planOf = async (
    message: QueuedMessage,
    tracking: MessageTracking,
    source: Source,
  ): Promise<CopyPlan> => {
    if (!tracking.opens && !tracking.clicks) return nothingTracked;
    const { accountKey, content } = message;
    const isSmall = content.sizeBytes <= smallBytes;
    const make = isSmall ? planSmall : planLarge;
    const made = (await plans(message.id, () => make(message, tracking, source))) ?? nothingTracked;
    if (isSmall && made.tookMs <= freeMs) return made;
    // A large copy is written twice, and either time costs about what the search did; one of many parts costs as much.
    await time.turn(accountKey);
    time.spent(accountKey, 2 * made.tookMs);
    return made;
  };

  return async (job, tracking) => {
    const { message } = job;
    const { accountKey, id: messageId, test, signingDomain } = message;
    const source = await sourceOf(message);
    const found = await planOf(message, tracking, source);
    if (found.parts.size === 0 && !tracking.unsubscribe) return "same";
    const base = (await domainOf(accountKey, signingDomain)).trackingBase;
    const recipient: TokenRecipient = { accountKey, messageId, recipientKey: job.key, email: job.to, test };
    const fills: Fills = {
      links: found.targets.map((target) => `${base}/c/${tokens.click(recipient, target)}`),
      pixel: pixelMarkup(`${base}/o/${tokens.open(recipient)}`),
    };
    const fields = tracking.unsubscribe
      ? listUnsubscribe({
          url: `${base}/u/${tokens.unsubscribe(recipient)}`,
          mailto: deps.unsubscribeMailto(job),
        })
      : [];
    const section = withFieldsAtEnd(
      copySection(source.section, found, fills),
      fields.map(([name, value]) => foldField(name, value)).join(""),
    );
    const body = await bodyOf(message, source, found, fills);
    const signature = await sign(message, section, body.hash);
    if (signature === null) return null;
    return {
      wire: {
        signature,
        sizeBytes: section.length + body.sizeBytes,
        async *open() {
          yield section;
          yield* body.open();
        },
      },
      ascii: () => asciiForm({ section, body: body.open }, (head, hash) => sign(message, head, hash)),
    };
  };
}

interface Body {
  hash: Uint8Array;
  sizeBytes: number;
  open(): AsyncIterable<Buffer>;
}

async function bodyOf(
  { content, headerLength, bodyHash }: QueuedMessage,
  source: Source,
  plan: CopyPlan,
  fills: Fills,
): Promise<Body> {
  if (plan.parts.size === 0)
    return { hash: bodyHash, sizeBytes: content.sizeBytes - headerLength, open: source.body };
  const hasher = new BodyHasher();
  const kept: Buffer[] | null = content.sizeBytes > smallBytes ? null : [];
  let sizeBytes = 0;
  for await (const chunk of copyBody(source, plan, fills)) {
    hasher.update(chunk);
    sizeBytes += chunk.length;
    kept?.push(chunk);
  }
  const open = (): AsyncIterable<Buffer> => (kept ? inMemory(kept) : copyBody(source, plan, fills));
  return { hash: hasher.digest(), sizeBytes, open };
}

async function* inMemory(chunks: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* chunks;
}

async function collected(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
}
