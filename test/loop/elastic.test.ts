import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import { Agent, Budget, Policy, Proposal } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"

/** One nano-USD a token. */
const price = { inputPicoUsd: 1000, cachedInputPicoUsd: 1000, cacheWriteInputPicoUsd: 1000, outputPicoUsd: 1000 }

/** Three steps of which none is kept back. */
const reserves = { output: {} }

/** A worker that costs 23 and holds 40, in one call of a second. */
const worker = (name: string, options: { readonly elastic: boolean; readonly least: number }) => {
  const usage = { input: 13, output: 10 }
  const { model } = ScriptedModel.make([{ text: name, usage, millis: 1000 }], { price })
  const policy = Policy.fromModel(model, { maxOutputTokens: 27, minOutputTokens: options.least - 13 })
  return Agent.asTool(Agent.make(name, { policy, reserves, settings: { elastic: options.elastic } }))
}

/** A lead that starts both at once with `cap` to spend; answers with how each ended. */
const lead = (cap: number, options: { readonly elastic: boolean; readonly least: number }) =>
  Effect.gen(function* () {
    const agent = Agent.make("lead", {
      children: [worker("a", options), worker("b", options)],
      reserves,
      policy: Policy.make(({ turns }) =>
        turns.length === 0
          ? Proposal.callAll(["a", "b"].map((tool) => ({ tool, params: { task: "go" } })))
          : Proposal.finish("done"),
      ),
    })
    const budget = { steps: 8, money: Budget.formatMoney(cap), wallClock: "1 minute" } as const
    const outcome = yield* Effect.scoped(
      Effect.gen(function* () {
        const handle = yield* Agent.spawn(agent, "go", { budget })
        yield* TestClock.adjust("30 seconds")
        return yield* handle.await
      }),
    )
    const { accounts, ends } = outcome.report
    assert.deepStrictEqual(Budget.imbalances(accounts), [])
    return {
      reasons: ends.filter((end) => end.name !== "lead").map((end) => end.reason),
      spent: accounts.reduce((sum, row) => sum + row.own.money, 0),
    }
  })

describe("children that need more than their slice", () => {
  it.effect("wait for what the others return, one after the other", () =>
    Effect.gen(function* () {
      const { reasons, spent } = yield* lead(63, { elastic: true, least: 40 })
      assert.deepStrictEqual(reasons, ["completed", "completed"])
      assert.strictEqual(spent, 46)
    }),
  )

  it.effect("stop as soon as the others can no longer return enough", () =>
    Effect.gen(function* () {
      const { reasons, spent } = yield* lead(62, { elastic: true, least: 40 })
      assert.deepStrictEqual(reasons, ["completed", "budget:money"])
      assert.strictEqual(spent, 23)
    }),
  )

  it.effect("shrink first where they can", () =>
    Effect.gen(function* () {
      const { reasons, spent } = yield* lead(60, { elastic: true, least: 30 })
      assert.deepStrictEqual(reasons, ["completed", "completed"])
      assert.strictEqual(spent, 46)
    }),
  )

  it.effect("stop at once where waiting was not asked for", () =>
    Effect.gen(function* () {
      const { reasons, spent } = yield* lead(63, { elastic: false, least: 40 })
      assert.deepStrictEqual(reasons, ["budget:money", "budget:money"])
      assert.strictEqual(spent, 0)
    }),
  )
})
