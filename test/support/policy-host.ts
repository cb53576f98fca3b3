// The web server of an MTA-STS policy (RFC 8461 §3.3), whose answer a test may change while it runs.
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";

export interface PolicyHost {
  port: number;
  /** Paths that were asked for, in order. */
  asked: string[];
  /** How the next requests are answered. */
  answer(react: (response: ServerResponse, request: IncomingMessage) => void): void;
  /** Answers with this policy. */
  publish(policy: string): void;
  stop(): Promise<void>;
}

export async function startPolicyHost(options: {
  key: string;
  cert: string;
  address?: string;
  port?: number;
}): Promise<PolicyHost> {
  let react = (response: ServerResponse, _request: IncomingMessage): void =>
    void response.writeHead(404).end();
  const asked: string[] = [];
  const server = createServer({ key: options.key, cert: options.cert }, (request, response) => {
    asked.push(`${request.headers.host}${request.url}`);
    react(response, request);
  });
  server.listen(options.port ?? 0, options.address ?? "127.0.0.1");
  await once(server, "listening");
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("no address");
  return {
    port: bound.port,
    asked,
    answer: (given) => void (react = given),
    publish: (policy) =>
      void (react = (response) => response.writeHead(200, { "content-type": "text/plain" }).end(policy)),
    async stop() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The text of a policy. */
export const policyText = (mode: string, mx: string[], maxAge = 86_400): string =>
  ["version: STSv1", `mode: ${mode}`, ...mx.map((host) => `mx: ${host}`), `max_age: ${maxAge}`, ""].join(
    "\r\n",
  );
