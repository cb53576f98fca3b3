// GET /errors/<code>: the page that the `type` of a problem leads to. What the code means, who mends it and how, from
// the catalogue (errors.ts); small static HTML, for anybody, without a key.
import { z } from "zod";
import { Refusal, errorCatalog, type ErrorCode, type FixedBy } from "../../errors.ts";
import { htmlHeaders } from "../html.ts";
import { route, type Route } from "../route.ts";
import { htmlPage } from "../view-fields.ts";

const who: Record<FixedBy, string> = {
  client: "The sender of the request.",
  operator: "The operator of this service.",
  server: "The service itself; its operator, if it persists.",
};

/** By who mends it, where the code has nothing of its own. */
const howInGeneral: Record<FixedBy, string> = {
  client: "Change the request as the detail and errors of the answer say. The same request is refused again.",
  operator:
    "Wait, or ask the operator. The same request may be sent again later, with the same Idempotency-Key.",
  server:
    "Send the request again after Retry-After or with a growing delay, with the same Idempotency-Key. If it persists, give the operator the request_id.",
};

const how: Partial<Record<ErrorCode, string>> = {
  invalid_api_key:
    "Send Authorization: Bearer with a key as it was shown at its creation; svc keys create creates a new key.",
  scope_insufficient: "Use a key whose scope is the required_scope of the answer, or admin.",
  key_disabled: "Ask the operator: svc keys enable enables a disabled key again.",
  ip_not_allowed: "Send from an address of the key's allowlist, or use another key.",
  source_ip_locked: "Wait for retry_after_seconds, and find out what sends the wrong key or password.",
  duplicate_idempotency_key:
    "Use a new Idempotency-Key for each new request, and the same one only to repeat a request.",
  rate_limit_exceeded:
    "Wait for Retry-After seconds, then send more slowly; the X-RateLimit-* headers show the state of the bucket.",
  sender_not_verified:
    "Publish the records of failing_records in the DNS of the domain, then run svc domains verify.",
  recipient_suppressed:
    "Leave out the addresses of suppressed_recipients. To send to such an address again, remove it from the list first.",
  message_too_large:
    "Send less, or a link instead of an attachment: the limit is 26,214,400 bytes of the composed message, base64 included.",
  scheduling_window_exceeded: "Send the request at most 72 hours before send_at.",
  resource_not_found: "Check the id and the path. A key does not see what belongs to another account.",
  message_not_cancelable: "Nothing; GET /v1/messages/{id} shows the status of each recipient.",
};

export function errorRoutes(): Route[] {
  return [
    route({
      method: "GET",
      path: "/errors/{code}",
      summary: "Get the page of an error code",
      answers: { 200: { "text/html": htmlPage } },
      refuses: ["resource_not_found"],
      lastModifiedFrom: [],
      scopes: "open",
      bucket: "default",
      listeners: "public",
      query: z.object({}),
      body: null,
      handle(call) {
        const code = call.param("code");
        if (!isCode(code)) throw new Refusal("resource_not_found", "There is no such error code.");
        const headers = {
          ...htmlHeaders(["style-src 'unsafe-inline'"]),
          "cache-control": "public, max-age=3600",
        };
        return Promise.resolve({ status: 200, headers, body: page(code) });
      },
    }),
  ];
}

function isCode(text: string): text is ErrorCode {
  return Object.hasOwn(errorCatalog, text);
}

function page(code: ErrorCode): string {
  const { status, title, meaning, fixedBy } = errorCatalog[code];
  const parts = {
    "What it means": meaning,
    "Who fixes it": who[fixedBy],
    How: how[code] ?? howInGeneral[fixedBy],
  };
  const text = Object.entries(parts).map(([name, said]) => `<h2>${name}</h2>\n<p>${escaped(said)}</p>`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${code}</title>
<style>body { font: 1rem/1.5 sans-serif; max-width: 40rem; margin: 2rem auto; padding: 0 1rem }</style>
</head>
<body>
<h1>${escaped(title)}</h1>
<p><code>${code}</code>, HTTP ${status}</p>
${text.join("\n")}
</body>
</html>
`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
