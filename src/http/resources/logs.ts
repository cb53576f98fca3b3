// GET /v1/logs, on the operator's socket only: the last lines of the log, and with follow=true those to come. The log
// itself goes to stderr (log.ts); what is kept of it here is what a person looks for first.
import { z } from "zod";
import { logLevels } from "../../model/log-level.ts";
import type { RouteDeps } from "../deps.ts";
import { route, type Route } from "../route.ts";
import { keepAlive } from "../streams.ts";

const query = z.object({
  component: z
    .string()
    .regex(/^[a-z-]{1,40}$/, "is not the name of a component, like queue or webhooks")
    .optional()
    .describe("Lines of this part of the program alone."),
  level: z.enum(logLevels).default("debug").describe("Lines of this level and of graver ones."),
  lines: z.coerce.number().int().min(0).max(2000).default(100).describe("How many of the last lines."),
  follow: z
    .enum(["true", "false"])
    .default("false")
    .transform((text) => text === "true")
    .describe("true: the answer goes on with each line that is logged."),
});

const lineSchema = z
  .looseObject({ level: z.enum(logLevels), time: z.string(), msg: z.string().optional() })
  .meta({ id: "LogLine" });

export function logRoutes({ logLines, clock, streams }: RouteDeps): Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/logs",
      summary: "Get the last lines of the log, and those to come, one a line",
      answers: { 200: { "application/x-ndjson": lineSchema } },
      lastModifiedFrom: "always",
      scopes: ["admin"],
      bucket: "default",
      listeners: "admin",
      query,
      body: null,
      handle({ query: { component, level, lines, follow } }) {
        const wanted = wantedBy(component, level);
        const last = lines === 0 ? [] : logLines.last().filter(wanted).slice(-lines);
        const stream = streams.open();
        for (const line of last) stream.write(line);
        if (follow) {
          stream.write(""); // the answer begins now, not with the next line
          stream.onEnd(logLines.onLine((line) => void (wanted(line) && stream.write(line))));
          keepAlive(clock, stream);
        } else stream.end();
        return Promise.resolve({
          status: 200,
          headers: { "content-type": "application/x-ndjson" },
          body: stream.body,
        });
      },
    }),
  ];
}

/** A quote within a string of JSON has a backslash before it: these can only be members of the line. */
function wantedBy(
  component: string | undefined,
  level: (typeof logLevels)[number],
): (line: string) => boolean {
  const levels = logLevels.slice(logLevels.indexOf(level)).map((name) => `{"level":"${name}",`);
  const named = component === undefined ? null : `"component":"${component}"`;
  return (line) => levels.some((start) => line.startsWith(start)) && (named === null || line.includes(named));
}
