// /v1/backups on the operator's socket: what begins one, what is shown meanwhile and afterwards, and what is refused.
import { afterEach, expect, test } from "vitest";
import type { Backup } from "../../src/backup/directory.ts";
import { Refusal } from "../../src/errors.ts";
import type { HttpDeps } from "../../src/http/deps.ts";
import { startHttp, type Harness } from "./harness.ts";

type Backups = HttpDeps["backups"];

let http: Harness | null = null;
afterEach(() => http?.stop());

const backup: Backup = {
  path: "/var/backups/svc/svc-20261127T090000Z",
  format: 1,
  version: "1.2.3",
  schema: 1,
  created_at: "2026-11-27T09:00:00.000Z",
  hostname: "mail.acme.example",
  scheduled: true,
  content: "all",
  counts: { messages: 2, unsent_recipients: 1, files: 0, file_bytes: 0, files_missing: 0 },
  files: [{ path: "svc.db", bytes: 3, sha256: "0".repeat(64) }],
};
const running = {
  to: "/mnt/x",
  content: "unsent" as const,
  startedAt: Date.parse(backup.created_at),
  progress: 0.5,
};

async function ask(method: string, backups: Partial<Backups>, body?: unknown) {
  http = await startHttp({ backups });
  return http.ask({ method, path: "/v1/backups", admin: true, ...(body === undefined ? {} : { body }) });
}

test("a backup is begun where the operator says, and its progress is shown", async () => {
  const begun: unknown[] = [];
  const { status, json } = await ask(
    "POST",
    {
      begin(request) {
        begun.push(request);
        return running;
      },
      running: () => running,
    },
    { to: "/mnt/x", content: "unsent" },
  );
  expect([status, begun]).toEqual([202, [{ to: "/mnt/x", content: "unsent" }]]);
  expect(json).toMatchObject({
    running: { to: "/mnt/x", content: "unsent", started_at: backup.created_at, progress: 0.5 },
    last: null,
    data: [],
  });
});

test("the last backup, why one failed, and those that there are", async () => {
  const ended = { endedAt: running.startedAt, backup: null, error: "the disk is full" };
  const { json } = await ask("GET", { last: () => ended, list: () => Promise.resolve([backup]) });
  const { format: _format, files: _files, ...shown } = backup;
  expect(json).toEqual({
    running: null,
    last: { ended_at: backup.created_at, backup: null, error: "the disk is full" },
    data: [shown],
  });
});

test("a second one is a conflict, and a relative path a fault of the body", async () => {
  const busy = await ask("POST", {
    begin() {
      throw new Refusal("conflict", "A backup is running.");
    },
  });
  expect([busy.status, busy.json["code"]]).toEqual([409, "conflict"]);
  await http?.stop();
  const wrong = await ask("POST", {}, { to: "backups" });
  expect([wrong.status, wrong.text]).toEqual([422, expect.stringContaining("is not an absolute path")]);
});
