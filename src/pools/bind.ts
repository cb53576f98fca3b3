// Tests whether this machine has an address: binds a datagram socket to it on any port and closes it, which sends
// nothing. It does not test whether the address has a route to the Internet.
import { createSocket } from "node:dgram";
import { isIP } from "node:net";

/** Never rejects; false also for a text that is not an address. */
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
