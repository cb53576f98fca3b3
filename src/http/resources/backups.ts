// /v1/backups, on the operator's socket only: begins a backup, and says how far it is and which there are.
import { isAbsolute } from "node:path";
import { z } from "zod";
import type { Backup } from "../../backup/directory.ts";
import { isoTime } from "../../clock.ts";
import { backupContents } from "../../model/backup.ts";
import { timestamp } from "../../value-schemas.ts";
import type { RouteDeps } from "../deps.ts";
import { json, keepReply, operatorRoute, route, type Route } from "../route.ts";

const count = z.int().min(0);
const content = z
  .enum(backupContents)
  .describe("all: every message's content; unsent: only of messages that are still to be sent.");

const backupSchema = z
  .strictObject({
    path: z.string().describe("The directory."),
    created_at: timestamp.describe("It has all that was acknowledged before."),
    version: z.string().describe("Of the program that made it."),
    schema: count.describe("The version of the database's schema."),
    hostname: z.string(),
    scheduled: z.boolean().describe("Made by the daily job."),
    content,
    counts: z.strictObject({
      messages: count,
      unsent_recipients: count,
      files: count.describe("Files of content beside the database."),
      file_bytes: count,
      files_missing: count.describe("Files that a message names and that were not there, or not whole."),
    }),
  })
  .meta({ id: "Backup" });

const backupsSchema = z
  .strictObject({
    running: z
      .strictObject({
        to: z.string(),
        content,
        started_at: timestamp,
        progress: z.number().min(0).max(1),
      })
      .nullable(),
    last: z
      .strictObject({
        ended_at: timestamp,
        backup: backupSchema.nullable().describe("null: it failed."),
        error: z.string().nullable(),
      })
      .nullable()
      .describe("The last one since the start of the program."),
    data: z
      .array(backupSchema)
      .describe(
        "Those in backup.to, the newest first, 100 at most; while a backup runs, as they were when it began.",
      ),
  })
  .meta({ id: "Backups" });

const common = {
  ...operatorRoute,
  path: "/v1/backups",
} as const;

export function backupRoutes({ backups }: RouteDeps): Route[] {
  const body = async (): Promise<z.input<typeof backupsSchema>> => {
    const [running, last] = [backups.running(), backups.last()];
    return {
      running: running && {
        to: running.to,
        content: running.content,
        started_at: isoTime(running.startedAt),
        progress: running.progress,
      },
      last: last && {
        ended_at: isoTime(last.endedAt),
        backup: last.backup && backupBody(last.backup),
        error: last.error,
      },
      data: (await backups.list()).map(backupBody),
    };
  };
  return [
    route({
      ...common,
      method: "GET",
      summary: "Get the running backup, the last one, and a list of backups",
      lastModifiedFrom: "always",
      answers: { 200: backupsSchema },
      body: null,
      handle: async () => json(200, await body()),
    }),
    route({
      ...common,
      method: "POST",
      summary: "Begin a backup",
      answers: { 202: backupsSchema },
      refuses: ["conflict"],
      auditFields: ["to", "content"],
      body: z.strictObject({
        to: z
          .string()
          .max(4096)
          .refine((text) => isAbsolute(text) && !text.includes("\0"), "is not an absolute path")
          .optional()
          .describe("The folder in which it is made; backup.to if left out."),
        content: content.optional(),
      }),
      bodyOptional: true,
      async handle({ body: { to = null, content: wanted = "all" }, idempotent }) {
        backups.begin({ to, content: wanted });
        return keepReply(idempotent, json(202, await body()));
      },
    }),
  ];
}

function backupBody(backup: Backup): z.input<typeof backupSchema> {
  const { path, created_at, version, schema, hostname, scheduled, content: has, counts } = backup;
  return { path, created_at, version, schema, hostname, scheduled, content: has, counts };
}
