import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { bundleAliases } from "./test/support/bundles.ts";

/** With SVC_TEST_REPORT set, each run also leaves its counts there for .ci/run. */
const folder = process.env["SVC_TEST_REPORT"];
const reporters = folder
  ? [
      "default",
      ["json", { outputFile: `${folder}/${process.pid}.json` }] as [string, Record<string, unknown>],
    ]
  : ["default"];

/** Only a hang is to meet these: a slow machine with other work beside takes ten times as long as a quick one. */
const patience = { testTimeout: 120_000, hookTimeout: 120_000 };
const longPatience = { testTimeout: 300_000, hookTimeout: 300_000 };

/**
 * Where these tests' processes keep what V8 compiled: a sixth of the processor time that a start of the program takes, and
 * each file starts it.
 */
const env = { NODE_COMPILE_CACHE: join(import.meta.dirname, "node_modules/.svc-compiled") };

/** They wait for others more than they compute: three files at a time keep two processors busy. */
const waiting = { maxWorkers: 3, env, ...longPatience };

const define = { __VERSION__: JSON.stringify("0.0.0-test") };

export default defineConfig({
  define,
  test: {
    reporters,
    // All processors; by itself the runner leaves one free, which on two of them is half.
    maxWorkers: "100%",
    projects: [
      {
        define,
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: ["test/e2e/**", "test/peers/**"],
          ...patience,
          // Files share what they import, which is most of what a small one costs: no test replaces a module for good.
          isolate: false,
          globalSetup: ["test/support/build-bundles.ts"],
          setupFiles: ["test/support/threads.ts"],
          alias: bundleAliases,
        },
      },
      {
        define,
        test: { name: "e2e", include: ["test/e2e/**/*.test.ts"], ...waiting, sequence: { groupOrder: 1 } },
      },
      {
        define,
        test: {
          name: "peers",
          include: ["test/peers/**/*.test.ts"],
          ...waiting,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
