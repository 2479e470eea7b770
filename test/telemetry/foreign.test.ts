import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Response from "effect/ai/Response"
import { Agent, Model, Price } from "../../src/index.ts"
import { all } from "../support/journalled.ts"
import type { Event } from "../../src/index.ts"
import * as Journal from "../../src/journal/Journal.ts"
import { traced } from "./InMemory.ts"

const price = Result.getOrThrow(Price.perMillion({ input: "1", output: "10" }))

/** A provider of somebody else's, which opens a span of its own, puts usage on it, and tells none. */
const theirs = LanguageModel.make({
  generateText: () =>
    Effect.succeed<Array<Response.PartEncoded>>([{ type: "text", text: "Hi." }]).pipe(
      Effect.withSpan("their request", { attributes: { "gen_ai.usage.input_tokens": 7 } }),
    ),
  streamText: () => Stream.empty,
})

const model = Model.layer({ model: "theirs", price }).pipe(
  Layer.provide(Layer.effect(LanguageModel.LanguageModel)(theirs)),
)

describe("a LanguageModel of somebody else's", () => {
  it.effect("that opens spans of its own and tells no usage is booked at its hold, under our span alone", () =>
    Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      const run = Agent.run(Agent.make("a"), "Greet.", {
        budget: { steps: 3, outputTokens: "9k", money: "1 USD" },
      }).pipe(Effect.provide(model), Effect.provideService(Journal.Journal, Journal.toArray(events)))
      const { rows, value: outcome } = yield* traced(run)
      assert.strictEqual(outcome._tag, "Completed")
      const names = rows.map(({ name }) => name).filter((name) => !name.startsWith("bursar."))
      assert.deepStrictEqual(names.toSorted(), ["chat theirs", "invoke_agent a"])
      const chat = rows.find(({ name }) => name === "chat theirs")!
      assert.isUndefined(chat.attributes["gen_ai.usage.input_tokens"])
      assert.strictEqual(chat.attributes["bursar.usage.certainty"], "assumed")
      const [held, assumed] = [all(events, "Held")[0]!, all(events, "Assumed")[0]!]
      assert.deepStrictEqual(assumed.held, held.amounts)
      const { own } = outcome.report.accounts[0]!
      assert.deepStrictEqual([own.outputTokens, own.money], [held.amounts.outputTokens, held.amounts.money])
    }),
  )
})
