// Bundles once a run what each test file would load again in hundreds of small files: the product's threads, as
// tsup.config.ts does for the product, and drizzle-orm, which was half of what importing the program took.
// A thread that loaded its TypeScript would also compile Node's own type stripper, which is WebAssembly, each time that a
// test opens a store, and V8 was seen to abort where several threads of a process do so (`Check failed:
// jit_page.has_value()`). threads.ts and the aliases of vitest.config.ts put the bundles in place.
import { globSync } from "node:fs";
import { basename, join } from "node:path";
import { build } from "tsup";
import type { TestProject } from "vitest/node";
import { banner, noExternal } from "../../tsup.config.ts";
import { bundledPackages, bundlesFolder, root } from "./bundles.ts";
import { removeFolder } from "./folders.ts";

async function bundle(): Promise<void> {
  const threads = globSync("src/**/*-thread.ts", { cwd: root });
  await build({
    config: false,
    entry: {
      ...Object.fromEntries(threads.map((file) => [basename(file, ".ts"), join(root, file)])),
      ...Object.fromEntries(
        bundledPackages.map(({ bundle: name, path }) => [name, join(root, "node_modules", path)]),
      ),
    },
    outDir: bundlesFolder,
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

export default async function setup(project: TestProject): Promise<() => void> {
  await bundle();
  project.onTestsRerun(bundle);
  return () => removeFolder(bundlesFolder);
}
