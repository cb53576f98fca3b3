// The outcome of an attempt in which no server accepted or refused the mail: of all failures at its hosts, a server's
// reply comes before a failure without one. It bounces for lack of a usable host only if all hosts were tried; else the
// mail is deferred.
import type { Outcome, Unsent } from "../mail/outcome.ts";
import type { HostLookup } from "./addresses.ts";
import type { Dialogue } from "./dialogue.ts";
import { local, localOutcome } from "./outcome.ts";
import { withoutSession } from "./tls-policy.ts";

/** A host-level failure, kept until no address is left; the most severe one decides the outcome of the attempt. */
export interface Failure {
  weight: number;
  outcome: Outcome;
}

export const weights = {
  none: 1,
  forbidden: 2,
  ours: 3,
  dns: 4,
  dead: 5,
  unreached: 6,
  lost: 7,
  tls: 8,
  reply: 9,
} as const;

export class Failures {
  #worst: Failure | null = null;
  #unsourced: string | null = null;
  readonly #dialogue: Dialogue;

  constructor(dialogue: Dialogue) {
    this.#dialogue = dialogue;
  }

  note(weight: number, outcome: Outcome): void {
    if (this.#worst === null || weight >= this.#worst.weight) this.#worst = { weight, outcome };
  }

  /** Connections failed, or were left out for one that failed a moment ago, and no server said a word. */
  onlyConnections(): boolean {
    const weight = this.#worst?.weight;
    return weight === weights.dead || weight === weights.unreached;
  }

  noteHost(found: Exclude<HostLookup, { kind: "addresses" }>): void {
    const trace = this.#dialogue.trace(false);
    switch (found.kind) {
      case "unsourced":
        this.#unsourced = found.why;
        break;
      case "none":
        return this.note(weights.none, localOutcome(local.noHost, found.why, trace));
      case "forbidden":
        return this.note(weights.forbidden, localOutcome(local.forbiddenHost, found.why, trace));
      case "ours":
        return this.note(weights.ours, localOutcome(local.forbiddenHost, found.why, trace));
      case "failed":
        return this.note(weights.dns, localOutcome(local.dnsFailed, found.why, trace));
    }
  }

  /** A host that was not dialled for want of TLS as it is asked for. */
  noteTls(found: { kind: "forbidden" | "failed"; why: string }): void {
    this.#dialogue.us(`(${found.why})`);
    if (found.kind === "failed")
      return this.note(weights.dns, localOutcome(local.dnsFailed, found.why, this.#dialogue.trace(false)));
    const trace = {
      ...this.#dialogue.trace(false),
      host: null,
      address: null,
      tls: withoutSession("mta-sts"),
    };
    this.note(weights.tls, localOutcome(local.noTls, found.why, trace));
  }

  /** `unseen`: the number of hosts, if only some of them were looked up. */
  outcome(unseen: { lookedUp: number; of: number } | null): Outcome | Unsent {
    const worst = this.#worst;
    const trace = this.#dialogue.trace(false);
    if (unseen !== null && (worst === null || worst.weight <= weights.ours)) {
      const last = worst?.outcome.reply.text.replace(/^\[local\] /, "") ?? this.#unsourced ?? "";
      const why = `${unseen.lookedUp} of ${unseen.of} mail hosts were looked up, and none of them can be used: ${last}`;
      return localOutcome(local.notAllHosts, why, trace);
    }
    if (worst === null && this.#unsourced !== null) return { kind: "unsent", why: this.#unsourced };
    const outcome = worst?.outcome ?? localOutcome(local.noHost, "the route names no host", trace);
    return { ...outcome, trace: { ...outcome.trace, endedAt: trace.endedAt } };
  }
}
