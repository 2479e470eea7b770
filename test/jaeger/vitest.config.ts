import { defineConfig, mergeConfig } from "vitest/config"
import shared from "../vitest.config.ts"

/** The suites that need a Jaeger and a collector: one file after the other, since each starts its own. */
export default mergeConfig(
  { ...shared, test: { ...shared.test, include: [] } },
  defineConfig({
    test: {
      include: ["test/jaeger/**/*.suite.ts"],
      fileParallelism: false,
      testTimeout: 180_000,
      hookTimeout: 180_000,
    },
  }),
)
