/**
 * Calls that were booked at their hold, and whose provider tells afterwards what they came to.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Agent, Audit, type Budget, type Event, Model, Policy, type Price, Proposal } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { driven, lawful, pass, resumed } from "../support/driven.ts"
import { all, run, whole } from "../support/journalled.ts"
import { ask, bare, calls, handled, plays, toolkit } from "../support/scripts.ts"

const price: Price.Price = {
  inputPicoUsd: 1_000,
  cachedInputPicoUsd: 1_000,
  cacheWriteInputPicoUsd: 1_000,
  outputPicoUsd: 1_000,
}

const [held, real] = [150, 45]
const stored = { input: 40, output: 5 }
const said = { text: "hi", usage: null, countedInput: 100, id: "resp_1", stored }
const reads = { calls: [{ name: "read", params: { key: "x" } }], usage: null, countedInput: 100, id: "resp_0", stored }

const agentOf = (model: Model.Model, name = "a") =>
  Agent.make(name, { policy: Policy.fromModel(model, { maxOutputTokens: 50 }), toolkit, ...bare })

const budget: Budget.Input = { steps: 9, ticks: 20, toolCalls: 5, money: "1 USD" }

const play = (turns: ReadonlyArray<ScriptedModel.Turn>, change: Partial<Model.Model> = {}, given = budget) =>
  Effect.gen(function* () {
    const script = ScriptedModel.make(turns, { price })
    const ran = whole(yield* run(agentOf({ ...script.model, ...change }), given))
    assert.deepStrictEqual(Audit.defects(Audit.audit(ran.events)), [])
    const [{ own }] = ran.outcome.report.accounts as readonly [Budget.Row]
    const adjusted = all(ran.events, "Adjusted").map(({ hold }) => hold)
    return { ...ran, money: own.money, adjusted, retrieved: script.retrieved }
  }).pipe(Effect.provide(handled()))

describe("a call that was booked at its hold", () => {
  it.effect("is corrected to its stored response before the account closes, once", () =>
    Effect.gen(function* () {
      const { adjusted, money, retrieved, events } = yield* play([reads, said])
      assert.deepStrictEqual(adjusted, ["step-1/explore/attempt-1", "step-2/explore/attempt-1"])
      assert.deepStrictEqual(retrieved, ["resp_0", "resp_1"])
      assert.strictEqual(money, 2 * real)
      const [lastAdjusted, closed] = ["Adjusted", "Closed"].map((tag) =>
        events.findLastIndex(({ event }) => event._tag === tag),
      )
      assert.isBelow(lastAdjusted!, closed!)
    }),
  )

  it.effect("also where its stream was cut, once the id of the response had come", () =>
    Effect.gen(function* () {
      const cut = { fault: "cut" as const, countedInput: 100 }
      const known = yield* play([{ ...cut, id: "resp_0", stored }, said])
      assert.deepStrictEqual([known.money, known.adjusted.length], [2 * real, 2])
      const unknown = yield* play([cut, said])
      assert.deepStrictEqual([unknown.money, unknown.adjusted.length], [held + real, 1])
    }),
  )

  it.effect("is an over-run where it cost more than its hold", () =>
    Effect.gen(function* () {
      const { money, outcome } = yield* play([{ ...said, stored: { input: 200, output: 100 } }])
      assert.deepStrictEqual([money, outcome.report.overran], [300, true])
    }),
  )

  it.effect("stays assumed where the provider tells nothing, or nothing to believe, or breaks down", () =>
    Effect.gen(function* () {
      const { stored: _, ...forgotten } = said
      for (const turn of [forgotten, { ...said, stored: { input: 0, output: 0 } }]) {
        const { adjusted, money, retrieved } = yield* play([turn])
        assert.deepStrictEqual([adjusted, money, retrieved], [[], held, ["resp_1"]])
      }
      const dies = yield* play([said], { retrieve: () => Effect.die(new Error("broken")) })
      assert.deepStrictEqual([dies.outcome._tag, dies.money], ["Completed", held])
      const cannot = yield* play([said], { retrieve: undefined })
      assert.deepStrictEqual([cannot.outcome._tag, cannot.money], ["Completed", held])
    }),
  )

  it.effect("of which the usage was told is not asked for", () =>
    Effect.gen(function* () {
      const { money, retrieved } = yield* play([{ ...said, usage: stored }])
      assert.deepStrictEqual([money, retrieved], [real, []])
    }),
  )
})

describe("asking for what calls came to", () => {
  const never = { retrieve: () => Effect.never }

  it.effect("takes five seconds at most, and no longer than the agent has", () =>
    Effect.gen(function* () {
      const took = (events: ReadonlyArray<Event.Recorded>) => events.at(-1)!.atMillis - events[0]!.atMillis
      const { events, money, outcome } = yield* play([said], never)
      assert.deepStrictEqual([outcome._tag, money, took(events)], ["Completed", held, 5_000])
      const short = yield* play([{ ...said, millis: 500 }], never, { ...budget, wallClock: "2 seconds" })
      assert.deepStrictEqual([short.outcome._tag, took(short.events)], ["Completed", 2_000])
    }),
  )

  it.effect("keeps the answers that came, whatever becomes of the others", () =>
    Effect.gen(function* () {
      const { model } = ScriptedModel.make([reads, said])
      const { adjusted, money } = yield* play([reads, said], {
        retrieve: (id) => (id === "resp_0" ? Effect.never : model.retrieve!(id)),
      })
      assert.deepStrictEqual([adjusted, money], [["step-2/explore/attempt-1"], held + real])
    }),
  )

  it.effect("is given up when the run is cancelled, and its answer is kept", () =>
    Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      let given = 0
      const retrieve = () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => given++))
      const model = { ...ScriptedModel.make([said], { price }).model, retrieve }
      const outcome = yield* driven(agentOf(model), { budget, events }, (handle) =>
        Effect.andThen(pass(1_000), handle.cancel),
      )
      lawful(outcome, events)
      assert.deepStrictEqual([outcome._tag, given, events.at(-1)!.atMillis], ["Completed", 1, 1_000])
    }).pipe(Effect.provide(handled())),
  )

  it.effect("is done in the account of a child before it gives back what it has left", () =>
    Effect.gen(function* () {
      const { model } = ScriptedModel.make([said], { price })
      const children = [Agent.asTool(agentOf(model, "child"))]
      const policy = plays(calls(ask("child")), Proposal.finish("done"))
      const { events, outcome } = whole(yield* run(Agent.make("a", { policy, children }), budget))
      const child = outcome.report.accounts.find((row) => row.name === "child")!
      assert.strictEqual(child.own.money, real)
      assert.strictEqual(all(events, "Adjusted")[0]!.landedOn, child.account)
    }).pipe(Effect.provide(handled())),
  )

  it.effect("is done by whoever goes on with the run", () =>
    Effect.gen(function* () {
      const first = ScriptedModel.make([reads, said], { price })
      const { events } = whole(yield* run(agentOf(first.model), budget))
      const journal = events.slice(0, events.findIndex(({ event }) => event._tag === "CallEnded") + 1)
      // Another process: the script knows of the first response only what the provider keeps.
      const second = ScriptedModel.make([{ text: "hi", usage: stored }, reads], { price })
      const outcome = yield* resumed(agentOf(second.model), journal)
      lawful(outcome, journal)
      assert.deepStrictEqual(second.retrieved, ["resp_0"])
      assert.strictEqual(outcome.report.accounts[0]!.own.money, 2 * real)
    }).pipe(Effect.provide(handled())),
  )

  it.effect("goes to the model of the chain that was asked", () =>
    Effect.gen(function* () {
      const first = ScriptedModel.make([{ fault: { status: 401 }, countedInput: 100 }], { price })
      const second = ScriptedModel.make([said], { name: "second", price })
      const ran = whole(yield* run(agentOf(Model.withFallback(first.model, second.model)), budget))
      assert.deepStrictEqual([first.retrieved, second.retrieved], [[], ["resp_1"]])
      assert.strictEqual(ran.outcome.report.accounts[0]!.own.money, real)
    }).pipe(Effect.provide(handled())),
  )
})
