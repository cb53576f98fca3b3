import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createLog } from "../src/log.ts";

test("what others wrote is escaped in the log: no control and no bidi character stands in a line, and its JSON is the same", async () => {
  const directory = mkdtempSync(join(tmpdir(), "svc-log-"));
  const fd = openSync(join(directory, "log"), "w");
  try {
    const log = createLog({ level: "info", fd });
    const hostile = "\u001b[2J\u009b31m\u0085\u007f\u202efdp.exe\u2028{}\u2066";
    log.component("relay").info({ [hostile]: hostile, err: new Error(hostile) }, `a reply ${hostile} 漢字`);
    log.flush();
    // The file stays open: a write of the log's own timer may be under way.
    let text = "";
    while (!text.endsWith("\n")) {
      await new Promise((resolve) => setImmediate(resolve));
      text = readFileSync(join(directory, "log"), "utf8");
    }
    expect(text).toMatch(/^[\x20-\x7e漢字]+\n$/);
    expect(JSON.parse(text)).toMatchObject({
      level: "info",
      component: "relay",
      [hostile]: hostile,
      msg: `a reply ${hostile} 漢字`,
    });
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("a log that cannot be written ends nothing: its lines are still kept, and a flush comes back", async () => {
  const fd = openSync("/dev/full", "w");
  const log = createLog({ level: "info", fd });
  for (let i = 0; i < 3; i++) {
    log.info({ text: "x".repeat(5000) }, `line ${i}`);
    for (let turn = 0; turn < 100; turn++) await stat("/"); // what was written has failed by now
    log.flush();
  }
  expect(log.lines.last().at(-1)).toContain("line 2");
  closeSync(fd);
});
