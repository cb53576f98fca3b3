// An endpoint of webhooks, as a process of its own: HTTPS with keep-alive, each signature verified over the raw
// bytes, every event answered with 200 and counted once. It parses what undici sends, and no more of HTTP.
// webhook-receiver.ts PORT CERTIFICATE KEY; a line on stdin is the secret; prints "ready", and on SIGUSR2 a line
// {"events","wrong","repeated","lastNs"}.
import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { createServer, type TLSSocket } from "node:tls";

export interface ReceiverStats {
  events: number;
  wrong: number;
  repeated: number;
  /** CLOCK_MONOTONIC. */
  lastNs: number;
}

const [port, certificate = "", key = ""] = process.argv.slice(2);
const stats: ReceiverStats = { events: 0, wrong: 0, repeated: 0, lastNs: 0 };
const seen = new Set<string>();
let secret = "";

createInterface({ input: process.stdin }).on("line", (text) => (secret = text));
process.on("SIGUSR2", () => process.stdout.write(`${JSON.stringify(stats)}\n`));
createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, serve).listen(
  Number(port),
  "127.0.0.1",
  () => process.stdout.write("ready\n"),
);

function serve(socket: TLSSocket): void {
  let held: Buffer = Buffer.alloc(0);
  socket.setNoDelay(true).on("error", () => socket.destroy());
  socket.on("data", (chunk: Buffer) => {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    for (;;) {
      const end = held.indexOf("\r\n\r\n");
      if (end < 0) return;
      const head = held.toString("latin1", 0, end);
      const length = Number(field(head, "content-length"));
      if (held.length < end + 4 + length) return;
      const right = verify(head, held.subarray(end + 4, end + 4 + length));
      held = held.subarray(end + 4 + length);
      socket.write(`HTTP/1.1 ${right ? "200 OK" : "401 Unauthorized"}\r\ncontent-length: 0\r\n\r\n`);
    }
  });
}

function verify(head: string, body: Buffer): boolean {
  const timestamp = field(head, "x-svc-timestamp");
  const digest = createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex");
  const expected = Buffer.from(`sha256=${digest}`);
  const given = Buffer.from(field(head, "x-svc-signature"));
  const fresh = Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300;
  if (!fresh || given.length !== expected.length || !timingSafeEqual(given, expected)) {
    stats.wrong++;
    return false;
  }
  const id = field(head, "x-svc-event-id");
  if (seen.has(id)) stats.repeated++;
  else {
    seen.add(id);
    stats.events++;
    stats.lastNs = Number(process.hrtime.bigint());
  }
  return true;
}

function field(head: string, name: string): string {
  const at = head.toLowerCase().indexOf(`\r\n${name}:`);
  if (at < 0) return "";
  const end = head.indexOf("\r\n", at + 2);
  return head.slice(at + name.length + 3, end < 0 ? undefined : end).trim();
}
