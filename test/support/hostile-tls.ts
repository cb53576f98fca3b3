// What a hostile client does with TLS itself, for every listener that speaks it.
import { once } from "node:events";
import { connect } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";

const host = "127.0.0.1";

/** Renegotiates TLS 1.2 until the server has had enough; how often that went well, 20 at most. */
export async function renegotiations(port: number): Promise<number> {
  const socket = connectTls({ host, port, rejectUnauthorized: false, maxVersion: "TLSv1.2" });
  socket.resume();
  await once(socket, "secureConnect");
  const refused = new Promise<false>((resolve) => {
    socket.on("error", () => resolve(false)).on("close", () => resolve(false));
  });
  const again = (): Promise<boolean> =>
    new Promise((resolve) => {
      socket.renegotiate({ rejectUnauthorized: false }, (error) => resolve(error === null));
    });
  let went = 0;
  while (went < 20 && (await Promise.race([again(), refused]))) went++;
  socket.destroy();
  return went;
}

/** Sends the first 320 KB of a ClientHello of 16 MB, and resolves when the server closes. */
export async function largeClientHello(port: number): Promise<void> {
  const socket = connect(port, host);
  socket.on("error", () => undefined).resume();
  const closed = new Promise((resolve) => socket.on("close", resolve));
  const record = Buffer.alloc(5 + 16_384);
  record.set([0x16, 0x03, 0x01, 0x40, 0x00]);
  const first = Buffer.from(record);
  first.set([0x01, 0xff, 0xff, 0xff, 0x03, 0x03], 5);
  socket.write(Buffer.concat([first, ...Array<Buffer>(19).fill(record)]));
  await closed;
}

/** Connections in whose handshake nothing more comes, of every second not even its begin; `trickle` sends an octet on each. */
export async function openHandshakes(
  port: number,
  count: number,
): Promise<{ closed: Promise<unknown>; trickle(): void }> {
  const sockets = Array.from({ length: count }, () => connect(port, host));
  const closed = Promise.all(
    sockets.map((socket) => {
      socket.on("error", () => undefined).resume();
      return new Promise((resolve) => socket.once("close", resolve));
    }),
  );
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  for (const [i, socket] of sockets.entries())
    if (i % 2 === 0) socket.write(Buffer.from("16030102000100", "hex"));
  return { closed, trickle: () => sockets.forEach((socket) => void socket.write(Buffer.from([1]))) };
}

/** A session under TLS on which each octet that is sent is a record of its own. */
export async function octetByOctet(port: number): Promise<{ socket: TLSSocket; send(text: string): void }> {
  const socket = connectTls({ host, port, rejectUnauthorized: false });
  await once(socket, "secureConnect");
  socket.setNoDelay(true);
  return {
    socket,
    send(text) {
      for (const octet of Buffer.from(text)) socket.write(Buffer.from([octet]));
    },
  };
}
