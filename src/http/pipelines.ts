// Requests of one connection that are under way at the same time (RFC 9112 §9.3.2). A few run side by side; more wait
// until an answer before them has been taken by the system, so that a client that sends requests and reads no answers
// has few answers. One that sends many more than any client pipelines is closed: each would cost memory.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

export const pipelineRule = { running: 16, all: 64 };

export interface Pipelines {
  /** The newest response of the connection, while it is not over. */
  latest(socket: Socket): ServerResponse | undefined;
  /** Runs the request, now or when its turn comes. */
  enter(req: IncomingMessage, res: ServerResponse, run: () => void): void;
}

interface Pipeline {
  latest: ServerResponse | undefined;
  running: number;
  waiting: (() => void)[];
}

export function createPipelines(rule = pipelineRule): Pipelines {
  const pipelines = new WeakMap<Socket, Pipeline>();
  return {
    latest: (socket) => pipelines.get(socket)?.latest,
    enter(req, res, run) {
      const { socket } = req;
      if (socket.destroyed) return;
      let own = pipelines.get(socket);
      if (!own) pipelines.set(socket, (own = { latest: undefined, running: 0, waiting: [] }));
      const pipeline = own;
      if (pipeline.running + pipeline.waiting.length >= rule.all) return void socket.destroy();
      pipeline.latest = res;
      const begin = (): void => {
        pipeline.running += 1;
        res.once("close", () => {
          pipeline.running -= 1;
          if (pipeline.latest === res) pipeline.latest = undefined;
          if (!socket.destroyed) pipeline.waiting.shift()?.();
        });
        run();
      };
      if (pipeline.running < rule.running && pipeline.waiting.length === 0) begin();
      else pipeline.waiting.push(begin);
    },
  };
}
