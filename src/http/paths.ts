// How the target of a request is read (RFC 9112 §3.2, RFC 3986 §6.2.2). h3 decodes what needs no encoding and resolves
// dot segments before it looks for a route; everything else (authentication, fingerprints, the audit log, Location)
// sees the same path. What would let two readers see two paths is refused.

/** False for another scheme than HTTP's, for a backslash, which URL parsers take for a slash, and for a fragment. */
export function isGoodTarget(target: string): boolean {
  if (/[\\#]/.test(target)) return false;
  return target.startsWith("/") || target === "*" || /^https?:\/\/[^/]/i.test(target);
}

/** One path, one spelling: the slash at the end says nothing. */
export function withoutLastSlash(path: string): string {
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}

/** True for any spelling of /v1 and of what is below it, valid or not: without a key nothing is said about them. */
export function isBelowApi(path: string): boolean {
  if (path.startsWith("/v1/")) return true;
  let plain = path;
  for (let pass = 0; pass < 3 && plain.includes("%"); pass++) plain = decoded(plain);
  return /^\/+(\.\/+)*v1($|[/;?])/i.test(plain.replaceAll("\\", "/"));
}

function decoded(path: string): string {
  return path.replace(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
