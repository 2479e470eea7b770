/**
 * What a call is booked at when its reply, its price or its provider is not as expected: through the real loop, its ledger
 * and its journal.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Agent, Audit, type Budget, Model, Policy, type Price } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { all, run, stopped, whole } from "../support/journalled.ts"
import { bare } from "../support/scripts.ts"

const flat = (inputPicoUsd: number, outputPicoUsd: number): Price.Price => ({
  inputPicoUsd,
  cachedInputPicoUsd: inputPicoUsd,
  cacheWriteInputPicoUsd: inputPicoUsd,
  outputPicoUsd,
})

const price = flat(1_000, 10_000)

/** Nano-USD of tokens at that price. */
const costs = (input: number, output: number): number => input + 10 * output

const answer = { text: "x", usage: { input: 90, output: 10 }, countedInput: 100 }

/** One decision of a model that asks for at most 50 tokens. */
const decide = (model: Model.Model, budget: Budget.Input = { money: "1 USD", steps: 1 }) =>
  Effect.gen(function* () {
    const policy = Policy.fromModel(model, { maxOutputTokens: 50 })
    const ran = whole(yield* run(Agent.make("a", { policy, ...bare, settings: { modelRetries: 0 } }), budget))
    assert.deepStrictEqual(Audit.defects(Audit.audit(ran.events)), [])
    const [row] = ran.outcome.report.accounts
    const { inputTokens, outputTokens, money } = row!.own
    return { ...ran, row: row!, booked: [inputTokens, outputTokens, money] }
  })

const scripted = (turn: ScriptedModel.Turn, options: Partial<Model.Model> = {}) => ({
  ...ScriptedModel.make([{ ...answer, ...turn }], { price }).model,
  ...options,
})

const assumed = [100, 50, costs(100, 50)]

describe("usage that cannot be believed", () => {
  it.effect("is booked at the hold, and stands in the journal as it came", () =>
    Effect.gen(function* () {
      for (const [usage, raw] of [
        [
          { input: 0, output: 0 },
          { inputTokens: 0, outputTokens: 0 },
        ],
        [
          { input: 10, output: 5, cached: 11 },
          { inputTokens: 10, cachedInputTokens: 11, outputTokens: 5 },
        ],
        [
          { input: 10, output: 5, reasoning: 6 },
          { inputTokens: 10, outputTokens: 5, reasoningTokens: 6 },
        ],
        [
          { input: -1, output: 5 },
          { inputTokens: -1, outputTokens: 5 },
        ],
        [
          { input: 1.5, output: 5 },
          { inputTokens: 1.5, outputTokens: 5 },
        ],
        [
          { input: Number.NaN, output: 5 },
          { inputTokens: "NaN", outputTokens: 5 },
        ],
        [
          { input: Infinity, output: 5 },
          { inputTokens: "Infinity", outputTokens: 5 },
        ],
        [
          { input: 10, output: 5, total: 14 },
          { inputTokens: 10, outputTokens: 5, totalTokens: 14 },
        ],
      ] as const) {
        const { booked, events } = yield* decide(scripted({ usage, tier: "flex", id: "resp_1" }))
        assert.deepStrictEqual(booked, assumed, JSON.stringify(usage))
        const [reported] = all(events, "Reported")
        const { model, servedBy, tier, response } = reported!
        assert.deepStrictEqual([model, servedBy, tier, response], ["scripted", "scripted", "flex", "resp_1"])
        assert.deepStrictEqual<unknown>({ ...reported!.usage }, raw)
        assert.strictEqual(reported!.bookedAt, all(events, "Held")[0]!.hold)
      }
    }),
  )

  it.effect("a total of at least its parts is believed", () =>
    Effect.gen(function* () {
      const { booked } = yield* decide(scripted({ usage: { input: 10, output: 5, total: 15 } }))
      assert.deepStrictEqual(booked, [10, 5, costs(10, 5)])
    }),
  )

  it.effect("missing usage is booked at the hold too, and tells nothing", () =>
    Effect.gen(function* () {
      const { booked, events } = yield* decide(scripted({ usage: null }))
      assert.deepStrictEqual(booked, assumed)
      assert.deepStrictEqual(all(events, "Reported"), [])
      assert.strictEqual(all(events, "Decided")[0]!.certainty, "assumed")
    }),
  )

  it.effect("of running totals the last counts, never their sum", () =>
    Effect.gen(function* () {
      const frames = [12, 24, 35].map((output) => ({ input: 80, output }))
      const { booked } = yield* decide(scripted({ frames }))
      assert.deepStrictEqual(booked, [80, 35, costs(80, 35)])
    }),
  )
})

describe("a server error", () => {
  it.effect("is not billed, unless the provider may bill it", () =>
    Effect.gen(function* () {
      for (const status of [500, 503, 529]) {
        const fault = { status }
        assert.deepStrictEqual((yield* decide(scripted({ fault }))).booked, [0, 0, 0])
        assert.deepStrictEqual((yield* decide(scripted({ fault }, { serverErrors: "unknown" }))).booked, assumed)
        // A refusal before anything was generated is not billed by any.
        const refused = scripted({ fault: { status: 429 } }, { serverErrors: "unknown" })
        assert.deepStrictEqual((yield* decide(refused)).booked, [0, 0, 0])
      }
    }),
  )
})

describe("a price that nobody knows", () => {
  const unknown = { price: undefined }

  it.effect("is refused under a cap on money", () =>
    Effect.gen(function* () {
      const { outcome, events } = yield* decide(scripted({}, unknown))
      assert.strictEqual(stopped(outcome).reason, "unpriced")
      assert.deepStrictEqual(all(events, "Held"), [])
    }),
  )

  it.effect("is held and booked at the ceiling that the caller set, as an assumption", () =>
    Effect.gen(function* () {
      const model = Model.withCeiling(scripted({}, unknown), flat(2_000, 20_000))
      const { booked, events, outcome } = yield* decide(model)
      assert.deepStrictEqual(booked, [90, 10, 2 * costs(90, 10)])
      assert.strictEqual(all(events, "Held")[0]!.amounts.money, 2 * costs(100, 50))
      assert.strictEqual(all(events, "Decided")[0]!.certainty, "assumed")
      assert.strictEqual(outcome.report.unpricedCalls, 0)
      // What is known comes first.
      const known = yield* decide(Model.withCeiling(scripted({}), flat(2_000, 20_000)))
      assert.deepStrictEqual(known.booked, [90, 10, costs(90, 10)])
      assert.strictEqual(all(known.events, "Held")[0]!.amounts.money, costs(100, 50))
      assert.strictEqual(all(known.events, "Decided")[0]!.certainty, "exact")
    }),
  )

  it.effect("runs without a cap on money, and its money counts as unknown, exact or assumed", () =>
    Effect.gen(function* () {
      for (const usage of [answer.usage, null]) {
        const { booked, events, outcome, row } = yield* decide(scripted({ usage }, unknown), { steps: 1 })
        assert.strictEqual(outcome._tag, "Completed")
        assert.strictEqual(booked[2], 0)
        assert.deepStrictEqual([row.unpricedCalls, outcome.report.unpricedCalls], [1, 1])
        assert.strictEqual(all(events, "Held")[0]!.unpriced, true)
      }
    }),
  )

  it.effect("of a request that was refused or never sent costs nothing for certain", () =>
    Effect.gen(function* () {
      for (const fault of [{ status: 429 }, "unreachable"] as const) {
        const { outcome } = yield* decide(scripted({ fault }, unknown), { steps: 1 })
        assert.strictEqual(outcome.report.unpricedCalls, 0)
      }
    }),
  )
})

describe("a reply that names another model", () => {
  const prices: Readonly<Record<string, Price.Price>> = {
    "scripted-2026-10": flat(3_000, 30_000),
    "scripted-mini": flat(500, 5_000),
  }
  const priceOf = (model: string) => prices[model]

  it.effect("is priced by that one: cheaper, or dearer, which is an over-run", () =>
    Effect.gen(function* () {
      const cheap = yield* decide(scripted({ model: "scripted-mini" }, { priceOf }))
      assert.deepStrictEqual(cheap.booked, [90, 10, costs(90, 10) / 2])
      assert.isFalse(cheap.outcome.report.overran)
      const usage = { input: 100, output: 50 }
      const dear = yield* decide(scripted({ model: "scripted-2026-10", usage }, { priceOf }))
      assert.deepStrictEqual(dear.booked, [100, 50, 3 * costs(100, 50)])
      assert.isTrue(dear.outcome.report.overran)
      assert.strictEqual(all(dear.events, "Overran")[0]!.excess.money, 2 * costs(100, 50))
      assert.strictEqual(all(dear.events, "Decided")[0]!.model, "scripted-2026-10")
    }),
  )

  it.effect("is priced as it was asked where nobody knows the other", () =>
    Effect.gen(function* () {
      const { booked } = yield* decide(scripted({ model: "scripted-next" }, { priceOf }))
      assert.deepStrictEqual(booked, [90, 10, costs(90, 10)])
    }),
  )

  it.effect("is held at what its own name costs, where it has no price beside", () =>
    Effect.gen(function* () {
      const model = scripted(
        {},
        { priceOf: (name) => (name === "scripted" ? flat(500, 5_000) : undefined), price: undefined },
      )
      const { booked, events } = yield* decide(model)
      assert.strictEqual(all(events, "Held")[0]!.amounts.money, costs(100, 50) / 2)
      assert.deepStrictEqual(booked, [90, 10, costs(90, 10) / 2])
    }),
  )

  it.effect("gives a price to a call that had none", () =>
    Effect.gen(function* () {
      const model = scripted({ model: "scripted-mini" }, { priceOf, price: undefined })
      const { booked, outcome } = yield* decide(model, { steps: 1 })
      assert.deepStrictEqual(booked, [90, 10, costs(90, 10) / 2])
      assert.strictEqual(outcome.report.unpricedCalls, 0)
    }),
  )
})

describe("a service tier", () => {
  const tiered: Price.Price = {
    ...price,
    serviceTiers: { flex: flat(500, 5_000), priority: flat(2_000, 20_000) },
  }

  it.effect("is held as it was pinned, and booked and recorded as it was served", () =>
    Effect.gen(function* () {
      for (const [tier, factor] of [
        [undefined, 0.5],
        ["flex", 0.5],
        ["default", 1],
        ["priority", 2],
      ] as const) {
        const model = scripted(tier === undefined ? {} : { tier }, { price: tiered, tier: "flex" })
        const { booked, events } = yield* decide(model)
        assert.strictEqual(all(events, "Held")[0]!.amounts.money, costs(100, 50) / 2)
        assert.deepStrictEqual(booked, [90, 10, factor * costs(90, 10)], tier)
        assert.strictEqual(all(events, "Decided")[0]!.tier, tier)
      }
    }),
  )

  it.effect("dearer than the one that was pinned is an over-run", () =>
    Effect.gen(function* () {
      const usage = { input: 100, output: 50 }
      const model = scripted({ tier: "priority", usage }, { price: tiered, tier: "flex" })
      const { booked, outcome } = yield* decide(model)
      assert.deepStrictEqual(booked, [100, 50, 2 * costs(100, 50)])
      assert.isTrue(outcome.report.overran)
    }),
  )

  it.effect("has a price of its own where the prices are by name", () =>
    Effect.gen(function* () {
      const priceOf = (_model: string, tier: string | undefined) => (tier === "batch" ? flat(100, 1_000) : undefined)
      const { booked } = yield* decide(scripted({ tier: "batch" }, { priceOf }))
      assert.deepStrictEqual(booked, [90, 10, costs(90, 10) / 10])
    }),
  )
})
