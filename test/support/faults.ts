// What goes wrong between a sender and its receivers, by chance that a seed decides: on a share of the connections, of the
// transactions and of the questions to the DNS. It keeps book of what it did, above all of the mails that were taken and
// whose final reply was lost: those alone may come twice.
import { createRandom, type Random } from "../../bench/simulate/random.ts";
import type { Failure } from "./dns-server.ts";
import type { ReceivedMail, ReceiverOptions } from "./smtp-receiver.ts";

export interface Faults {
  onConnection: (connection: number) => ReceiverOptions;
  onTransaction: (mailFrom: string) => ReceiverOptions;
  onQuestion: (name: string) => Failure | null;
  /** How often each was met, by name. */
  met: Map<string, number>;
  /** Attempts that reached a server, and those of them that met a fault. */
  attempts: { readonly begun: number; readonly failed: number };
  /** Envelope senders of mails that were taken without a reply that the sender could read. */
  lostReplies: ReadonlySet<string>;
  /** From now on nothing goes wrong. */
  stop(): void;
}

export interface FaultShares {
  seed: number;
  /** Of the attempts that reach a server; some meet theirs at its connection. */
  attempts: number;
  /** Of the questions about `domains` and their mail hosts. */
  questions: number;
  domains: readonly string[];
  /** For how long a greylisted mail is put off, in seconds. */
  greylistSeconds: number;
  /** Milliseconds on the sender's clock. */
  now(): number;
}

/** The higher, the more often. A silent server costs the sender a timeout each time. */
type Weighted<T> = readonly { name: string; weight: number; is: T }[];

const often = 4;
const sometimes = 2;
const seldom = 1;

const onConnections: Weighted<ReceiverOptions> = [
  { name: "reset in place of the greeting", weight: often, is: { reset: "banner" } },
  { name: "closed in place of the greeting", weight: sometimes, is: { drop: "banner" } },
  { name: "no greeting", weight: seldom, is: { stall: "banner" } },
  { name: "421 as the greeting", weight: often, is: { banner: "421 4.3.2 too busy, come back later" } },
  { name: "554 as the greeting", weight: sometimes, is: { banner: "554 5.3.2 no service here" } },
  { name: "closed after EHLO", weight: sometimes, is: { drop: "ehlo" } },
  { name: "no reply to EHLO", weight: seldom, is: { stall: "ehlo" } },
  {
    name: "an EHLO reply without an end",
    weight: seldom,
    is: { reply: { ehlo: "250-again\r\n".repeat(5000) } },
  },
  { name: "noise in place of the TLS handshake", weight: sometimes, is: { breakHandshake: true } },
  { name: "no TLS handshake", weight: seldom, is: { stall: "handshake" } },
  { name: "454 to STARTTLS", weight: sometimes, is: { reply: { starttls: "454 4.7.0 TLS not available" } } },
  { name: "closed by half after the TLS handshake", weight: sometimes, is: { drop: "mail" } },
];

const onTransactions: Weighted<ReceiverOptions> = [
  { name: "421 to MAIL", weight: often, is: { reply: { mail: "421 4.3.2 closing" } } },
  { name: "reset at MAIL", weight: sometimes, is: { reset: "mail" } },
  { name: "too fast", weight: sometimes, is: { reply: { mail: "451 4.7.28 our rate limit is reached" } } },
  {
    name: "451 to RCPT",
    weight: often,
    is: { reply: { rcpt: "451-4.3.0 first line\r\n451 4.3.0 again later" } },
  },
  { name: "452 to RCPT", weight: often, is: { reply: { rcpt: "452 4.2.2 mailbox full" } } },
  {
    name: "a reply that is none to RCPT",
    weight: sometimes,
    is: { reply: { rcpt: "2501 \x1b[31m\0 fine" } },
  },
  { name: "no reply to RCPT", weight: seldom, is: { stall: "rcpt" } },
  { name: "reset at RCPT", weight: sometimes, is: { reset: "rcpt" } },
  { name: "250 to DATA", weight: sometimes, is: { reply: { data: "250 2.0.0 what?" } } },
  { name: "451 to DATA", weight: sometimes, is: { reply: { data: "451 4.3.0 not now" } } },
  { name: "closed at DATA", weight: sometimes, is: { drop: "data" } },
  { name: "no reply to DATA", weight: seldom, is: { stall: "data" } },
  { name: "451 to the final dot", weight: often, is: { reply: { dot: "451 4.3.0 the disk is full" } } },
];

/** The mail is taken, and its sender is not told. */
const losing: Weighted<ReceiverOptions> = [
  { name: "closed after the final dot", weight: often, is: { drop: "dot" } },
  { name: "reset after the final dot", weight: often, is: { reset: "dot" } },
  { name: "no reply to the final dot", weight: seldom, is: { stall: "dot" } },
];

const ofTheDns: Weighted<Failure> = [
  { name: "SERVFAIL", weight: often, is: "servfail" },
  { name: "REFUSED", weight: sometimes, is: "refused" },
  { name: "no answer of the DNS", weight: sometimes, is: "timeout" },
  { name: "a truncated answer, and no TCP", weight: sometimes, is: "truncated_closed" },
  { name: "a malformed answer", weight: seldom, is: "malformed" },
];

const ofConnections = 0.16;
/** Of the transactions that meet a fault. */
const greylisted = 0.15;
const lost = 0.15;

export function createFaults(shares: FaultShares): Faults {
  const random = createRandom(shares.seed);
  const met = new Map<string, number>();
  const lostReplies = new Set<string>();
  /** Envelope senders that are greylisted, until when. */
  const grey = new Map<string, number>();
  const asked = new Set(shares.domains.flatMap((domain) => [domain, `mx.${domain}`]));
  const attempts = { begun: 0, failed: 0 };
  let over = false;

  const count = (name: string): void => void met.set(name, (met.get(name) ?? 0) + 1);
  const draw = <T>(from: Weighted<T>): T => {
    const chosen = choose(from, random);
    count(chosen.name);
    return chosen.is;
  };
  const later = (mailFrom: string, until: number): ReceiverOptions | null => {
    if (shares.now() >= until) return null;
    grey.set(mailFrom, until);
    count("greylisted");
    return { reply: { rcpt: `450 4.2.0 Greylisted, try again in ${shares.greylistSeconds + 1} seconds` } };
  };
  const losingReply = (mailFrom: string): ReceiverOptions => {
    const onData = ({ mailFrom: taken }: ReceivedMail): undefined => void lostReplies.add(taken);
    return { ...draw(losing), onData: (mail) => (mail.mailFrom === mailFrom ? onData(mail) : undefined) };
  };

  /** Held to its share, since few connections are made where they are kept. */
  const transaction = (mailFrom: string): ReceiverOptions | null => {
    const still = later(mailFrom, grey.get(mailFrom) ?? 0);
    if (still) return still;
    const behind = attempts.failed < attempts.begun * shares.attempts;
    if (over || random() >= (behind ? 2 : 0.5) * shares.attempts) return null;
    const kind = random();
    if (kind < greylisted && !grey.has(mailFrom))
      return later(mailFrom, shares.now() + shares.greylistSeconds * 1000);
    if (kind > 1 - lost && !lostReplies.has(mailFrom)) return losingReply(mailFrom);
    return draw(onTransactions);
  };

  return {
    met,
    attempts,
    lostReplies,
    stop: () => void (over = true),
    onConnection() {
      if (over || random() >= ofConnections) return {};
      attempts.begun++;
      attempts.failed++;
      return draw(onConnections);
    },
    onTransaction(mailFrom) {
      attempts.begun++;
      const met = transaction(mailFrom);
      if (met !== null) attempts.failed++;
      return met ?? {};
    },
    onQuestion: (name) => (!over && asked.has(name) && random() < shares.questions ? draw(ofTheDns) : null),
  };
}

function choose<T>(from: Weighted<T>, random: Random): Weighted<T>[number] {
  let left = random() * from.reduce((sum, { weight }) => sum + weight, 0);
  for (const one of from) {
    left -= one.weight;
    if (left < 0) return one;
  }
  const [last] = from.slice(-1);
  if (!last) throw new Error("nothing to choose from");
  return last;
}
