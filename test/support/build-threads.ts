// Bundles the product's threads once a run, as tsup.config.ts does for the product. A thread that loaded its TypeScript
// instead would compile Node's own type stripper, which is WebAssembly, each time that a test opens a store: half of the
// processor time of the suite, and V8 was seen to abort where several threads of a process do so
// (`Check failed: jit_page.has_value()`). threads.ts puts the bundles in place of the sources.
import { globSync } from "node:fs";
import { basename, join } from "node:path";
import { build } from "tsup";
import type { TestProject } from "vitest/node";
import { banner, noExternal } from "../../tsup.config.ts";

const root = join(import.meta.dirname, "../..");
/** Below node_modules, where better-sqlite3 is found from. */
export const threadsFolder = join(root, "node_modules/.svc-threads");

async function bundle(): Promise<void> {
  const files = globSync("src/**/*-thread.ts", { cwd: root });
  await build({
    config: false,
    entry: Object.fromEntries(files.map((file) => [basename(file, ".ts"), join(root, file)])),
    outDir: threadsFolder,
    format: ["esm"],
    target: "node24",
    platform: "node",
    splitting: true,
    clean: true,
    silent: true,
    banner: { js: banner },
    noExternal,
    define: { __VERSION__: JSON.stringify("0.0.0-test") },
  });
}

export default async function setup(project: TestProject): Promise<void> {
  await bundle();
  project.onTestsRerun(bundle);
}
