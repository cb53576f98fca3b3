// /v1/database/check, on the operator's socket only: begins a check of the whole store, and says what the last one found.
import { z } from "zod";
import type { EndedCheck } from "../../backup/check.ts";
import { isoTime } from "../../clock.ts";
import { isSound } from "../../model/store-check.ts";
import { timestamp } from "../../value-schemas.ts";
import type { RouteDeps } from "../deps.ts";
import { json, keepReply, operatorRoute, route, type Route } from "../route.ts";

const count = z.int().min(0);

const foundSchema = z
  .strictObject({
    sound: z.boolean().describe("Nothing is damaged and no content is missing."),
    faults: z.array(z.string()).describe("What the engine says of damaged tables and indexes, 100 at most."),
    dangling_rows: count.describe("Rows that name another one that is not there."),
    files: z
      .strictObject({
        named: count.describe("Files of content that messages name."),
        missing: count,
        cut_short: count.describe("Not as long as their message."),
        unnamed: count.describe("Files that no message names; the next start removes them."),
      })
      .describe("Files of content."),
    database_bytes: count,
    log_bytes: count.describe("Of the write-ahead log."),
  })
  .meta({ id: "DatabaseCheck" });

const stateSchema = z
  .strictObject({
    running: z.strictObject({ started_at: timestamp, progress: z.number().min(0).max(1) }).nullable(),
    last: z
      .strictObject({
        started_at: timestamp,
        ended_at: timestamp,
        found: foundSchema.nullable().describe("null: it was not completed."),
        error: z.string().nullable(),
      })
      .nullable()
      .describe("The last one since the start of the program."),
  })
  .meta({ id: "DatabaseChecks" });

const common = {
  ...operatorRoute,
  path: "/v1/database/check",
} as const;

export function databaseRoutes({ storeChecks }: RouteDeps): Route[] {
  const state = (): z.input<typeof stateSchema> => {
    const [running, last] = [storeChecks.running(), storeChecks.last()];
    return {
      running: running && { started_at: isoTime(running.startedAt), progress: running.progress },
      last: last && endedBody(last),
    };
  };
  return [
    route({
      ...common,
      method: "GET",
      summary: "Get the running check of the database, and the last one",
      lastModifiedFrom: "always",
      answers: { 200: stateSchema },
      body: null,
      handle: () => Promise.resolve(json(200, state())),
    }),
    route({
      ...common,
      method: "POST",
      summary: "Begin a check of the database and the files of content",
      answers: { 202: stateSchema },
      refuses: ["conflict"],
      act: "database.check",
      body: z.strictObject({}),
      bodyOptional: true,
      async handle({ idempotent }) {
        storeChecks.begin();
        return keepReply(idempotent, json(202, state()));
      },
    }),
  ];
}

function endedBody({ startedAt, endedAt, check, error }: EndedCheck) {
  const found = check && {
    sound: isSound(check),
    faults: check.faults,
    dangling_rows: check.danglingRows,
    files: {
      named: check.files.named,
      missing: check.files.missing,
      cut_short: check.files.cutShort,
      unnamed: check.files.unnamed,
    },
    database_bytes: check.databaseBytes,
    log_bytes: check.logBytes,
  };
  return { started_at: isoTime(startedAt), ended_at: isoTime(endedAt), found, error };
}
