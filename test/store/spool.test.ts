// The spool's files as a power failure would find them: what is acknowledged is named by folders that are on disk.
import { mkdirSync } from "node:fs";
import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSpool, inlineLimit } from "../../src/store/sqlite/spool.ts";
import { newDirectory } from "./fixtures.ts";
import { removeFolder } from "../support/folders.ts";

let dataDir: string;
/** Every path whose sync has ended. */
let synced: string[] = [];
const { open } = fs;

function replaceOpen(by: typeof open): void {
  fs.open = by;
  syncBuiltinESMExports();
}

beforeEach(() => {
  dataDir = newDirectory();
  synced = [];
  replaceOpen(async (path, flags, mode) => {
    const file = await open(path, flags, mode);
    const sync = file.sync.bind(file);
    file.sync = async () => {
      await sync();
      synced.push(String(path));
    };
    return file;
  });
});
afterEach(() => {
  replaceOpen(open);
  removeFolder(dataDir);
});

async function* large(): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(inlineLimit + 1);
}

test("a spool file is resolved only when it, its folder and every folder above have been synced", async () => {
  const spool = createSpool(join(dataDir, "spool"), () => undefined);
  const content = await spool.put(large());
  if (content.kind !== "spool") throw new Error("expected a file");
  const folder = join(dataDir, "spool", content.name.slice(0, 2));
  expect(synced).toEqual([join(folder, content.name), folder, join(dataDir, "spool"), dataDir]);
});

test("a folder that another process made and perhaps never synced is synced too", async () => {
  for (let i = 0; i < 256; i++)
    mkdirSync(join(dataDir, "spool", i.toString(16).padStart(2, "0")), { recursive: true });
  await createSpool(join(dataDir, "spool"), () => undefined).put(large());
  expect(synced).toContain(join(dataDir, "spool"));
  expect(synced).toContain(dataDir);
});

test("folders whose names are on disk are not synced for each file", async () => {
  const spool = createSpool(join(dataDir, "spool"), () => undefined);
  for (let i = 0; i < 600; i++) await spool.put(large());
  expect(synced.filter((path) => path === dataDir).length).toBeLessThanOrEqual(256);
});
