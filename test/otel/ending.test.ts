import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as OtlpReceiver from "../support/OtlpReceiver.ts"

interface Ended {
  readonly code: number | null
  readonly signal: string | null
}

/** Starts the program, sends it a signal once it is ready, and waits for its end. */
const ended = (url: string, how: string, signal?: NodeJS.Signals): Effect.Effect<Ended> =>
  Effect.callback((resume) => {
    const child = spawn(process.execPath, [`${import.meta.dirname}/ending.program.ts`, how], {
      env: { PATH: process.env["PATH"], OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_BSP_SCHEDULE_DELAY: "600000" },
      stdio: ["ignore", "pipe", "inherit"],
    })
    child.stdout.once("data", () => void (signal !== undefined && child.kill(signal)))
    child.once("exit", (code, signal) => resume(Effect.succeed({ code, signal })))
  })

describe("a process that does not close its layer sends what is left", () => {
  const cases: ReadonlyArray<readonly [string, string, NodeJS.Signals | undefined, Ended]> = [
    ["when it has nothing more to do", "idle", undefined, { code: 0, signal: null }],
    ["when it is told to end, and ends by that", "busy", "SIGTERM", { code: null, signal: "SIGTERM" }],
    ["when it is interrupted, and ends by that", "busy", "SIGINT", { code: null, signal: "SIGINT" }],
    ["when it ends by itself on a signal, with its own code", "own", "SIGTERM", { code: 7, signal: null }],
  ]
  for (const [name, how, signal, expected] of cases) {
    it.live(
      name,
      () =>
        Effect.scoped(
          Effect.gen(function* () {
            const { requests, spans, url } = yield* OtlpReceiver.make()
            assert.deepStrictEqual(yield* ended(url, how, signal), expected)
            assert.deepStrictEqual(
              spans.map(({ name }) => name),
              ["one"],
            )
            assert.include(
              requests.map(({ path }) => path),
              "/v1/logs",
            )
          }),
        ),
      30_000,
    )
  }

  it.live(
    "and does not wait for an exporter that never answers",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { url } = yield* OtlpReceiver.make({ silent: true })
          assert.deepStrictEqual(yield* ended(url, "busy", "SIGTERM"), { code: null, signal: "SIGTERM" })
        }),
      ),
    30_000,
  )
})
