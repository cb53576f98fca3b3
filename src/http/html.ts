// The headers of every HTML page: it loads nothing that it does not name, is in no frame of another site, sends its form to
// no address, and sends no Referer (CSP Level 3; X-Content-Type-Options comes with every answer).

/** `sources`: what the page needs, as directives of its policy. */
export function htmlHeaders(sources: readonly string[]): Record<string, string> {
  const fixed = ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"];
  return {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": ["default-src 'none'", ...sources, ...fixed].join("; "),
    "referrer-policy": "no-referrer",
  };
}
