// How a line of the log is written: JSON, or words for a person at a terminal. Into systemd's journal a line begins with its
// priority (sd-daemon(3)), which the journal takes off and files it by (`journalctl -p warning`).
import { fstatSync } from "node:fs";
import { isatty } from "node:tty";
import type { LogFormat, LogLevel } from "../model/log-level.ts";
import { escapedJson, escapedText } from "../unsafe-text.ts";
import { withoutSecrets, withoutUnfinishedSecret } from "./secrets.ts";

/** Turns one line of JSON, with its line end, into what is written. */
export type LineFormat = (json: string) => string;

/** RFC 5424, section 6.2.1. */
const priorities: Record<LogLevel, number> = { debug: 7, info: 6, warn: 4, error: 3 };

/** `auto`: words on a terminal, JSON elsewhere. `env`: of the process, for JOURNAL_STREAM. `keep` gets each line as JSON. */
export function lineFormat(
  format: LogFormat,
  fd: number,
  env: Readonly<Record<string, string | undefined>>,
  keep: (line: string) => void,
): LineFormat {
  const isForPeople = format === "pretty" || (format === "auto" && isatty(fd));
  const hasPriorities = !isForPeople && isJournal(fd, env["JOURNAL_STREAM"]);
  return (line) => {
    const json = cut(line);
    const safe = withoutSecrets(json);
    const plain = escapedJson(safe);
    keep(plain.trimEnd());
    if (isForPeople) return inWords(safe);
    return hasPriorities ? `<${priorityOf(json)}>${plain}` : plain;
  };
}

/** Of a line; what a peer said is a part of it. A look for secrets in as much text takes a few milliseconds at most. */
const longestLine = 8_000;
const longestTexts = [2_000, 200];

/** A line that is too long, with its texts cut, before anything is looked for in it: JSON with its line end, as before. */
function cut(json: string): string {
  if (json.length <= longestLine) return json;
  const line = JSON.parse(json) as Record<string, unknown>;
  for (const longest of longestTexts) {
    const shorter = `${JSON.stringify(line, (_name, value: unknown) => (typeof value === "string" ? cutText(value, longest) : value))}\n`;
    if (shorter.length <= longestLine) return shorter;
  }
  const { level, time, component, msg } = line;
  return `${JSON.stringify({ level, time, component, msg: cutText(String(msg), 200), left_out: json.length })}\n`;
}

function cutText(text: string, longest: number): string {
  return text.length <= longest
    ? text
    : `${withoutUnfinishedSecret(text.slice(0, longest))}… (${text.length - longest} more characters)`;
}

/** JOURNAL_STREAM stays set where a descriptor was led elsewhere: it names the journal's (systemd.exec(5)). */
function isJournal(fd: number, stream: string | undefined): boolean {
  if (!stream) return false;
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true });
    return stream === `${dev}:${ino}`;
  } catch {
    return false;
  }
}

function priorityOf(json: string): number {
  const level = /^\{"level":"(\w+)"/.exec(json)?.[1];
  return priorities[level as LogLevel] ?? priorities.info;
}

/** `09:15:22.123 WARN relay: SMTP login refused ip=192.0.2.1 reason=trouble`; a stack stands below. */
function inWords(json: string): string {
  const { level, time, component, msg, err, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const head = `${String(time).slice(11, 23)} ${String(level).toUpperCase().padEnd(5)}`;
  const what = `${component === undefined ? "" : `${textOf(component)}: `}${escapedText(String(msg))}`;
  const said = Object.entries(fields).map(([name, value]) => ` ${escapedText(name)}=${textOf(value)}`);
  return `${head} ${what}${said.join("")}${err === undefined ? "" : errorText(err)}\n`;
}

function textOf(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return escapedText(/^[^\s"=]+$/.test(text) ? text : JSON.stringify(text));
}

function errorText(err: unknown): string {
  const stack = typeof err === "object" && err !== null && "stack" in err ? String(err.stack) : null;
  if (stack === null) return ` err=${textOf(err)}`;
  return stack
    .split("\n")
    .map((line) => `\n    ${escapedText(line.trim())}`)
    .join("");
}
