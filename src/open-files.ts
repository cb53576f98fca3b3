// How many connections the process can afford: sockets are open files, and SMTP sessions, deliveries and the database
// need theirs. The limit is read once, at the start; Node itself has raised it to the hard limit by then.
import { readFileSync } from "node:fs";

/** Where the system does not say: what most systems begin with. */
const usualLimit = 1024;

/** At most `wanted`, at most `share` (0 to 1) of the open files that the process may have. */
export function affordableConnections(wanted: number, share: number, limits = readLimits()): number {
  return Math.min(wanted, Math.floor(openFilesLimit(limits) * share));
}

/** How many files the process may open; Infinity: as many as it likes. */
export function openFilesLimit(limits = readLimits()): number {
  const [, soft = ""] = /^Max open files\s+(\S+)/m.exec(limits) ?? [];
  const files = soft === "unlimited" ? Infinity : Number.parseInt(soft, 10);
  return Number.isNaN(files) ? usualLimit : files;
}

function readLimits(): string {
  try {
    return readFileSync("/proc/self/limits", "utf8");
  } catch {
    return ""; // not Linux
  }
}
