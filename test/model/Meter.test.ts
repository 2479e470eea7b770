import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Agent, Policy, Price } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { all, run } from "../support/journalled.ts"
import { bare } from "../support/scripts.ts"

const price = Result.getOrThrow(Price.perMillion({ input: "1.25", output: "10", cachedInput: "0.125" }))

/** What one turn is booked at, under a hold of 100 input and 50 output tokens. */
const booked = (turn: ScriptedModel.Turn) =>
  Effect.gen(function* () {
    const model = ScriptedModel.make([{ countedInput: 100, ...turn }], { price })
    const agent = Agent.make("a", {
      policy: Policy.fromModel(model.model, { maxOutputTokens: 50 }),
      ...bare,
      settings: { modelRetries: 0 },
    })
    const { outcome, events } = yield* run(agent, { money: "1 USD", steps: 1 })
    const { steps, ticks, inputTokens, outputTokens, money } = outcome.report.accounts[0]!.own
    return [all(events, "Assumed").length, steps, ticks, inputTokens, outputTokens, money]
  })

const hold = 100 * 1250 + 50 * 10_000
const assumed = [1, 1, 1, 100, 50, hold]

describe("how an attempt is booked", () => {
  it.effect("at what was used, where the usage can be believed", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* booked({ text: "x", usage: { input: 90, output: 10, cached: 40 } }), [
        0,
        1,
        1,
        90,
        10,
        50 * 1250 + 40 * 125 + 10 * 10_000,
      ])
    }),
  )

  it.effect("at its hold, where the usage is missing, all zero, or contradicts itself", () =>
    Effect.gen(function* () {
      for (const usage of [
        null,
        { input: 0, output: 0 },
        { input: 10, output: 5, cached: 11 },
        { input: -1, output: 5 },
        { input: 1.5, output: 5 },
        { input: Number.NaN, output: 5 },
      ]) {
        assert.deepStrictEqual(yield* booked({ text: "x", usage }), assumed, JSON.stringify(usage))
      }
    }),
  )

  it.effect("after a fault: by what can have been billed", () =>
    Effect.gen(function* () {
      for (const status of [400, 401, 403, 404, 413, 422, 429, 500, 503]) {
        assert.deepStrictEqual(yield* booked({ fault: { status } }), [0, 1, 1, 0, 0, 0], `${status}`)
      }
      for (const fault of ["timeout", "cut", { status: 408 }, { status: 409 }, { status: 302 }] as const) {
        assert.deepStrictEqual(yield* booked({ fault }), assumed, JSON.stringify(fault))
      }
      assert.deepStrictEqual(yield* booked({ fault: "unreachable" }), [0, 0, 1, 0, 0, 0])
    }),
  )
})

describe("a limit on the output", () => {
  const limits = (outputTokens: number, options: Policy.ModelOptions) =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([{ text: "x", usage: { input: 10, output: 1 } }])
      yield* run(Agent.make("a", { policy: Policy.fromModel(model.model, options), ...bare }), { outputTokens })
      return model.requests.map((one) => one.maxOutputTokens)
    })

  it.effect("shrinks to what is left, but not below the least that is of use", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* limits(500, { maxOutputTokens: 400, minOutputTokens: 100 }), [400])
      assert.deepStrictEqual(yield* limits(399, { maxOutputTokens: 400, minOutputTokens: 100 }), [399])
      assert.deepStrictEqual(yield* limits(100, { maxOutputTokens: 400, minOutputTokens: 100 }), [100])
      assert.deepStrictEqual(yield* limits(99, { maxOutputTokens: 400, minOutputTokens: 100 }), [])
      assert.deepStrictEqual(yield* limits(399, { maxOutputTokens: 400, minOutputTokens: 400 }), [])
    }),
  )
})

describe("a price", () => {
  const natural = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum }))

  it.effect.prop(
    "the worst case of a call is never below what it costs",
    [natural(10_000_000), natural(1e9), natural(1e9), natural(1e9), natural(100), natural(100)],
    ([rate, input, output, other, cachedPart, writtenPart]) =>
      Effect.sync(() => {
        const prices = {
          inputPicoUsd: rate,
          cachedInputPicoUsd: other % (rate + 1),
          cacheWriteInputPicoUsd: other % (2 * rate + 1),
          outputPicoUsd: rate * 4,
        }
        const usage = {
          inputTokens: input,
          cachedInputTokens: Math.floor((input * Math.min(cachedPart, 50)) / 100),
          cacheWriteInputTokens: Math.floor((input * Math.min(writtenPart, 50)) / 100),
          outputTokens: output,
          reasoningTokens: 0,
        }
        assert.isAtLeast(
          Price.worstCase(prices, { inputTokens: input, outputTokens: output }),
          Price.costOf(prices, usage),
        )
      }),
    { arbitrary: { runs: 300, seed: 3 } },
  )

  it("rounds up once, and only at the end", () => {
    const rates = { inputPicoUsd: 1, cachedInputPicoUsd: 1, cacheWriteInputPicoUsd: 1, outputPicoUsd: 1 }
    assert.strictEqual(Price.worstCase(rates, { inputTokens: 600, outputTokens: 400 }), 1)
    assert.strictEqual(Price.worstCase(rates, { inputTokens: 600, outputTokens: 401 }), 2)
  })

  it("is read digit by digit, or refused with the name of the rate", () => {
    assert.strictEqual(Result.getOrThrow(Price.perMillion({ input: "0.1", output: "0.30" })).outputPicoUsd, 300_000)
    assert.strictEqual(Result.getOrThrow(Price.perMillion({ input: "0.0000001", output: "0" })).inputPicoUsd, 1)
    for (const input of ["", "-1", "1e3", "1,5", "free"]) {
      const read = Price.perMillion({ input, output: "1" })
      assert.isTrue(Result.isFailure(read) && read.failure.includes("input"))
    }
  })
})
