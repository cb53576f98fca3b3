// Posts events to a URL of the person's choice as webhooks are posted: the same body, the same headers, signed the same
// way, one attempt each. A redirect is an answer that is not 2xx; every failure is a value.
import type { IncomingMessage } from "node:http";
import type { WebhookFormat } from "../model/webhook.ts";
import type { Cli } from "./cli.ts";
import type { FollowedEvent } from "./event-stream.ts";
import { usage } from "./fault.ts";

export interface Forwarded {
  delivered: boolean;
  /** HTTP status; null where there was no answer. */
  status: number | null;
  duration_ms: number;
  /** Why there was no answer. */
  error: string | null;
  /** How an answer that is not a success begins. */
  answer: string | null;
}

export interface Signing {
  secret: string;
  format: WebhookFormat;
}

/** As long as a webhook's receiver has. */
const timeoutMs = 10_000;
const longestAnswer = 200;

/** Where events may be forwarded. Throws usage. */
export function forwardUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  const right = url !== null && /^https?:$/.test(url.protocol) && url.username + url.password === "";
  if (url === null || !right)
    throw usage(`--forward-to: found "${text}", expected an address such as http://localhost:3000/hooks`);
  return url;
}

export async function forward(
  cli: Cli,
  url: URL,
  { secret, format }: Signing,
  event: FollowedEvent,
): Promise<Forwarded> {
  const { clock } = cli.io;
  const { signatureHeaders } = await import("../webhooks/signature.ts");
  const body = Buffer.from(event.body, "utf8");
  const endpoint = { secret, format, previousSecret: null, previousSecretUntil: null };
  const headers = {
    "Content-Type": "application/json",
    "Content-Length": body.length,
    "User-Agent": `svc/${cli.version}`,
    "X-Svc-Event-Id": event.id,
    "X-Svc-Delivery-Attempt": "1",
    ...signatureHeaders(endpoint, { id: event.id, body }, clock.now()),
  };
  const began = clock.monotonic();
  const ended = (rest: Pick<Forwarded, "status" | "error" | "answer">): Forwarded => ({
    delivered: rest.status !== null && rest.status >= 200 && rest.status < 300,
    ...rest,
    duration_ms: Math.round(clock.monotonic() - began),
  });
  try {
    const { status, answer } = await post(cli, url, headers, body);
    return ended({ status, error: null, answer: status >= 200 && status < 300 ? null : answer });
  } catch (error) {
    return ended({ status: null, error: reasonOf(error), answer: null });
  }
}

async function post(
  cli: Cli,
  url: URL,
  headers: Record<string, string | number>,
  body: Buffer,
): Promise<{ status: number; answer: string }> {
  const { request } = url.protocol === "http:" ? await import("node:http") : await import("node:https");
  const sent = request(url, { method: "POST", headers, agent: false });
  let late: Error | null = null;
  const deadline = cli.io.clock.after(timeoutMs, () => {
    late = new Error(`no answer within ${timeoutMs / 1000} seconds`);
    sent.destroy(late);
  });
  try {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      sent.on("response", resolve);
      sent.on("error", reject);
      sent.end(body);
    });
    return { status: answer.statusCode ?? 0, answer: await beginning(answer) };
  } catch (error) {
    throw late ?? error; // an answer that has begun ends with a fault of its own
  } finally {
    deadline.cancel();
    sent.destroy();
  }
}

/** The rest is not read. */
async function beginning(answer: AsyncIterable<Buffer>): Promise<string> {
  let text = "";
  for await (const chunk of answer) {
    text += chunk.toString();
    if (text.length >= longestAnswer) break;
  }
  return text.slice(0, longestAnswer).trim();
}

/** Of a host with several addresses the first one's. */
function reasonOf(error: unknown): string {
  const first: unknown = error instanceof AggregateError ? (error.errors[0] ?? error) : error;
  return first instanceof Error ? first.message || first.name : String(first);
}
