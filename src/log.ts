// The program's log: one line an event, printed by terminals and pagers too: what they would obey in others' text is
// escaped. Never a secret (log/secrets.ts), never a message's content, and of lines of one text only so many in a flood
// (log/limiter.ts).
import { pino } from "pino";
import { systemClock, type Clock } from "./clock.ts";
import { lineFormat } from "./log/format.ts";
import { createLineLimiter, type LineRate } from "./log/limiter.ts";
import { sourceOf } from "./model/ip-source.ts";
import type { LogFormat, LogLevel } from "./model/log-level.ts";

export type LogFields = Record<string, unknown>;

export interface Log {
  debug(fields: LogFields, text: string): void;
  info(fields: LogFields, text: string): void;
  warn(fields: LogFields, text: string): void;
  error(fields: LogFields, text: string): void;
  /** The same log with `component` in each line. */
  component(name: string): Log;
}

/** What was logged last, for `svc logs`. */
export interface LogLines {
  /** The lines that are kept, oldest first: JSON without the line end. */
  last(): readonly string[];
  /** Calls back with each line from now on. */
  onLine(listener: (line: string) => void): () => void;
}

const keptLines = 2000;
const keptCharacters = 512 * 1024;

function keepLines(): LogLines & { add(line: string): void } {
  const lines: string[] = [];
  const listeners = new Set<(line: string) => void>();
  let size = 0;
  return {
    last: () => lines,
    onLine(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    add(line) {
      lines.push(line);
      size += line.length;
      while (lines.length > keptLines || (size > keptCharacters && lines.length > 1))
        size -= lines.shift()?.length ?? 0;
      for (const listener of listeners) listener(line);
    },
  };
}

/** Characters that wait for a file that takes none. */
const mostWaiting = 4 * 2 ** 20;

/** Of a program that keeps none. */
export const noLines: LogLines = { last: () => [], onLine: () => () => undefined };

export interface LogOptions {
  level: LogLevel;
  /** `json` if not given. */
  format?: LogFormat;
  /** Where it is written to; 2, stderr, if not given. */
  fd?: number;
  /** Of the process. */
  env?: Readonly<Record<string, string | undefined>>;
  clock?: Clock;
}

/** Lines of one text. Outcomes of mail are `info`; what a stranger can cause a flood of, at either level, is bounded too. */
const rates: Record<"info" | "warn" | "error", LineRate> = {
  info: { burst: 2000, perSecond: 200 },
  warn: { burst: 200, perSecond: 20 },
  error: { burst: 200, perSecond: 20 },
};

/** Buffered; `flush` writes what waits. */
export function createLog(options: LogOptions): Log & { flush(): void; lines: LogLines } {
  const { level, format = "json", fd = 2, env = {}, clock = systemClock } = options;
  const lines = keepLines();
  const written = lineFormat(format, fd, env, (line) => lines.add(line));
  const destination = pino.destination({
    fd,
    sync: false,
    minLength: 4096,
    periodicFlush: 200,
    maxLength: mostWaiting,
  });
  outliveFaults(destination);
  const base = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: written },
    },
    destination,
  );
  const limiter = createLineLimiter(clock, (text, count) =>
    base.warn({ lines: count, text }, "lines of the log were left out: too many of one kind"),
  );
  const wrap = (logger: typeof base): Log => {
    const limited =
      (at: keyof typeof rates) =>
      (fields: LogFields, text: string): void => {
        if (logger.isLevelEnabled(at) && limiter.takes(text, rates[at], peerOf(fields)))
          logger[at](fields, text);
      };
    return {
      debug: (fields, text) => logger.debug(fields, text),
      info: limited("info"),
      warn: limited("warn"),
      error: limited("error"),
      component: (name) => wrap(logger.child({ component: name })),
    };
  };
  const flush = (): void => {
    limiter.flush();
    destination.flushSync();
  };
  return Object.assign(wrap(base), { flush, lines });
}

/** `ip` is what a line calls the peer that caused it. */
function peerOf({ ip }: LogFields): string | null {
  return typeof ip === "string" ? sourceOf(ip) : null;
}

/** A disk that is full for the log ends no service, and an exit does not wait for room: lines that find none are dropped. */
function outliveFaults(destination: ReturnType<typeof pino.destination>): void {
  let failing = false;
  destination.on("error", () => (failing = true));
  destination.on("write", () => (failing = false));
  const flushSync = destination.flushSync.bind(destination);
  destination.flushSync = () => {
    if (!failing) flushSync(); // tries for ever
  };
}

/** Drops everything; for tests and for commands that have nothing to log. */
export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  component: () => silentLog,
};
