// Where the bundles of build-bundles.ts lie, and which packages are among them.
import { join } from "node:path";

export const root = join(import.meta.dirname, "../..");
/**
 * Below node_modules, where better-sqlite3 is found from. Each run has its own, so that two at once do not take the other's
 * away; the variable tells it to the run's processes.
 */
const run = (process.env["SVC_TEST_RUN"] ??= String(process.pid));
export const bundlesFolder = join(root, "node_modules/.svc-bundles", run);

export const bundledPackages = ["drizzle-orm", "drizzle-orm/better-sqlite3", "drizzle-orm/sqlite-core"].map(
  (name) => ({ name, path: `${name}/index.js`, bundle: name.replace("/", "--") }),
);

/** For `test.alias`: each package by its whole name. */
export const bundleAliases = bundledPackages.map(({ name, bundle }) => ({
  find: new RegExp(`^${name}$`),
  replacement: join(bundlesFolder, `${bundle}.js`),
}));
