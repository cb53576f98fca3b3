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

/** Logs to file descriptor `fd` (2: stderr), buffered; `flush` writes what waits. */
export function createLog(options: { level: LogLevel; fd?: number }): Log & { flush(): void } {
  const destination = pino.destination({
    fd: options.fd ?? 2,
    sync: false,
    minLength: 4096,
    periodicFlush: 200,
  });
  const base = pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: escapedJson },
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
  return Object.assign(wrap(base), { flush: () => destination.flushSync() });
}

/** Drops everything; for tests and for commands that have nothing to log. */
export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  component: () => silentLog,
};
