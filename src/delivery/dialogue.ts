// The SMTP dialogue of an attempt, kept for the API: commands and replies with host, address and time. It is bounded,
// because the receiver determines its length. It never contains credentials or message bytes.
import type { Clock } from "../clock.ts";
import type { AttemptTrace } from "../mail/outcome.ts";
import type { Reply } from "../mail/reply.ts";
import type { DialogueLine } from "../model/attempt.ts";
import type { TlsSummary } from "../model/tls.ts";

const maxLines = 60;
const maxLineLength = 500;

export class Dialogue {
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #start: number;
  readonly #lines: DialogueLine[] = [];
  readonly #mx: { host: string; preference: number }[];
  /** Host and address of the connection that is being used; null before one was reached. */
  host: string | null = null;
  address: string | null = null;
  sendingIp: string | null = null;
  tls: TlsSummary | null = null;

  constructor(clock: Clock, mx: { host: string; preference: number }[]) {
    this.#clock = clock;
    this.#mx = mx;
    this.#startedAt = clock.now();
    this.#start = clock.monotonic();
  }

  us(text: string): void {
    this.#add("us", text);
  }
  them(reply: Reply): void {
    // One entry a reply; the code once, as the status is once in its text.
    this.#add("them", `${reply.code} ${reply.text}`);
  }

  /** `address` is where the next lines are spoken. */
  at(host: string, address: string): void {
    this.host = host;
    this.address = address;
    this.sendingIp = null;
    this.tls = null;
  }

  trace(ambiguous: boolean): AttemptTrace {
    return {
      startedAt: this.#startedAt,
      // Our own stopwatch: a wall clock that jumps back must not end an attempt before it began.
      endedAt: this.#startedAt + Math.round(this.#clock.monotonic() - this.#start),
      sendingIp: this.sendingIp,
      mx: this.#mx,
      host: this.host,
      address: this.address,
      tls: this.tls,
      dialogue: this.#lines,
      ambiguous,
    };
  }

  #add(from: "us" | "them", text: string): void {
    if (this.#lines.length > maxLines) return;
    const full = this.#lines.length === maxLines;
    this.#lines.push({
      at_ms: Math.round(this.#clock.monotonic() - this.#start),
      from: full ? "us" : from,
      text: full ? "(more was said)" : text.length <= maxLineLength ? text : text.slice(0, maxLineLength),
    });
  }
}
