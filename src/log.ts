// The program's log: one line of JSON an event, printed by terminals and pagers too: what they would obey in others'
// text is escaped. Never a secret, never a message's content.
import { pino } from "pino";
import type { LogLevel } from "./model/log-level.ts";
import { escapedJson } from "./unsafe-text.ts";

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

/** Logs to file descriptor `fd` (2: stderr), buffered; `flush` writes what waits. */
export function createLog(options: {
  level: LogLevel;
  fd?: number;
}): Log & { flush(): void; lines: LogLines } {
  const lines = keepLines();
  const written = (json: string): string => {
    const text = escapedJson(json);
    lines.add(text.trimEnd());
    return text;
  };
  const destination = pino.destination({
    fd: options.fd ?? 2,
    sync: false,
    minLength: 4096,
    periodicFlush: 200,
    maxLength: mostWaiting,
  });
  outliveFaults(destination);
  const base = pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: written },
    },
    destination,
  );
  const wrap = (logger: typeof base): Log => ({
    debug: (fields, text) => logger.debug(fields, text),
    info: (fields, text) => logger.info(fields, text),
    warn: (fields, text) => logger.warn(fields, text),
    error: (fields, text) => logger.error(fields, text),
    component: (name) => wrap(logger.child({ component: name })),
  });
  return Object.assign(wrap(base), { flush: () => destination.flushSync(), lines });
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
