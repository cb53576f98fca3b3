// Whether this machine has an address: a datagram socket is bound to it on any port and closed, which nobody outside
// notices. It says nothing of whether a way leads out from there.
import { createSocket } from "node:dgram";
import { isIP } from "node:net";

/** Never rejects; false for what is no address too. */
export function canBind(address: string): Promise<boolean> {
  const family = isIP(address);
  if (family === 0) return Promise.resolve(false);
  return new Promise((resolve) => {
    const socket = createSocket({ type: family === 6 ? "udp6" : "udp4", ipv6Only: family === 6 });
    const end = (bound: boolean): void => {
      socket.removeAllListeners("error").on("error", () => undefined);
      socket.close();
      resolve(bound);
    };
    socket.once("error", () => end(false));
    socket.bind({ address, port: 0, exclusive: true }, () => end(true));
  });
}
