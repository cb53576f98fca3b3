// A sender of send requests, as a process of its own: HTTPS with keep-alive, one request after the other on each of
// its connections, written by hand so that it costs little beside what it measures.
// rest.ts '{"port","key","connections","messages","sizeBytes","destinations","recipients","idempotencyKeys","sendAt","tracked"}'
// Prints {"beganNs","endedNs","accepted","refused","answerP50","answerP99"}; times are CLOCK_MONOTONIC, the last two ms.
import { connect, type TLSSocket } from "node:tls";

export interface RestWork {
  port: number;
  key: string;
  connections: number;
  messages: number;
  sizeBytes: number;
  /** Recipient domains, d0.test … */
  destinations: number;
  /** Of one request. */
  recipients: number;
  idempotencyKeys: boolean;
  /** RFC 3339; null: at once. */
  sendAt: string | null;
  /** HTML with ten links, tracked or not; null: plain text. */
  tracked: boolean | null;
}

export interface RestResult {
  beganNs: number;
  endedNs: number;
  accepted: number;
  refused: number;
  answerP50: number;
  answerP99: number;
}

const work = JSON.parse(process.argv[2] ?? "{}") as RestWork;
const line = "the quick brown fox jumps over the lazy dog and back again, all day long\\r\\n";
const text = line.repeat(Math.ceil(work.sizeBytes / (line.length - 2)));
const linkTo = (item: number): string =>
  `<p><a href=\\"https://shop.example/sale?item=471${item}&amp;from=mail\\">on sale</a></p>\\r\\n`;
const lines = line.repeat(Math.ceil(work.sizeBytes / line.length / 11));
const html = `<html><body>\\r\\n${Array.from({ length: 10 }, (_, n) => lines + linkTo(n)).join("")}</body></html>`;
const run = `${process.pid}-${process.hrtime.bigint()}`;
let [begun, accepted, refused] = [0, 0, 0];
const answerNs: number[] = [];
const now = (): number => Number(process.hrtime.bigint());

const { promise: finished, resolve: finish, reject: fail } = Promise.withResolvers<void>();
const sockets = await Promise.all(Array.from({ length: work.connections }, dial));
const beganNs = now();
for (const socket of sockets) converse(socket);
await finished;
const endedNs = now();
for (const socket of sockets) socket.destroy();
const sorted = answerNs.toSorted((a, b) => a - b);
const at = (share: number): number => (sorted[Math.floor(sorted.length * share)] ?? 0) / 1e6;
const result: RestResult = { beganNs, endedNs, accepted, refused, answerP50: at(0.5), answerP99: at(0.99) };
process.stdout.write(JSON.stringify(result));

function dial(): Promise<TLSSocket> {
  return new Promise((done) => {
    const socket = connect({ host: "127.0.0.1", port: work.port, rejectUnauthorized: false }, () =>
      done(socket),
    );
    socket.setNoDelay(true).on("error", fail);
  });
}

function converse(socket: TLSSocket): void {
  let held = "";
  let askedNs = 0;
  const ask = (): void => {
    if (begun >= work.messages) return;
    askedNs = now();
    socket.write(request(begun++), "latin1");
  };
  socket.on("data", (chunk: Buffer) => {
    held += chunk.toString("latin1");
    const head = held.indexOf("\r\n\r\n");
    if (head < 0) return;
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(held)?.[1]);
    if (!Number.isInteger(length)) return fail(new Error(`an answer without a length: ${held}`));
    if (held.length < head + 4 + length) return;
    answerNs.push(now() - askedNs);
    if (held.startsWith("HTTP/1.1 202")) accepted++;
    else if (refused++ === 0) process.stderr.write(`${held}\n`);
    held = "";
    if (accepted + refused >= work.messages) finish();
    else ask();
  });
  socket.on(
    "close",
    () => accepted + refused < work.messages && fail(new Error("the connection was closed")),
  );
  ask();
}

function content(): string {
  if (work.tracked === null) return `"text":"${text}"`;
  const tracking = work.tracked ? ',"track_opens":true,"track_clicks":true,"unsubscribe":true' : "";
  return `"html":"${html}","auto_text":false${tracking}`;
}

/** ASCII only: its length in characters is its length in bytes. */
function request(number: number): string {
  const to = Array.from(
    { length: work.recipients },
    (_, i) => `"r${i}@d${(number + i) % work.destinations}.test"`,
  ).join(",");
  const sendAt = work.sendAt === null ? "" : `,"send_at":"${work.sendAt}"`;
  const body =
    `{"from":"sender@example.test","to":[${to}],"subject":"number ${number}",` +
    `"headers":{"X-Bench-Number":"${number}"}${sendAt},${content()}}`;
  const idempotency = work.idempotencyKeys ? `Idempotency-Key: ${run}-${number}\r\n` : "";
  return (
    `POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:${work.port}\r\nAuthorization: Bearer ${work.key}\r\n` +
    `Content-Type: application/json\r\n${idempotency}Content-Length: ${body.length}\r\n\r\n${body}`
  );
}
