// Whether an Authentication-Results field has a given authserv-id (RFC 8601 §2.2; RFC 8617 §4.1.1 puts an instance before
// it). Receivers in our domain trust results with our name, and submitted mail must not have any (RFC 8601 §5). The name
// is found in any spelling: case, comments, quotes, encoded-words, folding, with a version.
import { domainToASCII } from "node:url";
import { decodeWords } from "./encoded-word.ts";

/** `value`: unfolded. `host`: in A-label form. What cannot be parsed is taken for a claim if it contains the name. */
export function claimsHost(value: string, host: string): boolean {
  const name = host.toLowerCase();
  const read = withoutComments(decodeWords(value));
  if (read === null) return value.toLowerCase().includes(name);
  const [first = "", second = ""] = read.split(";", 2);
  return isHost(/^\s*i\s*=\s*\d+\s*$/i.test(first) ? second : first, name);
}

/** An authserv-id, maybe with a version: `mail.test`, `"mail.test" 1`. */
function isHost(text: string, name: string): boolean {
  const [word = ""] = text.trim().split(/[\s/]/, 1);
  return [word, withoutVersion(text.replaceAll(/\s/g, ""))].some((one) => hostName(one) === name);
}

/** `mail.test/1`, `mail.test1`: the digits at the end, and the slash before them. */
function withoutVersion(text: string): string {
  const end = endBefore(text, (char) => char >= "0" && char <= "9");
  return text.slice(0, end < text.length && text[end - 1] === "/" ? end - 1 : end);
}

/** Where the run of such characters at the end begins; `/x+$/` takes quadratic time where it is not at the end. */
function endBefore(text: string, isPart: (char: string) => boolean): number {
  let end = text.length;
  while (end > 0 && isPart(text.charAt(end - 1))) end--;
  return end;
}

function hostName(text: string): string {
  const bare = text.slice(
    0,
    endBefore(text, (char) => char === "."),
  );
  // An empty string is not a host name.
  return domainToASCII(bare) || bare.toLowerCase();
}

/** Comments (RFC 5322 §3.2.2, they nest) and quotes taken off; null where one of them does not end. */
function withoutComments(value: string): string | null {
  let depth = 0;
  let quoted = false;
  let kept = "";
  for (let i = 0; i < value.length; i++) {
    const escaped = value[i] === "\\" && (quoted || depth > 0);
    if (escaped) i++;
    const char = value[i] ?? "";
    if (!escaped && depth === 0 && char === '"') quoted = !quoted;
    else if (!escaped && !quoted && char === "(") depth++;
    else if (!escaped && depth > 0 && char === ")") depth--;
    else if (depth === 0) kept += char;
  }
  return quoted || depth > 0 ? null : kept;
}
