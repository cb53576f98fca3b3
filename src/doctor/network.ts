// What the doctor asks of the network by itself: whether a port answers, and what a time server says.
import { createSocket } from "node:dgram";
import { connect } from "node:net";
import type { Clock } from "../clock.ts";
import type { Resolver } from "../dns/resolver.ts";
import { recordsOf } from "../pools/ptr.ts";
import type { Dial } from "./check.ts";

const dialMs = 8_000;
const timeMs = 3_000;
const timeServer = "pool.ntp.org";

export function dial(
  host: string,
  port: number,
  { from, greeting }: { from: string | null; greeting: boolean },
  clock: Clock,
): Promise<Dial> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, ...(from === null ? {} : { localAddress: from }) });
    const end = (result: Dial): void => {
      timer.cancel();
      socket.destroy();
      resolve(result);
    };
    const timer = clock.after(dialMs, () =>
      end({ kind: "silent", why: `no answer within ${dialMs / 1000} s` }),
    );
    socket.once("error", (error: NodeJS.ErrnoException) =>
      end({ kind: error.code === "ECONNREFUSED" ? "refused" : "failed", why: error.code ?? error.message }),
    );
    socket.once("connect", () => {
      if (!greeting) end({ kind: "open", greeting: null });
    });
    if (!greeting) return;
    socket.once("data", (bytes: Buffer) => {
      const [line = ""] = bytes.toString("latin1").split("\r\n");
      socket.end("QUIT\r\n");
      end({ kind: "open", greeting: line.slice(0, 512) });
    });
    socket.once("end", () => end({ kind: "failed", why: "closed without a greeting" }));
  });
}

/** By SNTP (RFC 4330): how far our clock is ahead of a time server's, half of the way there and back taken off. */
export async function clockAhead(resolver: Pick<Resolver, "a">, clock: Clock): Promise<number | null> {
  const [server] = recordsOf(await resolver.a(timeServer));
  if (server === undefined) return null;
  const { promise, resolve } = Promise.withResolvers<number | null>();
  const socket = createSocket("udp4");
  const timer = clock.after(timeMs, () => resolve(null));
  const request = Buffer.alloc(48);
  request[0] = 0x1b; // version 3, client
  const sentAt = clock.now();
  socket.on("error", () => resolve(null));
  socket.on("message", (reply, { address }) => {
    if (address !== server || !isTime(reply)) return;
    const now = clock.now();
    const at =
      reply.readUInt32BE(40) * 1000 + (reply.readUInt32BE(44) / 2 ** 32) * 1000 - secondsTo1970 * 1000;
    resolve((sentAt + now) / 2 - at);
  });
  socket.send(request, 123, server);
  try {
    return await promise;
  } finally {
    timer.cancel();
    socket.close();
  }
}

/** A server's answer (mode 4) that has the time: not "ask less" (stratum 0), not of a clock that is not set (RFC 4330 §5). */
export function isTime(reply: Buffer): boolean {
  if (reply.length < 48) return false;
  const [first = 0, stratum = 0] = reply;
  return (
    first >> 6 !== 3 && (first & 7) === 4 && stratum >= 1 && stratum <= 15 && reply.readUInt32BE(40) !== 0
  );
}

/** NTP counts from 1900. */
const secondsTo1970 = 2_208_988_800;
