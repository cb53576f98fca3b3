// A session has a purpose: to log in on the submission ports, to bring a report on port 25. Until a peer has come to it
// there is a deadline and a number of commands, which NOOP, RSET, EHLO and failed logins use up and never prolong. The
// time between two commands is another matter (smtp-connection.ts), which holds for all.

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

  /** There is no deadline any more. */
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
