import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { Agent, Contract, type Event, Journal, Metrics, Policy, Price, Proposal } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import * as Result from "effect/Result"

const key = Schema.Struct({ key: Schema.String })
const Read = Contract.annotate(Tool.make("read", { parameters: key, success: Schema.String, failure: Schema.String }), {
  effect: "read",
})
const Pay = Contract.annotate(Tool.make("pay", { parameters: key, success: Schema.String }), {
  effect: "irreversible",
  approval: true,
})
const toolkit = Toolkit.make(Read, Pay)
/** The first read of a key fails, the next one does not. */
const handlers = () => {
  const seen = new Set<string>()
  return toolkit.toLayer({
    read: ({ key }) => (seen.has(key) ? Effect.succeed(key) : (seen.add(key), Effect.fail("not yet"))),
    pay: ({ key }) => Effect.succeed(key),
  })
}
const read = (key: string) => Proposal.call("read", { key })

const price = Result.getOrThrow(Price.perMillion({ input: "1", output: "10" }))

/** The journal of a run that proposes these, one after the other. */
const journalOf = (
  steps: ReadonlyArray<Proposal.Proposal>,
  budget: Agent.RunOptions["budget"] = { steps: 9, toolCalls: 9 },
) =>
  Effect.gen(function* () {
    const events: Array<Event.Recorded> = []
    const policy = Policy.make((view) => steps[Math.min(view.step, steps.length) - 1]!)
    const agent = Agent.make("a", { policy, toolkit, settings: { noProgress: { repeat: 3, period: 1 } } })
    yield* Agent.run(agent, "go", { budget }).pipe(
      Effect.provide(handlers()),
      Effect.provideService(Journal.Journal, Journal.toArray(events)),
    )
    return events
  })

const done = Proposal.finish("done")

describe("metrics of runs", () => {
  it.effect("tell what became of runs, and what they took", () =>
    Effect.gen(function* () {
      const metrics = Metrics.measure([
        yield* journalOf([done]),
        // Fails once and then reads, twice; the second failure is the last word on its key.
        yield* journalOf([read("a"), read("a"), read("b"), done]),
        yield* journalOf([Proposal.invalid("hm")], { steps: 4 }),
      ])
      assert.deepStrictEqual([metrics.runs, metrics.ended, metrics.successes.runs, metrics.failures.runs], [3, 3, 2, 1])
      assert.strictEqual(metrics.successRate, 2 / 3)
      assert.strictEqual(metrics.successes.meanSteps, (1 + 4) / 2)
      assert.deepStrictEqual([metrics.successes.stepsP50, metrics.successes.stepsP95], [1, 4])
      assert.strictEqual(metrics.toolErrorRate, 2 / 3)
      assert.strictEqual(metrics.recoveryRate, 1 / 2)
      assert.deepStrictEqual(
        metrics.byReason.map(({ reason, runs }) => [reason, runs]),
        [
          ["completed", 2],
          [metrics.byReason[1]!.reason, 1],
        ],
      )
      assert.notStrictEqual(metrics.byReason[1]!.reason, "completed")
    }),
  )

  it.effect("count what is stuck, what people were asked, and what a run cost", () =>
    Effect.gen(function* () {
      const stuck = yield* journalOf([Proposal.call("read", { key: "x" })], { steps: 9, toolCalls: 9 })
      const asked = yield* journalOf([Proposal.call("pay", { key: "x" })])
      const events: Array<Event.Recorded> = []
      const { model } = ScriptedModel.make([{ text: "hi", usage: { input: 1_000, output: 100 } }], { price })
      yield* Agent.run(Agent.make("b", { policy: Policy.fromModel(model) }), "go", {
        budget: { steps: 3, money: "1 USD" },
      }).pipe(Effect.provideService(Journal.Journal, Journal.toArray(events)))
      const metrics = Metrics.measure([stuck, asked, events])
      assert.strictEqual(metrics.runs, 3)
      assert.strictEqual(metrics.ended, 2)
      assert.strictEqual(metrics.noProgress, 1 / 2)
      assert.strictEqual(metrics.repeatedActions, 0)
      assert.strictEqual(metrics.humanTakeOvers, 1 / 3)
      assert.strictEqual(metrics.costNanoUsd, 2_000_000)
      assert.strictEqual(metrics.costNanoUsdPerRun, 2_000_000 / 3)
      assert.strictEqual(metrics.costNanoUsdPerSuccess, 2_000_000)
    }),
  )

  it("leave out what nothing was counted for", () => {
    const metrics = Metrics.measure([])
    assert.deepStrictEqual([metrics.runs, metrics.costNanoUsd], [0, 0])
    for (const name of ["successRate", "toolErrorRate", "recoveryRate", "meanSteps", "latencyMillisP95"] as const) {
      assert.isUndefined(metrics[name])
    }
  })
})
