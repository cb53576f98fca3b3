// The address that a link of a mail leads to, as a Location field can have it (RFC 9110 §10.2.2): every printable ASCII
// octet stays as it was written, what is not ASCII is written as WHATWG URL serialises it, and tab, CR and LF are taken
// out, as its parser does. Null for what is left alone: other schemes, relative references, addresses that no browser
// opens, and templates whose host is filled in later.

/** Octets; browsers and proxies take at least 8,000 of a request line (RFC 9110 §4.1), and the token is a third longer. */
export const longestTarget = 4_096;
/** Characters. No resolver takes more octets (RFC 1035 §2.3.4), and Punycode costs their square. */
const longestHost = 253;

const httpLink = /^https?:\/\//i;
/** Scheme, user information, host, port; `\` is `/` to the parser of a browser. */
const parts = /^([a-z]+:\/\/)((?:[^/\\?#]*@)?)(\[[^\]]*\]|[^/\\?#:@]*)(.*)$/is;
/** C0 controls and space at the ends do not belong to a URL (WHATWG URL §4.4). */
// oxlint-disable-next-line no-control-regex
const ends = /^[\0-\x20]+|[\0-\x20]+$/g;
const removed = /[\t\r\n]+/g;
/** `{{host}}`, `${host}`, `%%host%%`. */
const placeholder = /[{}$%]/;
/** What no charset has: the link was broken before us. */
const unknown = /[\0\ufffd]/;
const notPrintable = /[^\x20-\x7e]+/g;

/** Most links: nothing of them is to be looked at twice. An address that ends in a digit, or an A-label, may be none. */
const plainLink = /^https?:\/\/(?!\S*xn--)[a-z0-9.-]{0,200}[a-z](?::\d{1,4})?(?:[/?#][!-~]*)?$/i;

/** `written`: the value of the attribute, its character references decoded. */
export function linkTarget(written: string): string | null {
  if (written.length <= longestTarget && plainLink.test(written)) return written;
  if (unknown.test(written)) return null;
  const link = written.replace(ends, "").replace(removed, "");
  if (link.length > longestTarget || !httpLink.test(link)) return null;
  const [, scheme = "", user = "", host = "", rest = ""] = parts.exec(link) ?? [];
  if (host === "" || host.length > longestHost || placeholder.test(host) || !URL.canParse(link)) return null;
  const target = `${encoded(scheme + user)}${asciiHost(host)}${encoded(rest)}`;
  return target.length > longestTarget ? null : target;
}

function asciiHost(host: string): string {
  return notAscii(host) ? new URL(`http://${host}/`).hostname : host;
}

/** Octets of UTF-8, percent-encoded (WHATWG URL §1.3). */
function encoded(text: string): string {
  if (!notAscii(text)) return text;
  return text.replace(notPrintable, (some) =>
    [...Buffer.from(some.toWellFormed())]
      .map((octet) => `%${octet.toString(16).toUpperCase().padStart(2, "0")}`)
      .join(""),
  );
}

function notAscii(text: string): boolean {
  return /[^\x20-\x7e]/.test(text);
}
