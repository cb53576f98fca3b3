// Reply code, enhanced status and the reply's own words, found in free text: a Diagnostic-Code (RFC 3464 §2.3.6),
// a line of an SMTP transcript, a sentence in which a server quotes another one. Nothing is made up: what the text
// does not hold is null.

export interface QuotedReply {
  /** 400 to 599. */
  code: number | null;
  /** X.Y.Z with X 2, 4 or 5 (RFC 3463). */
  status: string | null;
  /** The status stands right behind the code, as a server that knows it writes it. */
  adjacent: boolean;
  /** From the code on, or all of the text: one line, at most 2,000 characters. */
  text: string;
  /** The text before the code in its paragraph, as far as it is read. */
  lead?: string;
}

const longestText = 2_000;
const longestSearched = 20_000;

/** A code stands at the start of a line or behind a mark that opens a quotation, and is followed by its text. */
const coded =
  /(?:^|[\s:;(<>"'*[=-])([45][0-5]\d)(?:[ \t]*[-#: ][ \t]*|[ \t]+-[ \t]+|[ \t]*[([]#?|$)(?:#?([245]\.\d{1,3}\.\d{1,3})(?![\d.]*\d))?/gm;
const bareStatus = /(?<![\d.])#?([245]\.\d{1,3}\.\d{1,3})(?!\.?\d)/;
/** Numbers that look like a code and are none: sizes, times, counts, ports, years. */
const unitBehind =
  /^(?:bytes|k?b\b|mb\b|seconds?|minutes?|hours?|days?|recipients?|messages\b|ms\b|times\b)/i;

/** What may stand before a code in a line of a transcript: marks alone, or a word that introduces a quotation. */
const lineMarks = /^[\s>|*<•"'(-]*$/;
const introduces =
  /\b(?:said|says|return\w{0,3}|respon\w{1,6}|repl(?:y|ied)|errors?|reasons?|status|results?|codes?|diagnos\w{1,8}|smtp|server|was|because|rejected|refused|failed)\b[^\n]{0,60}$|[:;#]\s{0,3}$/i;
const longestLead = 400;
/** What has a number of its own: `Ticket 550 - opened`. */
const numbers =
  /\b(?:ticket|case|order|invoice|request|room|suite|page|section|port|version|build)\s*#?\s*$/i;

/**
 * The first reply that a text quotes. `field`: the text is a reply, wherever in it the code stands; `transcript`: it is
 * a text for people, in which a number counts only where it begins a line or is introduced as another server's.
 */
export function quotedReply(input: string, within: "field" | "transcript" = "field"): QuotedReply {
  const text = input.slice(0, longestSearched);
  const found = findReply(text, within);
  if (found === null)
    return { code: null, status: bareStatus.exec(text)?.[1] ?? null, adjacent: false, text: oneLine(text) };
  const { from, ownStatus } = found;
  const rest = oneLine(replyPart(text.slice(from), text[from - 1] ?? ""));
  const paragraph =
    leadOf(text, from)
      .split(/\n[ \t]*\n/)
      .at(-1) ?? "";
  return {
    code: Number(text.slice(from, from + 3)),
    status: ownStatus ?? statusNear(rest),
    adjacent: ownStatus !== undefined,
    text: rest,
    lead: paragraph,
  };
}

/** Where the first reply of a line for people begins; -1: it has none. */
export function replyStart(line: string): number {
  return findReply(line.slice(0, longestSearched), "transcript")?.from ?? -1;
}

function findReply(
  text: string,
  within: "field" | "transcript",
): { from: number; ownStatus: string | undefined } | null {
  for (const match of text.matchAll(coded)) {
    const digits = match[1] ?? "";
    const from = match.index + match[0].indexOf(digits);
    const lead = leadOf(text, from);
    const line = lead.slice(lead.lastIndexOf("\n") + 1).slice(-160);
    const begins = lineMarks.test(line);
    if (within === "transcript" && !begins && !quotes(line)) continue;
    if (!begins && unitBehind.test(text.slice(from + 3, from + 60).replace(/^[\s\-:#]+/, ""))) continue;
    return { from, ownStatus: match[2] };
  }
  return null;
}

function leadOf(text: string, from: number): string {
  return text.slice(Math.max(0, from - longestLead), from);
}

function quotes(lead: string): boolean {
  return introduces.test(lead) && !/\bsubject\b/i.test(lead) && !numbers.test(lead);
}

/** A status may stand a few words behind the code: `550 <a@b.test>: 5.1.1 …`, `554 delivery error (#5.1.1)`. */
function statusNear(reply: string): string | null {
  return bareStatus.exec(reply.slice(0, 400))?.[1] ?? null;
}

/** What ends a reply in a transcript: an empty line, the next line of the dialogue, the reporter's own remark. */
const replyEnd =
  /\n[ \t]*\n|\n[ \t]*(?:>>>|<<<|-{3,}|\.\.\. while|while talking|giving up on|i'm not going to try again|\(in reply to|(?:possible|common|likely) (?:reasons?|causes?)|th(?:is|e) \w{1,12} (?:may|might|could)|please |for (?:more|further) )/i;
const quoteEnds: Record<string, RegExp> = { "[": /\]/, '"': /"/, "'": /'(?![a-z])/i };

function replyPart(text: string, before: string): string {
  const code = text.slice(0, 3);
  const cuts = [text.search(replyEnd), text.search(new RegExp(`\\n[ \\t]*(?!${code})[2-5]\\d\\d[ -]`))];
  const quoted = quoteEnds[before];
  if (quoted) cuts.push(text.search(quoted));
  return text.slice(0, Math.min(text.length, ...cuts.filter((at) => at > 3)));
}

/** White space and control characters become single spaces; the `550-5.1.1` of continuation lines go. */
export function oneLine(text: string): string {
  const [, code, status = ""] = /^([45]\d\d)[ -]+(?:([245]\.\d{1,3}\.\d{1,3}) )?/.exec(text) ?? [];
  const joined =
    code === undefined
      ? text
      : text.replace(
          new RegExp(`[ \\t\\n]${code}[ -](?:[ \\t]*${status.replaceAll(".", "\\.")}(?![\\d.]))?`, "g"),
          " ",
        );
  return joined
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim()
    .slice(0, longestText)
    .toWellFormed();
}
