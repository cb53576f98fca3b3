// A send request whose body is too large for the event loop: its text lies in a thread (http/large-bodies.ts), which
// reads it and, once nothing stands against it, composes it. What comes back is what the checks and the record need.
import type { Composed } from "../mail/compose.ts";
import { maxMessageBytes } from "../mail/intake.ts";
import { leastBytes, makesText, render, type AssignedFields } from "./render.ts";
import { readRequest, type ReadRequest } from "./request.ts";
import { isRecord, type MessageRequest } from "./shape.ts";

/** A request that was read: `request` without its texts and files where these lie in a thread. */
export interface Read extends ReadRequest {
  /** The finished message cannot be smaller; exact where it might be too large. */
  leastBytes: number;
}

export interface RequestSource {
  /** null: it is not a JSON object. */
  read(made: AssignedFields): Promise<Read | null>;
  /** Of a request that was read without problems. No chunks where it is larger than a message may be. */
  compose(made: AssignedFields): Promise<Composed>;
}

/** In place of a request's JSON. A class, so that no JSON from outside can pass for it. */
export class LargeRequest implements RequestSource {
  readonly #source: RequestSource;
  constructor(source: RequestSource) {
    this.#source = source;
  }
  read(made: AssignedFields): Promise<Read | null> {
    return this.#source.read(made);
  }
  compose(made: AssignedFields): Promise<Composed> {
    return this.#source.compose(made);
  }
}

/** In quoted-printable an octet is three, and lines have ends. */
const mostGrowth = 4;

/**
 * Reads a request's JSON where it is. The size decides before anything else, so what may turn out too large is composed
 * at once, except where its text has to be made for that: this takes seconds for the largest, and waits for the checks.
 */
export function readHere(json: unknown, made: AssignedFields): (Read & { composed: Composed | null }) | null {
  if (!isRecord(json)) return null;
  const read = readRequest(json, made.now);
  const least = leastBytes(read.request);
  const whole = wholeRequest(read);
  const inDoubt = least <= maxMessageBytes && least * mostGrowth > maxMessageBytes;
  const composed = whole && inDoubt && !makesText(whole) ? render(whole, made) : null;
  return { ...read, leastBytes: composed?.sizeBytes ?? least, composed };
}

/** The request without what only composing needs; with problems, without what may be of any size too. */
export function withoutBulk({ request, problems, leastBytes: least }: Read): Read {
  const rest = { problems, leastBytes: least };
  const light = { ...request, html: null, text: null, attachments: [] };
  if (rest.problems.length === 0) return { ...rest, request: light };
  return { ...rest, request: { ...light, replyTo: [], subject: "", headers: [], tags: [], metadata: {} } };
}

/** Null where a field that must be there is missing, which was reported as a problem. */
export function wholeRequest({ request, problems }: ReadRequest): MessageRequest | null {
  const { from } = request;
  return problems.length === 0 && from ? { ...request, from } : null;
}
