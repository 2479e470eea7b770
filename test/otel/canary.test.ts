/** What leaves the process in every stop, as bytes: no word of a user, a model or a tool. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { all } from "../support/journalled.ts"
import { canary, play, type Stop, stops } from "../telemetry/everyStop.ts"
import { exported } from "./exporting.ts"

/** A run whose every text holds the word, and a line of the log that does not. */
const leaving = (stop: Stop, variables: Readonly<Record<string, string>> = {}) =>
  exported(
    Effect.andThen(Effect.withSpan(Effect.logInfo("a line of the program"), "the program"), play(stop)),
    // JSON, so that the bytes can be searched as they are.
    { protocol: "http/json", variables },
  )

describe("what is exported of a run", () => {
  for (const stop of stops) {
    it.effect(`that stops for ${stop.reason} holds no content: not in spans, metrics or logs`, () =>
      Effect.gen(function* () {
        const { exit, receiver } = yield* leaving(stop)
        const events = Exit.isSuccess(exit) ? exit.value : assert.fail("the run failed")
        assert.include(JSON.stringify(events), canary)
        assert.strictEqual(all(events, "RunEnded")[0]?.reason, stop.reason)
        assert.sameMembers(
          [...new Set(receiver.requests.map(({ path }) => path))],
          ["/v1/traces", "/v1/metrics", "/v1/logs"],
        )
        assert.include(receiver.bytes(), stop.reason)
        assert.notInclude(receiver.bytes(), canary)
      }),
    )
  }

  const completed = stops.find(({ reason }) => reason === "completed")!
  const name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

  it.effect("holds it where the environment asks for it", () =>
    Effect.gen(function* () {
      const { named } = yield* leaving(completed, { [name]: "true" })
      assert.include(String(named("invoke_agent lead").attributes["gen_ai.input.messages"]), canary)
    }),
  )

  it.effect("does not hold it where the environment says no, whatever the program says", () =>
    Effect.gen(function* () {
      const { receiver } = yield* exported(play(completed), { content: true, variables: { [name]: "false" } })
      assert.notInclude(receiver.bytes(), canary)
    }),
  )

  it.effect("holds what the redactor of the program leaves", () =>
    Effect.gen(function* () {
      const { named, receiver } = yield* exported(play(completed), {
        content: true,
        redact: ({ text }) => text.replaceAll(canary, "***"),
      })
      assert.include(String(named("invoke_agent lead").attributes["gen_ai.input.messages"]), "***")
      assert.notInclude(receiver.bytes(), canary)
    }),
  )
})
