// Secrets in lines of the log: nothing writes one on purpose, but the text of an error or of a peer may hold one. Each form
// that a secret of this program has, or of what it speaks with, is replaced wherever it stands.

const replaced = "[redacted]";

/** One look at most lines, which have none of these. What repeats is bounded: hostile text of any length takes as long as it is. */
const perhaps =
  /svc_|whsec_|Bearer |Basic |:\/\/[^"\s]{0,500}@|PRIVATE KEY|"[^"]{0,60}(?:password|passwd|secret|token|authorization|cookie)[^"]{0,60}":/i;

/** Of JSON text: a match is within one string, or a member's value. */
const forms: readonly [pattern: RegExp, by: string][] = [
  [/svc_(?:live|test)_[0-9A-Za-z]{20,}/g, replaced],
  [/whsec_[\w+/=-]{8,}/g, replaced],
  [/\b(Bearer|Basic) [\w.~+/=-]{8,}/gi, `$1 ${replaced}`],
  [/(:\/\/[^\s/"@:]{0,200}:)[^\s/"@]{1,300}(?=@)/g, `$1${replaced}`],
  [/-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:(?!-----END)[^"])*/g, replaced],
  [
    /("(?:[\w-]{0,60}[_-])?(?:password|passwd|secret|token|authorization|cookie)":)(?:"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[\d.]+)/gi,
    `$1"${replaced}"`,
  ],
  // The same within a string, where quotes are escaped.
  [
    /(\\"(?:[\w-]{0,60}[_-])?(?:password|passwd|secret|token|authorization|cookie)\\"\s{0,3}:\s{0,3}\\")(?:(?!\\")[^"]){1,1000}/gi,
    `$1${replaced}`,
  ],
];

/** `json`: one line. */
export function withoutSecrets(json: string): string {
  if (!perhaps.test(json)) return json;
  return forms.reduce((text, [pattern, by]) => text.replace(pattern, by), json);
}

/** What a cut may leave of a secret, which none of the forms then knows: the beginning of one, and a password whose `@` is gone. */
const unfinished =
  /svc_(?:live|test)_[0-9A-Za-z]{0,19}$|whsec_[\w+/=-]{0,7}$|\b(?:Bearer|Basic) [\w.~+/=-]{0,7}$|:\/\/[^\s/"@:]{0,200}:[^\s/"@]{0,300}$/i;

/** `text`: cut off at its end. A regular expression looks at each place where one of these may begin, and no further than its bound. */
export const withoutUnfinishedSecret = (text: string): string => text.replace(unfinished, replaced);
