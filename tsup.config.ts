// Bundles the product into dist/: one small entry for the CLI, chunks that are
// loaded when they are needed, the threads as files of their own, and the script of /docs beside them.
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { defineConfig } from "tsup";

const version = JSON.parse(readFileSync("package.json", "utf8")).version as string;
export const banner = [
  "#!/usr/bin/env node",
  "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
  "const __filename = import.meta.filename, __dirname = import.meta.dirname;",
].join("\n");

/** The one dependency that is not bundled. */
export const noExternal = [/^(?!better-sqlite3$)/];

/**
 * What `charset` leaves: patterns and comments. One character beyond Latin 1 doubles what the engine keeps of the text of
 * a file.
 */
function escapeTheRest(file: string): void {
  const text = readFileSync(file, "utf8");
  const escaped = text.replace(
    /[^\0-\x7f]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  if (escaped !== text) writeFileSync(file, escaped);
}

export default defineConfig({
  entry: {
    svc: "bin/svc.ts",
    "writer-thread": "src/store/sqlite/writer-thread.ts",
    "reader-thread": "src/store/sqlite/reader-thread.ts",
    "backup-thread": "src/store/sqlite/backup-thread.ts",
    "signing-thread": "src/signing/signing-thread.ts",
    "parsing-thread": "src/parsing/parsing-thread.ts",
    "large-body-thread": "src/http/large-body-thread.ts",
  },
  format: ["esm"],
  target: "node24",
  platform: "node",
  splitting: true,
  clean: true,
  silent: true,
  banner: { js: banner },
  // Names stay, so that a stack says where it was; what the engine would keep of the text for nothing goes.
  esbuildOptions(options) {
    options.minifyWhitespace = true;
    options.minifySyntax = true;
    options.charset = "ascii";
    // ink's tool for its own development, behind an environment variable.
    options.alias = { "react-devtools-core": "./src/cli/views/no-devtools.ts" };
  },
  noExternal,
  onSuccess: async () => {
    for (const name of readdirSync("dist").filter((one) => one.endsWith(".js")))
      escapeTheRest(`dist/${name}`);
    copyFileSync("node_modules/redoc/bundles/redoc.standalone.js", "dist/redoc.js");
  },
  define: {
    __VERSION__: JSON.stringify(version),
    "process.env.NODE_ENV": '"production"',
    "process.env.DEV": '"false"',
  },
});
