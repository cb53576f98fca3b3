// A mail as a page of its own for a browser: its headers, its text, and its HTML in a frame in which nothing runs. The
// page loads nothing from anywhere, so that looking at a mail fetches no picture and visits no link: no script, no form,
// no remote image or style (Content-Security-Policy, the frame's sandbox).
import type { Row } from "./output.ts";

export interface ShownMail {
  headers: [name: string, value: string][];
  text: string | null;
  html: string | null;
  attachments: Row[];
}

/** Inherited by the frame, whose document is a part of this one (HTML §7.2). */
const policy =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'";

const style =
  "body{margin:0;font:16px/1.4 system-ui,sans-serif;color:#111;background:#fff}header,pre,ul{margin:0;padding:1em}" +
  "dl{display:grid;grid-template-columns:max-content 1fr;gap:.2em 1em;margin:0}dt{color:#555}dd{margin:0;overflow-wrap:anywhere}" +
  "iframe{border:0;border-top:1px solid #ccc;width:100%;height:75vh;background:#fff}pre{white-space:pre-wrap;border-top:1px solid #ccc}";

export function mailPage({ headers, text, html, attachments }: ShownMail): string {
  const fields = headers.map(([name, value]) => `<dt>${escaped(name)}</dt><dd>${escaped(value)}</dd>`);
  const files = attachments.map(
    ({ filename, content_type: type, size_bytes: size }) =>
      `<li>${escaped(`${wordOf(filename, "unnamed")} (${wordOf(type, "?")}, ${wordOf(size, "?")} bytes)`)}</li>`,
  );
  const frame =
    html === null
      ? ""
      : `<iframe sandbox="" referrerpolicy="no-referrer" title="HTML" srcdoc="${escaped(withoutConnections(html))}"></iframe>`;
  return [
    "<!doctype html>",
    '<html lang="en"><head><meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    '<meta name="referrer" content="no-referrer">',
    '<meta http-equiv="x-dns-prefetch-control" content="off">', // holds for the frame too
    `<title>${escaped(headers.find(([name]) => name === "Subject")?.[1] ?? "Mail")}</title>`,
    `<style>${style}</style></head><body>`,
    `<header><dl>${fields.join("")}</dl></header>`,
    ...(files.length === 0 ? [] : [`<ul>${files.join("")}</ul>`]),
    frame,
    text === null ? "" : `<pre>${escaped(text)}</pre>`,
    "</body></html>",
    "",
  ].join("\n");
}

const wordOf = (value: unknown, none: string): string =>
  typeof value === "string" || typeof value === "number" ? String(value) : none;

/**
 * What a browser connects to a host for before it asks the Content-Security-Policy, which tells the sender that the mail was
 * opened: hints such as `<link rel=preconnect>`, and frames. A start tag is written in no other way (HTML §13.2.5.6).
 */
function withoutConnections(html: string): string {
  return html.replace(/<(?=(?:link|i?frame|fencedframe|object|embed)[\s/>])/gi, "<no-");
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
