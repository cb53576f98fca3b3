// One question to one server and its reply, over UDP (udp.ts), and over TCP where the reply was too long (tcp.ts). Against
// forgery (RFC 5452): a random port and id; the name in a random case, which the reply must repeat
// (draft-vixie-dnsext-dns0x20). Owners share what may be under way, and a question that hangs gives way to the next.
// Which server is asked, and again, is resolve.ts's.
import type { Clock, Timer } from "../clock.ts";
import { createFairSlots } from "../fairness.ts";
import type { Owner } from "../fairness.ts";
import { createTurns } from "../fairness/turns.ts";
import type { Log } from "../log.ts";
import type { Conversation, Exchange, Finish, Heard, Query } from "./conversation.ts";
import { mixedCase } from "./message.ts";
import type { Question } from "./message.ts";
import { showServer } from "./servers.ts";
import type { DnsServerAddress } from "./servers.ts";
import { overTcp } from "./tcp.ts";
import { overUdp } from "./udp.ts";

export interface Transport {
  /**
   * Never throws. Answers within a few times `timeoutMs`, counted from when `owner` has a slot. `again`: the question
   * failed lately, so it waits apart from the owner's other questions.
   */
  ask(
    server: DnsServerAddress,
    question: Question,
    edns: boolean,
    owner: Owner,
    again?: boolean,
  ): Promise<Exchange>;
  /** Fails the queries in flight and refuses new ones. */
  stop(): void;
}

/** Questions in flight, each with a file descriptor at most; others wait their turn. */
const maxInFlight = 256;
/** A server that has the answer says so sooner. */
const patienceMs = 200;
/** Questions in flight for longer than that, on top. */
const maxHanging = 2048;
/** Questions that are sent in one turn of the event loop: each takes about a tenth of a millisecond of it. */
const sendsPerTurn = 16;
/** A long reply takes milliseconds to read, and 64 KB until then: so often one is asked for, and one read. */
const longReplyEveryMs = 8;
/** After a reply in another case, which may be forged, the right one is waited for. */
const otherCaseMs = 250;
/** A server that was seen to lose the case of names is not asked to keep it for so long. */
const caseLostMs = 3_600_000;

const stopped: Exchange = { kind: "failed", why: "the resolver was stopped", final: true };
const givenUp: Exchange = {
  kind: "failed",
  why: "no answer yet, and too many other look-ups hang",
  final: true,
};

/** Ends an exchange from outside. Not an AbortSignal: its error and its event cost more than the question. */
interface End {
  over: boolean;
  /** What it ends now. */
  cut: (() => void) | null;
}

export function createTransport(deps: { timeoutMs: number; clock: Clock; log: Log }): Transport {
  const { clock, log, timeoutMs } = deps;
  const slots = createFairSlots({ slots: maxInFlight, patienceMs, lingering: maxHanging, clock });
  const open = new Set<Finish>();
  const caseLostUntil = new Map<string, number>();
  const udp = overUdp(createTurns({ clock, pieces: sendsPerTurn, everyMs: 0 }));
  const longTurns = () => createTurns({ clock, pieces: 1, everyMs: longReplyEveryMs });
  const mayAsk = longTurns();
  const tcp = overTcp(longTurns());
  let running = true;

  const converse = (talk: Conversation, query: Query, end: End): Promise<Heard> =>
    new Promise((resolve) => {
      if (!running) return resolve(stopped);
      if (end.over) return resolve(givenUp);
      let close = (): void => undefined;
      let otherCase: Timer | null = null;
      const finish: Finish = (result) => {
        if (result.kind === "other_case")
          return void (otherCase ??= clock.after(otherCaseMs, () => conclude(result)));
        conclude(result);
      };
      const conclude = (result: Heard): void => {
        if (!open.delete(finish)) return;
        timer.cancel();
        otherCase?.cancel();
        end.cut = null;
        close();
        resolve(result);
      };
      open.add(finish);
      end.cut = () => finish(givenUp);
      const timer = clock.after(timeoutMs, () =>
        finish({ kind: "failed", why: `no answer within ${timeoutMs} ms` }),
      );
      close = talk(query, finish, () => timer.cancel());
      if (!open.has(finish)) close();
    });

  /** A first reply in another case may be forged; a second one, to another id and port, shows that the server is so. */
  const overUdpInCase = async (asked: Omit<Query, "exact">, end: End): Promise<Heard> => {
    const { server, question } = asked;
    const key = showServer(server);
    for (let tries = 0; tries < 2 && (caseLostUntil.get(key) ?? 0) <= clock.monotonic(); tries++) {
      const mixed = { ...question, name: mixedCase(question.name) };
      const heard = await converse(udp, { ...asked, question: mixed, exact: true }, end);
      if (heard.kind !== "other_case") return heard;
      if (tries === 0) continue;
      caseLostUntil.set(key, clock.monotonic() + caseLostMs);
      log.info(
        { server: key },
        "a DNS server does not preserve the case of the queried name; 0x20 is not used with it",
      );
    }
    return converse(udp, { ...asked, exact: false }, end);
  };

  /** What ends the question ends the wait. */
  const turnToAsk = (owner: Owner, end: End): Promise<void> =>
    new Promise((resolve) => {
      if (!running || end.over) return resolve();
      const go = (): void => {
        open.delete(go);
        end.cut = null;
        resolve();
      };
      open.add(go);
      end.cut = go;
      mayAsk(owner, () => {
        if (!open.has(go)) return false;
        go();
        return true;
      });
    });

  const exchange = async (asked: Omit<Query, "exact">, end: End): Promise<Exchange> => {
    const first = await overUdpInCase(asked, end);
    if (first.kind === "other_case") return { kind: "failed", why: "an answer to another question" };
    if (first.kind === "failed" || !first.reply.truncated) return first;
    await turnToAsk(asked.owner, end);
    const whole = await converse(tcp, { ...asked, exact: false }, end);
    if (whole.kind === "other_case") return { kind: "failed", why: "an answer to another question" };
    return whole.kind === "reply" && whole.reply.truncated
      ? { kind: "failed", why: "the answer is cut short over TCP too" }
      : whole;
  };

  return {
    ask: (server, question, edns, owner, again = false) =>
      new Promise((resolve, reject) => {
        const end: End = { over: false, cut: null };
        const giveUp = (): void => {
          end.over = true;
          end.cut?.();
        };
        const begin = (leave: () => void): void =>
          void exchange({ server, question, edns, owner }, end).then(resolve, reject).finally(leave);
        slots.enter(owner, begin, { giveUp, again });
      }),
    stop() {
      running = false;
      for (const finish of open) finish(stopped);
    },
  };
}
