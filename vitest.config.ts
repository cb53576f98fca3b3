import { defineConfig } from "vitest/config";

const define = { __VERSION__: JSON.stringify("0.0.0-test") };

export default defineConfig({
  define,
  test: {
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
