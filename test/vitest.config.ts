import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

const root = fileURLToPath(new URL("..", import.meta.url))

export default defineConfig({
  root,
  resolve: {
    // The package doors, read from the sources: no build is needed to run the tests.
    alias: [
      { find: /^bursar$/, replacement: `${root}src/index.ts` },
      { find: /^bursar\/(\w+)$/, replacement: `${root}src/$1/index.ts` },
    ],
  },
  // Doc examples are written there, run and removed again.
  server: { watch: { ignored: ["**/test/.tmp/**"] } },
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["**/node_modules/**", "**/.tmp/**"],
    // What a passing test prints is noise; what a failing one prints is not.
    silent: "passed-only",
    // Some tests start whole processes, on machines that may be busy with others.
    testTimeout: 60_000,
  },
})
