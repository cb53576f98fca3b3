// Receives webhooks: PORT=8080 node webhook.mjs, behind a proxy that has the certificate (webhooks are sent by HTTPS only).
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const secret = process.env.SVC_WEBHOOK_SECRET; // the 64 characters as they are: they are not encoded
const toleranceSeconds = 5 * 60;
const keptMs = 25 * 60 * 60_000;
const mostBytes = 1_000_000;
const seen = new Map(); // event_id → when; where there are several processes: a table with a unique key

/** True for a body, as it came, that the holder of the secret signed within the last five minutes. */
function isGenuine(headers, body) {
  const timestamp = headers["x-svc-timestamp"] ?? "";
  if (!/^\d+$/.test(timestamp) || Math.abs(Date.now() / 1000 - timestamp) > toleranceSeconds) return false;
  const digest = createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex");
  const expected = Buffer.from(`sha256=${digest}`);
  // For a while after the secret was rotated, the second header is signed with the one before.
  return ["x-svc-signature", "x-svc-signature-previous"].some((name) => {
    const given = Buffer.from(headers[name] ?? "");
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

/** False where the event was here before: each may come more than once. */
function isNew(eventId) {
  const now = Date.now();
  for (const [id, at] of seen) {
    if (now - at < keptMs) break; // the oldest stand first
    seen.delete(id);
  }
  if (seen.has(eventId)) return false;
  seen.set(eventId, now);
  return true;
}

async function receive(request, response) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > mostBytes) return response.writeHead(413, { connection: "close" }).end();
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  if (request.method !== "POST" || !isGenuine(request.headers, body)) return response.writeHead(401).end();
  const event = JSON.parse(body);
  response.writeHead(202).end(); // first the answer, then the work: there are 10 seconds for it
  if (isNew(event.event_id)) handle(event);
}

function handle(event) {
  console.log(event.event_id, event.event, event.data.to ?? "");
}

createServer((request, response) => receive(request, response).catch(() => response.destroy())).listen(
  Number(process.env.PORT ?? 8080),
  "127.0.0.1",
);
