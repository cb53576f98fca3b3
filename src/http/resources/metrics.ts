// The metrics of the server, for Prometheus: on the operator's socket, and on metrics.listen, which shows nothing else.
import { z } from "zod";
import type { RouteDeps } from "../deps.ts";
import { route, type Route } from "../route.ts";

export const metricsType = "text/plain; version=0.0.4; charset=utf-8";

export function metricsRoutes(deps: Pick<RouteDeps, "metrics">): Route[] {
  return [
    route({
      method: "GET",
      path: "/metrics",
      summary: "Get the metrics of the server, in Prometheus' text format",
      answers: { 200: { "text/plain": z.string() } },
      lastModifiedFrom: "always",
      scopes: ["admin"],
      bucket: "default",
      listeners: "admin",
      query: z.object({}),
      body: null,
      handle: async () => ({
        status: 200,
        headers: { "content-type": metricsType },
        body: await deps.metrics(),
      }),
    }),
  ];
}
