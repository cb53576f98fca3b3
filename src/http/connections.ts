// Limits open HTTP connections, in total and per source (an IPv4 address, the /64 of an IPv6 address), before a TLS
// handshake costs anything. A connection counts as unknown until one of its requests has shown a valid key, or followed
// a link of tracked mail, whose readers may all come from one address (NAT, the image proxies of mailbox providers). Of
// one source few unknown connections are served at a time; more of a short burst wait unserved for their turn. When the
// total is reached, the oldest connection without a valid key is closed for the new one. A trusted proxy's connections
// count in the total only; its clients are counted by their requests under way.
import type { Socket } from "node:net";
import { sourceOf } from "../model/ip-source.ts";
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";

export const connectionRule = {
  total: 10_000,
  perSource: 2000,
  /** Of one source, those that have shown neither a valid key nor a link yet and are served. */
  unknownPerSource: 100,
  /** How long one beyond that waits for its turn. */
  waitMs: 10_000,
  /** A waiting connection that sends more than the first message of a handshake is closed. */
  waitingBytes: 16_384,
  logEveryMs: 10_000,
};

export type ConnectionLimit = "total" | "source" | "unknown";

/** One counted connection, or one client's request that came through a proxy. */
export interface ConnectionSlot {
  /** It has shown a valid key. */
  known(): void;
  /** It has ended; later calls do nothing. */
  leave(): void;
}

interface PeerSlot extends ConnectionSlot {
  /** It has followed a link of tracked mail. */
  reader(): void;
}

export interface Connections {
  /** Counts a new connection until it closes. Calls `serve`, at once or when its turn comes, or `refuse`. */
  admit(socket: Socket, serve: () => void, refuse: (limit: ConnectionLimit) => void): void;
  /** `inner` (TLS) carries the requests of `outer`. */
  carries(outer: Socket, inner: Socket): void;
  /** False for the connection of a proxy. */
  has(socket: Socket): boolean;
  /** A request on this socket has shown a valid key. */
  known(socket: Socket): void;
  /** A request on this socket has followed a link of tracked mail. It may still be closed where the total is reached. */
  reader(socket: Socket): void;
  /** Counts a request that a proxy passed on, by the client's address; null where the client has too many under way. */
  client(ip: string): ConnectionSlot | null;
  readonly open: number;
  /** How many sources are remembered. */
  readonly sources: number;
}

interface Source {
  name: string;
  all: number;
  unknown: number;
  waiting: Set<() => void>;
}

export function createConnections(deps: {
  clock: Clock;
  log: Log;
  isProxy(ip: string): boolean;
  rule?: typeof connectionRule;
}): Connections {
  const { clock, rule = connectionRule } = deps;
  const sources = new Map<string, Source>();
  const slots = new WeakMap<Socket, PeerSlot>();
  /** Closes a connection without a valid key; the oldest first. */
  const withoutKey = new Set<() => void>();
  const report = createReport(clock, deps.log, rule.logEveryMs);
  let total = 0;

  const sourceAt = (ip: string): Source => {
    const name = sourceOf(ip);
    const found = sources.get(name);
    if (found) return found;
    const source = { name, all: 0, unknown: 0, waiting: new Set<() => void>() };
    sources.set(name, source);
    return source;
  };
  const settle = (source: Source): void => {
    for (const next of source.waiting) {
      if (source.unknown >= rule.unknownPerSource) break;
      source.waiting.delete(next);
      next();
    }
    if (source.all === 0) sources.delete(source.name);
  };
  /** Counts one in `source`; `served` says whether it counts as unknown already. */
  const enter = (source: Source): ConnectionSlot & { serve(): void } => {
    let state: "waiting" | "unknown" | "known" | "left" = "waiting";
    source.all += 1;
    return {
      serve() {
        if (state !== "waiting") return;
        state = "unknown";
        source.unknown += 1;
      },
      known() {
        if (state !== "unknown") return;
        state = "known";
        source.unknown -= 1;
        settle(source);
      },
      leave() {
        if (state === "left") return;
        if (state === "unknown") source.unknown -= 1;
        state = "left";
        source.all -= 1;
        settle(source);
      },
    };
  };
  const makeRoom = (): boolean => {
    if (total < rule.total) return true;
    for (const close of withoutKey) {
      close();
      report("total", "", true);
      return true;
    }
    return false;
  };
  const count = (socket: Socket, leave: () => void): void => {
    total += 1;
    socket.once("close", leave);
  };
  const admitProxy = (socket: Socket, serve: () => void): void => {
    count(socket, () => (total -= 1));
    serve();
  };
  const admitPeer = (socket: Socket, source: Source, serve: () => void, late: () => void): void => {
    const entered = enter(source);
    let counted = true;
    const leave = (): void => {
      if (!counted) return;
      counted = false;
      total -= 1;
      withoutKey.delete(close);
      entered.leave();
    };
    const close = (): void => {
      leave();
      socket.destroy();
    };
    count(socket, leave);
    withoutKey.add(close);
    slots.set(socket, {
      leave,
      known() {
        withoutKey.delete(close);
        entered.known();
      },
      reader: entered.known,
    });
    const begin = (): void => {
      if (!counted) return;
      entered.serve();
      serve();
    };
    if (source.unknown < rule.unknownPerSource && source.waiting.size === 0) begin();
    else wait(socket, source, begin, late);
  };
  const wait = (socket: Socket, source: Source, begin: () => void, late: () => void): void => {
    const tooMuch = (): void => {
      if (socket.readableLength <= rule.waitingBytes) return;
      end();
      late();
    };
    const turn = (): void => {
      end();
      begin();
    };
    const end = (): void => {
      timer.cancel();
      source.waiting.delete(turn);
      socket.off("readable", tooMuch).off("close", end).off("error", ignore);
    };
    const timer = clock.after(rule.waitMs, () => {
      end();
      late();
    });
    source.waiting.add(turn);
    socket.on("readable", tooMuch).on("close", end).on("error", ignore);
  };

  return {
    admit(socket, serve, refuse) {
      const ip = socket.remoteAddress ?? "";
      const refuseFor = (limit: ConnectionLimit): void => {
        report(limit, limit === "total" ? "" : sourceOf(ip));
        refuse(limit);
      };
      if (deps.isProxy(ip)) return makeRoom() ? admitProxy(socket, serve) : refuseFor("total");
      const source = sourceAt(ip);
      if (source.all >= rule.perSource) return refuseFor("source");
      if (!makeRoom()) {
        settle(source);
        return refuseFor("total");
      }
      sources.set(source.name, source); // the one that was closed for it may have been its source's last
      admitPeer(socket, source, serve, () => {
        slots.get(socket)?.leave();
        refuseFor("unknown");
      });
    },
    carries(outer, inner) {
      const slot = slots.get(outer);
      if (slot) slots.set(inner, slot);
    },
    has: (socket) => slots.has(socket),
    known: (socket) => slots.get(socket)?.known(),
    reader: (socket) => slots.get(socket)?.reader(),
    client(ip) {
      const source = sourceAt(ip);
      const limit = source.all >= rule.perSource ? "source" : "unknown";
      if (limit === "source" || source.unknown >= rule.unknownPerSource) {
        report(limit, source.name);
        return null;
      }
      const slot = enter(source);
      slot.serve();
      return slot;
    },
    get open() {
      return total;
    },
    get sources() {
      return sources.size;
    },
  };
}

function ignore(): void {}

/** One line of the log for a while of refusals. */
function createReport(
  clock: Clock,
  log: Log,
  everyMs: number,
): (limit: ConnectionLimit, source: string, closed?: boolean) => void {
  let times = 0;
  let last = -Infinity;
  return (limit, source, closed = false) => {
    times += 1;
    const now = clock.monotonic();
    if (now - last < everyMs) return;
    log.warn(
      { limit, source, times },
      closed
        ? "the limit of all HTTP connections is reached: the oldest without a valid key were closed"
        : "HTTP connections were refused: a limit is reached",
    );
    last = now;
    times = 0;
  };
}
