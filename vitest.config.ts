import { defineConfig } from "vitest/config";

/** With SVC_TEST_REPORT set, each run also leaves its counts there for .ci/run. */
const folder = process.env["SVC_TEST_REPORT"];
const reporters = folder
  ? [
      "default",
      ["json", { outputFile: `${folder}/${process.pid}.json` }] as [string, Record<string, unknown>],
    ]
  : ["default"];

const define = { __VERSION__: JSON.stringify("0.0.0-test") };

export default defineConfig({
  define,
  test: {
    reporters,
    projects: [
      {
        define,
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: ["test/e2e/**", "test/peers/**"],
          testTimeout: 10_000,
        },
      },
      {
        define,
        test: { name: "e2e", include: ["test/e2e/**/*.test.ts"], testTimeout: 60_000, hookTimeout: 60_000 },
      },
      {
        define,
        test: {
          name: "peers",
          include: ["test/peers/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
