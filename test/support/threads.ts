// Before each test file: a thread of the product runs from its bundle (build-bundles.ts), not from its TypeScript.
import { existsSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import threads, { Worker, type WorkerOptions } from "node:worker_threads";
import { bundlesFolder } from "./bundles.ts";

class BundledWorker extends Worker {
  constructor(file: string | URL, options?: WorkerOptions) {
    const name = basename(String(file));
    const bundle = join(bundlesFolder, name.replace(/\.ts$/, ".js"));
    super(name.endsWith("-thread.ts") && existsSync(bundle) ? pathToFileURL(bundle) : file, options);
  }
}

if (threads.Worker.name !== BundledWorker.name) {
  threads.Worker = BundledWorker;
  syncBuiltinESMExports();
}
