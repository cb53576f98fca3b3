// The interface of the module: one attempt at one destination, from route and connection to TLS, SMTP and outcome. It
// uses neither the store nor the queue; the message is passed in.
import type { Owner } from "../fairness.ts";
import type { Outcome, Unsent } from "../mail/outcome.ts";
import type { KeptMtaStsPolicy } from "../model/mta-sts.ts";
import type { Job } from "../model/queued-recipient.ts";
import type { Family, Source } from "../pools/sources.ts";

/** The route of a recipient domain, or why it has none or it is unknown. */
export type Route =
  | {
      kind: "hosts";
      /**
       * Destinations that share limits: `google`, `microsoft`, `yahoo`, else the registered part of the first MX host;
       * `domain/group` where the MX hosts are of several; `smart-host`.
       */
      group: string;
      hosts: { host: string; preference: number }[];
      /** The DNS vouches for the hosts (AD bit). */
      authenticated: boolean;
      /** The MTA-STS policy of the domain; null: it has none. */
      mtaSts: KeptMtaStsPolicy | null;
    }
  | {
      kind: "outcome";
      /** Null MX, no such domain, a DNS failure, an MX that is us. */ decide: (
        job: AttemptJob,
        startedAt: number,
      ) => Outcome;
    };

/** A message as it goes over the wire: signature fields on top of the stored bytes. */
export interface WireMessage {
  /** DKIM-Signature fields, CRLF terminated; may be empty. */
  signature: Buffer;
  /** Of the stored message; the signature comes on top. */
  sizeBytes: number;
  /** The stored message, CRLF line ends, not dot-stuffed; may be asked for more than once. */
  open(): AsyncIterable<Buffer>;
}

/** What an attempt knows of the recipient and its message. */
export type AttemptJob = Pick<Job, "key" | "rcptTo" | "domain"> & {
  message: Pick<Job["message"], "id" | "accountKey" | "eightBit" | "smtpUtf8">;
};

export interface AttemptRequest {
  job: AttemptJob;
  /** The recipient is asked for, and nothing is sent: the outcome is the reply to RCPT. */
  probe?: true;
  route: Extract<Route, { kind: "hosts" }>;
  /** VERP return path, `local@domain`. */
  mailFrom: string;
  wire: WireMessage;
  /** The same mail for a receiver that takes ASCII alone, made when it is asked for; null where there is none. */
  ascii(): Promise<WireMessage | null>;
  /** False once the lease could not be renewed: the attempt ends before the final dot. */
  mayFinish(): boolean;
  /** The address that it leaves from. */
  source: Source;
  /**
   * Moves the attempt to an address of the pool of this family, whose limits then apply to it; null: none has room. Asked
   * once at most, where no address of the source's family could be connected.
   */
  sourceOf(family: Family): Source | null;
}

export interface Delivery {
  /** `owner`: whose look-up it is, so that one account's never delays another's. */
  route(domain: string, owner: Owner): Promise<Route>;
  /** Which of `own` families reach the first hosts that any of them does; all if that is unknown, none if none does. */
  families(route: Extract<Route, { kind: "hosts" }>, own: readonly Family[], owner: Owner): Promise<Family[]>;
  /** Never throws for anything that a network or a receiver does. */
  attempt(request: AttemptRequest): Promise<Outcome | Unsent>;
  /** The group of a domain's MX hosts; null: it has none, or the DNS does not say. */
  groupOf(domain: string): Promise<string | null>;
  /** Open connections to a group from an address, idle ones included; null: the system chooses the address. */
  connections(group: string, address: string | null): number;
  /** All of them. */
  openConnections(): number;
  /** Call when the usable addresses have changed: closes idle connections from addresses that are no longer usable. */
  reconsider(): void;
  /** Ends every attempt that has not sent its final dot, and all later ones, at once as deferred. */
  cutShort(): void;
  /** Closes idle connections with QUIT; the caller awaits the attempts in flight. */
  stop(): Promise<void>;
}
