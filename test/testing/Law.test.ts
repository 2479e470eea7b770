import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Agent, Policy, Price, Proposal } from "../../src/index.ts"
import { Law, ScriptedModel } from "../../src/testing/index.ts"
import * as Result from "effect/Result"
import { explorer, handled, toolkit } from "../support/scripts.ts"

const budget = { steps: 12, toolCalls: 12, money: "1 USD" }
const price = Result.getOrThrow(Price.perMillion({ input: "1", output: "10" }))

/** A model that is billed for more output than it was allowed, and stays in debt for it. */
const dear = () => {
  const usage = { input: 100, output: 90_000 }
  const turns = Array.from({ length: 12 }, () => ({ calls: [{ name: "read", params: { key: "a" } }], usage }))
  return Policy.fromModel(ScriptedModel.make(turns, { price }).model, { maxOutputTokens: 10 })
}

describe("laws over an agent", () => {
  it.effect("hold for one that keeps its budget, as often as it runs", () =>
    Effect.gen(function* () {
      const agent = Agent.make("a", { policy: explorer, toolkit })
      const options = { task: "go", budget }
      assert.isUndefined(yield* Law.neverExceeds(agent, options))
      assert.isUndefined(yield* Law.alwaysAnswers(agent, options))
      assert.isUndefined(yield* Law.survivesInterruption(agent, options))
    }).pipe(Effect.provide(handled())),
  )

  it.effect("are broken by bills above every cap, and name the run and the dimension", () =>
    Effect.gen(function* () {
      const agent = Agent.make("a", { policy: dear(), toolkit })
      const options = { task: "go", budget: { ...budget, money: "0.10 USD" } }
      const broken = yield* Effect.flip(Law.neverExceeds(agent, options))
      assert.strictEqual(broken._tag, "LawBroken")
      assert.match(broken.message, /^never exceeds its budget, run \d+: money: \d+ spent of \d+/)
    }).pipe(Effect.provide(handled())),
  )

  it.effect("are broken by an agent that ends with nothing", () =>
    Effect.gen(function* () {
      const silent = Agent.make("a", { policy: Policy.make(() => Proposal.invalid("nothing to say")) })
      const broken = yield* Effect.flip(Law.alwaysAnswers(silent, { task: "go", budget: { steps: 30 }, runs: 3 }))
      assert.match(broken.message, /ended without an answer: (budget:steps|invalid_decisions)/)
    }),
  )

  it.effect("say at once what is wrong with a budget that is none", () =>
    Effect.gen(function* () {
      const agent = Agent.make("a", { policy: explorer, toolkit })
      const error = yield* Effect.flip(Law.neverExceeds(agent, { task: "go", budget: { steps: -1 } }))
      assert.strictEqual(error._tag, "BudgetError")
    }).pipe(Effect.provide(handled())),
  )
})
