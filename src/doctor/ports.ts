// Whether the ports of a stopped service could be opened: each is, for a moment.
import { createServer } from "node:net";
import type { ClosedListener, World } from "./check.ts";

type Listener = World["listeners"][number];

/** One after the other: `[::]:25` and `0.0.0.0:25` of one configuration would be in each other's way. */
export async function closedPorts(listeners: readonly Listener[]): Promise<ClosedListener[]> {
  const closed: ClosedListener[] = [];
  for (const listener of listeners) {
    if ("path" in listener.listen) continue; // of a Unix socket a file may be left, which a start removes
    const error = await opened(listener);
    if (error) closed.push(closedListener(listener, error));
  }
  return closed;
}

export function closedListener(listener: Listener, error: NodeJS.ErrnoException): ClosedListener {
  const { code, message } = error;
  if (code === "EADDRINUSE") return { ...listener, kind: "taken", why: "another program has the port" };
  if (code === "EACCES") return { ...listener, kind: "forbidden", why: "this user may not open the port" };
  return {
    ...listener,
    kind: "failed",
    why: code === "EADDRNOTAVAIL" ? "this machine does not have the address" : message,
  };
}

/** Resolves with the error of what could not be opened. */
function opened({ listen }: Listener): Promise<NodeJS.ErrnoException | null> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", resolve);
    server.listen({ ...listen, exclusive: true }, () => server.close(() => resolve(null)));
  });
}
