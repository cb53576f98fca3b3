// The deadline and command limit of a session until the peer has done what the port is for: logged in on the submission
// ports, delivered a report on port 25. NOOP, RSET, EHLO and failed logins count and never extend it. The timeout
// between two commands is separate (smtp-connection.ts) and applies to all sessions.

export interface ProgressRule {
  ms: number;
  /** Replies that a peer may have before it comes to the point. */
  replies: number;
  /** Texts of the 421 that ends the session: at the deadline, at the last reply, and for a newcomer's sake. */
  tooLate: string;
  tooMany: string;
  crowded: string;
}

export class Progress {
  readonly #rule: ProgressRule;
  #since: number;
  #replies = 0;
  #reached = false;

  /** `since`: monotonic ms at which the peer came. */
  constructor(rule: ProgressRule, since: number) {
    this.#rule = rule;
    this.#since = since;
  }

  /** Removes the deadline. */
  reached(): void {
    this.#reached = true;
  }

  get isReached(): boolean {
    return this.#reached;
  }

  /** The peer has all of the time again, from `now`. */
  begin(now: number): void {
    this.#reached = false;
    this.#since = now;
    this.#replies = 0;
  }

  /** Counts a reply; true where it is one too many. */
  replied(): boolean {
    return !this.#reached && ++this.#replies > this.#rule.replies;
  }

  late(now: number): boolean {
    return !this.#reached && now - this.#since >= this.#rule.ms;
  }
}
