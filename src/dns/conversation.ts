// What one question to one server is, whichever way it goes: udp.ts, tcp.ts. transport.ts chooses the way, and ends it.
import type { Owner } from "../fairness.ts";
import { decodeReply, MalformedReply } from "./message.ts";
import type { Question, Reply } from "./message.ts";
import type { DnsServerAddress } from "./servers.ts";

export type Exchange =
  | { kind: "reply"; reply: Reply }
  /** `final`: it is not to be asked again now, of any server. */
  | { kind: "failed"; why: string; final?: true };

/** "other_case": what would be the reply has the name in another case than was asked for. */
export type Heard = Exchange | { kind: "other_case" };
export type Finish = (result: Heard) => void;

export interface Query {
  server: DnsServerAddress;
  question: Question;
  edns: boolean;
  owner: Owner;
  /** The reply must have the name in the same case. */
  exact: boolean;
}

/** Asks, calls back once; answers how to end it. `arrived`: the reply is here and waits to be read. */
export type Conversation = (query: Query, finish: Finish, arrived: () => void) => () => void;

/** What a message says to the query that has the id; null: nothing. */
export function understand(bytes: Buffer, id: number, { question, exact }: Query): Heard | null {
  try {
    const reply = decodeReply(bytes, id, question, exact);
    if (reply === "other_case") return { kind: reply };
    return reply && { kind: "reply", reply };
  } catch (error) {
    if (error instanceof MalformedReply)
      return { kind: "failed", why: `an answer that cannot be read: ${error.message}` };
    throw error;
  }
}
