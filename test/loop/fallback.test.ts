/**
 * A chain of models: who is asked next, when, at what price, and what the journal says of it.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Tracer from "effect/Tracer"
import { Agent, type Budget, type Event, Model, Policy, type Price } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { resumed } from "../support/driven.ts"
import { all, run, stopped, whole } from "../support/journalled.ts"
import * as Recording from "../support/Recording.ts"
import { bare, handled, toolkit } from "../support/scripts.ts"

const flat = (pico: number): Price.Price => ({
  inputPicoUsd: pico,
  cachedInputPicoUsd: pico,
  cacheWriteInputPicoUsd: pico,
  outputPicoUsd: pico,
})

const usage = { input: 10, output: 5 }
const reads = { calls: [{ name: "read", params: { key: "x" } }], usage }
const says = { text: "hi", usage }
const status = (status: number) => ({ fault: { status }, countedInput: 10 })

const chain = (
  turns: ReadonlyArray<ScriptedModel.Turn>,
  prices: ReadonlyArray<number | undefined> = [1_000, 2_000],
) => {
  const [first, ...others] = prices.map((pico, index) => ({
    name: `m${index + 1}`,
    ...(pico === undefined ? {} : { price: flat(pico) }),
  }))
  return ScriptedModel.make(turns, { ...first, fallback: others })
}

interface How {
  readonly reserves?: Agent.Reserves
  readonly settings?: Partial<Omit<Agent.Settings, "wrapUp">>
}

const agentOf = (model: Model.Model, options: How = {}) =>
  Agent.make("a", { policy: Policy.fromModel(model, { maxOutputTokens: 5 }), toolkit, ...bare, ...options })

const budget: Budget.Input = { steps: 20, ticks: 40, toolCalls: 5, money: "1 USD" }

const play = (model: ScriptedModel.Scripted, options: How = {}, given = budget) =>
  Effect.map(run(agentOf(model.model, options), given), (ran) => ({
    ...whole(ran),
    asked: model.requests.map((one) => one.model),
  })).pipe(Effect.provide(handled()))

const held = (events: ReadonlyArray<Event.Recorded>) =>
  all(events, "Held")
    .filter(({ hold }) => hold.includes("/attempt-") && !hold.endsWith("/turn"))
    .map(({ reserve, amounts }) => [reserve, amounts.money])

describe("a model that has failed for good", () => {
  it.effect("hands over at once where trying again would not help, each held and billed at its own price", () =>
    Effect.gen(function* () {
      for (const code of [401, 403, 404]) {
        const model = chain([status(code), says])
        const { asked, events, outcome } = yield* play(model)
        assert.strictEqual(outcome._tag, "Completed")
        assert.deepStrictEqual(asked, ["m1", "m2"])
        assert.deepStrictEqual(held(events), [
          ["explore", 15],
          ["retry", 30],
        ])
        assert.strictEqual(outcome.report.accounts[0]!.own.money, 30)
        assert.strictEqual(all(events, "DecisionFailed")[0]!.model, "m1")
        assert.strictEqual(all(events, "Decided")[0]!.model, "m2")
        const { from, to, at, unpriced, purpose } = all(events, "FellBack")[0]!
        assert.deepStrictEqual([from, to, at, unpriced, purpose], ["m1", "m2", 1, [], "explore"])
        assert.strictEqual(events.at(-1)!.atMillis, events[0]!.atMillis)
      }
    }),
  )

  it.effect("is tried again first where that may help, each model as often", () =>
    Effect.gen(function* () {
      const model = chain([status(500), status(429), status(503), { fault: "cut" }, status(408), says])
      const { asked, events, outcome } = yield* play(model)
      assert.strictEqual(outcome._tag, "Completed")
      assert.deepStrictEqual(asked, ["m1", "m1", "m1", "m2", "m2", "m2"])
      assert.deepStrictEqual(
        held(events).map(([reserve]) => reserve),
        ["explore", "retry", "retry", "retry", "retry", "retry"],
      )
      assert.deepStrictEqual(
        all(events, "DecisionFailed").map((one) => [one.attempt, one.model]),
        [1, 2, 3, 4, 5].map((attempt) => [attempt, attempt < 4 ? "m1" : "m2"]),
      )
      // Two waits for each model, none in between.
      assert.strictEqual(all(events, "Held").filter(({ hold }) => hold.includes("/wait-")).length, 4)
    }),
  )

  it.effect("is not asked again in this run, nor in one that goes on from its journal", () =>
    Effect.gen(function* () {
      const model = chain([status(401), reads, reads, says])
      const { asked, events } = yield* play(model)
      assert.deepStrictEqual(asked, ["m1", "m2", "m2", "m2"])
      const cut = events.findIndex(({ event }) => event._tag === "CallEnded") + 1
      const again = chain([reads, says])
      const journal = events.slice(0, cut)
      const outcome = yield* resumed(agentOf(again.model), journal).pipe(Effect.provide(handled()))
      assert.strictEqual(outcome._tag, "Completed")
      assert.deepStrictEqual(
        again.requests.map((one) => one.model),
        ["m2", "m2"],
      )
    }),
  )

  it.effect("leaves the run with a model error when it was the last one", () =>
    Effect.gen(function* () {
      const { asked, outcome, events } = yield* play(chain([status(401), status(404), status(403)], [1, 2, 3]))
      assert.deepStrictEqual(asked, ["m1", "m2", "m3"])
      assert.strictEqual(stopped(outcome).reason, "model_error")
      assert.strictEqual(all(events, "FellBack").length, 2)
    }),
  )

  it.effect("does not hand over a request that is wrong everywhere", () =>
    Effect.gen(function* () {
      for (const code of [400, 413, 422]) {
        const { asked, outcome, events } = yield* play(chain([status(code)]))
        assert.deepStrictEqual(asked, ["m1"])
        assert.strictEqual(stopped(outcome).reason, "model_error")
        assert.deepStrictEqual(all(events, "FellBack"), [])
      }
    }),
  )

  it.effect("is named in the spans, beside the one that stands in", () =>
    Effect.gen(function* () {
      const { tracer, spans } = Recording.make()
      yield* Effect.provideService(play(chain([status(401), says])), Tracer.Tracer, tracer)
      assert.deepStrictEqual(
        spans.filter(({ name }) => name.startsWith("chat")).map(({ name, exit }) => [name, exit?._tag]),
        [
          ["chat m1", "Failure"],
          ["chat m2", "Success"],
        ],
      )
    }),
  )
})

describe("a model without a price under a cap on money", () => {
  it.effect("is passed over, and the journal says so", () =>
    Effect.gen(function* () {
      const { asked, events } = yield* play(chain([status(401), says], [1_000, undefined, 3_000]))
      assert.deepStrictEqual(asked, ["m1", "m3"])
      const { to, at, unpriced } = all(events, "FellBack")[0]!
      assert.deepStrictEqual([to, at, unpriced], ["m3", 2, ["m2"]])
    }),
  )

  it.effect("is no help where it is the last one", () =>
    Effect.gen(function* () {
      const { asked, events, outcome } = yield* play(chain([status(401)], [1_000, undefined]))
      assert.deepStrictEqual(asked, ["m1"])
      assert.deepStrictEqual([stopped(outcome).reason, all(events, "FellBack")[0]!.to], ["model_error", undefined])
      assert.include(stopped(outcome).detail, "nobody knows the price of m2")
    }),
  )

  it.effect("is asked where money is not capped, or where it has a ceiling", () =>
    Effect.gen(function* () {
      const { money: _, ...uncapped } = budget
      const { asked, outcome } = yield* play(chain([status(401), says], [1_000, undefined]), {}, uncapped)
      assert.deepStrictEqual(asked, ["m1", "m2"])
      assert.strictEqual(outcome.report.unpricedCalls, 1)
      const [one, other] = [ScriptedModel.make([status(401)], { price: flat(1) }), ScriptedModel.make([says])]
      const model = Model.withFallback(one.model, Model.withCeiling(other.model, flat(9)))
      const ran = whole(yield* run(agentOf(model), budget).pipe(Effect.provide(handled())))
      assert.strictEqual(ran.outcome._tag, "Completed")
    }),
  )
})

describe("a chain", () => {
  it("is put together in order, whatever is a chain already", () => {
    const [a, b, c, d] = ["a", "b", "c", "d"].map((name) => ScriptedModel.make([], { name }).model)
    const names = (model: Model.Model | undefined): ReadonlyArray<string> =>
      model === undefined ? [] : [model.name, ...names(model.fallback)]
    assert.deepStrictEqual(names(Model.withFallback(Model.withFallback(a!, b!), Model.withFallback(c!, d!))), [
      "a",
      "b",
      "c",
      "d",
    ])
    assert.strictEqual(Model.withFallback(a!), a)
  })

  it.effect("counts each request with the counter of the model that is asked", () =>
    Effect.gen(function* () {
      const [one, other] = [ScriptedModel.make([status(401)]), ScriptedModel.make([says], { name: "m2" })]
      const bound = (tokens: number) => () => ({ tokens, bound: "counted" as const })
      const first = { ...one.model, countInput: bound(70) }
      const second = { ...other.model, countInput: bound(90), count: () => Effect.succeed(bound(80)()) }
      const ran = whole(yield* run(agentOf(Model.withFallback(first, second)), { steps: 5 })).events
      assert.deepStrictEqual(
        all(ran, "Held").map(({ amounts }) => amounts.inputTokens),
        [70, 80],
      )
    }).pipe(Effect.provide(handled())),
  )

  it.effect("stops for money where the next one cannot be paid, and nothing more is sent", () =>
    Effect.gen(function* () {
      const { asked, outcome } = yield* play(
        chain([status(401), says], [1_000, 90_000]),
        {},
        { ...budget, money: "0.000001 USD" },
      )
      assert.deepStrictEqual(asked, ["m1"])
      assert.strictEqual(stopped(outcome).reason, "budget:money")
    }),
  )

  it.effect("keeps as much for the wrap-up as the model needs that is asked at the time", () =>
    Effect.gen(function* () {
      const reserves = { output: { steps: 1, ticks: 1, money: 15 } }
      const { events } = yield* play(chain([reads, status(401), says], [1_000, 4_000]), { reserves })
      const moved = all(events, "Moved").map(({ to, amounts }) => [to, amounts.money])
      // Enough for the first; what the second needs is four times as much.
      assert.deepStrictEqual(moved, [["output", 45]])
    }),
  )
})

describe("a wrap-up", () => {
  it.effect("falls back too, without trying again, with tools withdrawn", () =>
    Effect.gen(function* () {
      const model = chain([reads, status(500), says])
      const reserves = { output: { steps: 2, ticks: 2 } }
      const { asked, events, outcome } = yield* play(model, { reserves }, { ...budget, steps: 3 })
      assert.deepStrictEqual(asked, ["m1", "m1", "m2"])
      const { reason, text } = stopped(outcome)
      assert.deepStrictEqual([reason, text], ["budget:steps", "hi"])
      assert.deepStrictEqual(
        held(events).map(([reserve]) => reserve),
        ["explore", "output", "output"],
      )
      assert.deepStrictEqual(
        model.requests.map(({ request }) => request.tools.length > 0),
        [true, false, false],
      )
      assert.strictEqual(all(events, "FellBack")[0]!.purpose, "wrap_up")
    }),
  )
})

describe("a wait that the deadline does not leave", () => {
  const busy = { fault: { status: 429, retryAfterMillis: 3_600_000 }, countedInput: 10 }
  const inTime = { ...budget, wallClock: "1 minute" }

  it.effect("is not begun: the next model is asked at once", () =>
    Effect.gen(function* () {
      const { asked, events, outcome } = yield* play(chain([busy, says]), {}, inTime)
      assert.strictEqual(outcome._tag, "Completed")
      assert.deepStrictEqual(asked, ["m1", "m2"])
      assert.strictEqual(events.at(-1)!.atMillis, 0)
    }),
  )

  it.effect("without one the run stops for its deadline, at once", () =>
    Effect.gen(function* () {
      const { asked, events, outcome } = yield* play(chain([busy], [1_000]), {}, inTime)
      assert.deepStrictEqual(asked, ["m1"])
      assert.strictEqual(stopped(outcome).reason, "deadline")
      assert.strictEqual(events.at(-1)!.atMillis, 0)
    }),
  )

  it.effect("a shorter one is waited, however long our own would be", () =>
    Effect.gen(function* () {
      const soon = { fault: { status: 429, retryAfterMillis: 30_000 }, countedInput: 10 }
      const { asked, events } = yield* play(chain([soon, says]), {}, inTime)
      assert.deepStrictEqual(asked, ["m1", "m1"])
      assert.strictEqual(events.at(-1)!.atMillis, 30_000)
    }),
  )

  it.effect("our own waits double, with jitter, up to a minute", () =>
    Effect.gen(function* () {
      const failures = Array.from({ length: 12 }, () => status(503))
      const settings = { modelRetries: 12, backoffMillis: 500 }
      const { events } = yield* play(chain([...failures, says], [1_000]), { settings })
      const failedAt = events.flatMap(({ event, atMillis }) => (event._tag === "DecisionFailed" ? [atMillis] : []))
      const waits = [...failedAt.slice(1), events.at(-1)!.atMillis].map((at, index) => at - failedAt[index]!)
      waits.forEach((wait, index) => {
        const most = Math.min(60_000, 500 * 2 ** index)
        assert.isTrue(wait >= most / 2 && wait <= most, `wait ${index + 1} is ${wait}`)
      })
      assert.isAbove(new Set(waits.slice(-4)).size, 1)
    }),
  )
})
