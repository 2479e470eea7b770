import { assert, describe, it } from "@effect/vitest"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { folder } from "../node/support.ts"
import { kill } from "./Killing.ts"
import type { Point } from "./Killing.ts"

const points: ReadonlyArray<Point> = [
  { name: "before the patch", run: "before", first: { at: 30 } },
  { name: "when the patch is not on record", run: "in", first: { event: "CallEnded", tool: "patch_file", nth: 1 } },
  {
    name: "in the tests after the patch, twice",
    run: "after",
    first: { event: "CallStarted", tool: "run_command", nth: 3, afterMillis: 20 },
    second: { event: "CallStarted", tool: "run_command", nth: 1, afterMillis: 20 },
  },
]

describe("a repair whose process is killed", () => {
  for (const point of points) {
    it.live(`${point.name}: comes to its answer with no effect twice and its books right`, () =>
      Effect.gen(function* () {
        const root = yield* folder
        const found = yield* kill({ folder: root, cache: join(root, "cache") }, point)
        assert.deepStrictEqual(found.defects, [])
        assert.strictEqual(found.outcome, "completed")
        assert.strictEqual(found.patches[1], 1)
      }).pipe(Effect.scoped),
    )
  }
})
