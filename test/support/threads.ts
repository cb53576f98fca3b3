// Before each test file: a thread of the product runs from its bundle (build-threads.ts), not from its TypeScript.
import { existsSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import threads, { Worker, type WorkerOptions } from "node:worker_threads";

const folder = join(import.meta.dirname, "../../node_modules/.svc-threads");

class BundledWorker extends Worker {
  constructor(file: string | URL, options?: WorkerOptions) {
    const name = basename(String(file));
    const bundle = join(folder, name.replace(/\.ts$/, ".js"));
    super(name.endsWith("-thread.ts") && existsSync(bundle) ? pathToFileURL(bundle) : file, options);
  }
}

threads.Worker = BundledWorker;
syncBuiltinESMExports();
