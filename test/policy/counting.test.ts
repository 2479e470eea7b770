/**
 * Requests that are counted by the provider before they are held.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Agent, type Budget, type Model, Policy } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { all, run, stopped, whole } from "../support/journalled.ts"
import { bare, handled, toolkit } from "../support/scripts.ts"

const usage = { input: 60, output: 5 }
const reads = { calls: [{ name: "read", params: { key: "x" } }], usage, countedInput: 100 }
const says = { text: "hi", usage, countedInput: 100 }

const counted = (tokens: number): Model.Count => ({ tokens, bound: "counted" })

const play = (
  count: Model.Model["count"],
  given: {
    readonly turns?: ReadonlyArray<ScriptedModel.Turn>
    readonly budget?: Budget.Input
    readonly reserves?: Agent.Reserves
    readonly output?: Policy.ModelOptions
  } = {},
) =>
  Effect.gen(function* () {
    const { turns = [says], budget = {}, reserves = bare.reserves, output = { maxOutputTokens: 50 } } = given
    const script = ScriptedModel.make(turns)
    const policy = Policy.fromModel({ ...script.model, count }, output)
    const all = { steps: 9, ticks: 20, toolCalls: 5, ...budget }
    const ran = whole(yield* run(Agent.make("a", { policy, toolkit, reserves }), all))
    return { ...ran, requests: script.requests }
  }).pipe(Effect.provide(handled()))

const heldInput = (ran: Effect.Success<ReturnType<typeof play>>) =>
  all(ran.events, "Held").flatMap(({ amounts }) => amounts.inputTokens ?? [])

describe("a request that is counted", () => {
  it.effect("is held at its count, which costs time and nothing else", () =>
    Effect.gen(function* () {
      const ran = yield* play(() => Effect.as(Effect.sleep("3 seconds"), counted(60)))
      assert.deepStrictEqual(heldInput(ran), [60])
      const { ticks, steps } = ran.outcome.report.accounts[0]!.own
      assert.deepStrictEqual([ticks, steps], [1, 1])
      const heldAt = ran.events.find(({ event }) => event._tag === "Held")!.atMillis
      assert.strictEqual(heldAt - ran.events[0]!.atMillis, 3_000)
    }),
  )

  it.effect("asks for as much output as the count leaves, before it is refused", () =>
    Effect.gen(function* () {
      const output = { maxOutputTokens: 50, minOutputTokens: 20 }
      const price = { inputPicoUsd: 1_000, cachedInputPicoUsd: 1_000, cacheWriteInputPicoUsd: 1_000 }
      const script = ScriptedModel.make([says], { price: { ...price, outputPicoUsd: 1_000 } })
      const asked = (tokens: number) => {
        const model = { ...script.model, count: () => Effect.succeed(counted(tokens)) }
        const agent = Agent.make("a", { policy: Policy.fromModel(model, output), ...bare })
        return Effect.map(run(agent, { money: "0.0000001 USD" }), (ran) => whole(ran).outcome)
      }
      // 100 nano-USD: 60 for the input leave 40, 81 leave less than is of use.
      assert.strictEqual((yield* asked(60))._tag, "Completed")
      assert.strictEqual(script.requests[0]!.maxOutputTokens, 40)
      assert.strictEqual(stopped(yield* asked(81)).reason, "budget:money")
      assert.strictEqual(script.requests.length, 1)
    }),
  )

  it.effect("is held at the estimate where the counter breaks down, or counts what is no number of tokens", () =>
    Effect.gen(function* () {
      const throws = () => {
        throw new Error("broken")
      }
      for (const count of [
        throws,
        () => Effect.die(new Error("broken")),
        () => Effect.succeed(counted(-1)),
        () => Effect.succeed(counted(1.5)),
        () => Effect.succeed(counted(Number.NaN)),
      ]) {
        const ran = yield* play(count)
        assert.strictEqual(ran.outcome._tag, "Completed")
        assert.deepStrictEqual(heldInput(ran), [100])
      }
    }),
  )

  it.effect("is not sent once the time of the agent has passed over its count", () =>
    Effect.gen(function* () {
      const ran = yield* play(() => Effect.never, { budget: { wallClock: "10 seconds" } })
      assert.strictEqual(stopped(ran.outcome).reason, "deadline")
      assert.strictEqual(ran.requests.length, 0)
      assert.strictEqual(ran.events.at(-1)!.atMillis, 10_000)
    }),
  )

  it.effect("leaves for the wrap-up what its own count says, not the estimate", () =>
    Effect.gen(function* () {
      // The estimate of a wrap-up is 1,000; counted, it is the request before it and the last words, 60 + 30.
      const estimate: Model.Model["countInput"] = ({ parts }) => counted(parts === undefined ? 30 : 1_000)
      const script = ScriptedModel.make([reads, says])
      const model = { ...script.model, countInput: estimate, count: () => Effect.succeed(counted(60)) }
      const policy = Policy.fromModel(model, { maxOutputTokens: 50 })
      const reserves = { output: { steps: 1, inputTokens: 1 } }
      const ran = whole(yield* run(Agent.make("a", { policy, toolkit, reserves }), { steps: 9, inputTokens: 300 }))
      assert.strictEqual(ran.outcome._tag, "Completed")
      assert.deepStrictEqual(
        all(ran.events, "Moved").map(({ amounts }) => amounts.inputTokens),
        [60 + 30 - 1],
      )
    }).pipe(Effect.provide(handled())),
  )

  it.effect("is counted again for the wrap-up itself, in the time that is left for it", () =>
    Effect.gen(function* () {
      const asked: Array<number> = []
      const count = ({ tools }: Model.Request) =>
        Effect.sync(() => {
          asked.push(tools.length)
          return counted(60)
        })
      const reserves = { output: { steps: 1, ticks: 1 } }
      const ran = yield* play(count, { turns: [reads, says], budget: { steps: 2 }, reserves })
      assert.deepStrictEqual([stopped(ran.outcome).reason, stopped(ran.outcome).text], ["budget:steps", "hi"])
      assert.isTrue(asked[0]! > 0)
      assert.strictEqual(asked.at(-1), 0)
      assert.deepStrictEqual(heldInput(ran), [60, 60])
    }),
  )
})
