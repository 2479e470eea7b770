import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { spawn } from "node:child_process"
import * as OtlpReceiver from "../support/OtlpReceiver.ts"
import { facts, links, marks, trees } from "../telemetry/laws.ts"

describe("a process that is killed", () => {
  it.live(
    "has told of every agent that was open, and of nothing else that was",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { spans, url } = yield* OtlpReceiver.make()
          const env = { PATH: process.env["PATH"], OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_BSP_SCHEDULE_DELAY: "50" }
          const child = spawn(process.execPath, [`${import.meta.dirname}/killed.program.ts`], { env, stdio: "inherit" })
          const open = 4
          yield* Effect.suspend(() => (spans.length < open ? Effect.fail("not yet") : Effect.void)).pipe(
            Effect.retry({ schedule: Schedule.spaced("20 millis") }),
            Effect.timeout("20 seconds"),
          )
          child.kill("SIGKILL")
          const rows = spans.map(({ parentSpanId, ...span }) => ({ ...span, parentId: parentSpanId }))
          assert.deepStrictEqual(
            rows.map(({ attributes, name }) => [name, attributes["bursar.node.id"]]),
            ["lead", "lead/sleeper-1", "lead/sleeper-2", "lead/sleeper-3"].map((node) => ["bursar.start", node]),
          )
          assert.deepStrictEqual(rows[0]?.attributes["bursar.budget.steps.limit"], 40)
          const complaints = [...trees(rows, { killed: true }), ...facts(rows), ...marks(rows, []), ...links(rows)]
          assert.deepStrictEqual(complaints, [])
        }),
      ),
    30_000,
  )
})
