// The argument of MAIL FROM and RCPT TO: a path in brackets and its parameters (RFC 5321 §4.1.2,
// §4.1.1.11). The bracket ends where a quoted local part allows it to, so `<"a>b c"@x.test>` is one path.
// What is between the brackets is handed on as it was written: whether it is an address is judged by the
// commands' handlers, with mail/address.ts. A source route is ignored (RFC 5321 appendix C).

export interface PathCommand {
  /** Between the brackets, without a source route; empty for `<>`. */
  address: string;
  /** Keys in upper case; true where a keyword has no value. */
  args: Record<string, string | true> | false;
  /** A parameter that was given twice. */
  duplicate?: string;
}

const utf8 = new TextDecoder("utf-8", { fatal: true });
/** Mail programs put a space behind the colon, which the RFC does not; all servers take it. */
const opening = { "MAIL FROM": /^mail[ \t]+from[ \t]*:[ \t]*</i, "RCPT TO": /^rcpt[ \t]+to[ \t]*:[ \t]*</i };
const sourceRoute = /^@[^\s,:@"]+(?:,@[^\s,:@"]+)*:/;
const keyword = /^[A-Za-z0-9][A-Za-z0-9-]*$/;
/** esmtp-value: printable ASCII without `=` and space. */
const parameterValue = /^[\x21-\x3c\x3e-\x7e]+$/;

/** Reads a whole command line (UTF-8, without its line end); null where the syntax is wrong. */
export function readPath(verb: keyof typeof opening, line: Uint8Array): PathCommand | null {
  const text = decode(line);
  const start = text === null ? null : opening[verb].exec(text);
  if (text === null || !start) return null;
  const end = closingBracket(text, start[0].length);
  if (end < 0) return null;
  const rest = text.slice(end + 1);
  if (rest !== "" && !/^[ \t]/.test(rest)) return null;
  const address = text.slice(start[0].length, end).replace(sourceRoute, "");
  return readParameters(
    address,
    rest.split(/[ \t]+/).filter((word) => word !== ""),
  );
}

function decode(line: Uint8Array): string | null {
  try {
    return utf8.decode(line);
  } catch {
    return null;
  }
}

/** Index of the `>` that is in no quoted string; -1 where there is none. */
function closingBracket(text: string, from: number): number {
  let quoted = false;
  for (let i = from; i < text.length; i++) {
    const char = text[i];
    if (quoted && char === "\\") i++;
    else if (char === '"') quoted = !quoted;
    else if (char === ">" && !quoted) return i;
  }
  return -1;
}

function readParameters(address: string, words: string[]): PathCommand | null {
  const command: PathCommand = { address, args: false };
  for (const word of words) {
    const equals = word.indexOf("=");
    const key = (equals < 0 ? word : word.slice(0, equals)).toUpperCase();
    const value = equals < 0 ? true : word.slice(equals + 1);
    if (!keyword.test(key) || (value !== true && !parameterValue.test(value))) return null;
    command.args ||= {};
    if (key in command.args) command.duplicate = key;
    command.args[key] = value;
  }
  return command;
}
