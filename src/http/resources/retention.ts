// /v1/retention, on the operator's socket only: begins a run of retention, and says how far it is and what is old enough for it.
import { z } from "zod";
import { isoTime } from "../../clock.ts";
import type { PurgedCounts } from "../../model/retention.ts";
import { timestamp } from "../../value-schemas.ts";
import type { RouteDeps } from "../deps.ts";
import { json, keepReply, operatorRoute, route, type Route } from "../route.ts";

const count = z.int().min(0);

const deletedSchema = z
  .strictObject({
    content: count.describe("Messages whose content was deleted."),
    messages: count,
    events: count,
    deliveries: count,
    idempotency: count.describe("Answers to requests with an Idempotency-Key."),
    audit: count,
    stats: count.describe("Rows of the statistics."),
    files: count.describe("Files of content."),
    file_bytes: count,
    returned_bytes: count.describe("Of the database's file, returned to the file system."),
  })
  .meta({ id: "DeletedByRetention" });

const runSchema = z.strictObject({ started_at: timestamp, deleted: deletedSchema });

const stateSchema = z
  .strictObject({
    running: runSchema.nullable(),
    last: runSchema
      .extend({
        ended_at: timestamp,
        error: z.string().nullable().describe("Why it did not come to its end."),
      })
      .nullable()
      .describe("The last one that was begun here since the start of the program."),
  })
  .meta({ id: "Retention" });

const rows = z.strictObject({
  rows: count,
  more: z.boolean().describe("There are more than these."),
});
const expiredSchema = z
  .strictObject({ content: rows, messages: rows, events: rows, audit: rows })
  .meta({ id: "ExpiredData" });

export function retentionRoutes({ retention }: RouteDeps): Route[] {
  const state = (): z.input<typeof stateSchema> => {
    const [running, last] = [retention.running(), retention.last()];
    return {
      running: running && { started_at: isoTime(running.startedAt), deleted: deletedBody(running.deleted) },
      last: last && {
        started_at: isoTime(last.startedAt),
        deleted: deletedBody(last.deleted),
        ended_at: isoTime(last.endedAt),
        error: last.error,
      },
    };
  };
  return [
    route({
      ...operatorRoute,
      path: "/v1/retention",
      method: "GET",
      summary: "Get the running deletion of expired data, and the last one",
      lastModifiedFrom: "always",
      answers: { 200: stateSchema },
      body: null,
      handle: () => Promise.resolve(json(200, state())),
    }),
    route({
      ...operatorRoute,
      path: "/v1/retention",
      method: "POST",
      summary: "Begin to delete expired data and to return free space",
      answers: { 202: stateSchema },
      refuses: ["conflict"],
      act: "retention.run",
      body: z.strictObject({}),
      bodyOptional: true,
      async handle({ idempotent }) {
        retention.begin();
        return keepReply(idempotent, json(202, state()));
      },
    }),
    route({
      ...operatorRoute,
      path: "/v1/retention/expired",
      method: "GET",
      summary: "Count the data that is old enough to be deleted",
      lastModifiedFrom: "always",
      answers: { 200: expiredSchema },
      body: null,
      handle: async () => json(200, await retention.expired()),
    }),
  ];
}

function deletedBody({ fileBytes, returnedBytes, ...counts }: PurgedCounts): z.input<typeof deletedSchema> {
  return { ...counts, file_bytes: fileBytes, returned_bytes: returnedBytes };
}
