/** What a model costs stays what it was when a run first asked it; and its words can be heard as they come. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { Agent, type Budget, Contract, type Event, Journal, Model, Policy, Price } from "../../src/index.ts"
import { Prices } from "../../src/prices/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { all, run, stopped, whole } from "../support/journalled.ts"
import { bare, handled, toolkit } from "../support/scripts.ts"

const usage = { input: 1_000, output: 100 }
const looks = { calls: [{ name: "read", params: { key: "a" } }], usage }
const says = { text: "hi there", usage, frames: [usage, usage] }
const Pay = Contract.annotate(Tool.make("pay", { parameters: Schema.Struct({}), success: Schema.String }), {
  effect: "write",
  approval: true,
})
const priceOf = (input: string, output: string, version: string) => ({
  ...Result.getOrThrow(Price.perMillion({ input, output })),
  version,
})

describe("the price of a model", () => {
  it.effect("is on record once, before anything is held at it", () =>
    Effect.gen(function* () {
      const price = priceOf("1", "10", "spring")
      const { model } = ScriptedModel.make([looks, looks, says], { price, name: "m" })
      const agent = Agent.make("a", { policy: Policy.fromModel(model, { maxOutputTokens: 200 }), toolkit })
      const { events } = yield* run(agent, { steps: 9, toolCalls: 9, money: "1 USD" })
      const priced = all(events, "Priced")
      assert.deepStrictEqual(
        priced.map(({ model, price }) => [model, price["version"], price["outputPicoUsd"]]),
        [["m", "spring", 10_000_000]],
      )
      const at = (tag: string) => events.findIndex(({ event }) => event._tag === tag)
      assert.isBelow(at("Priced"), at("Held"))
    }).pipe(Effect.provide(handled())),
  )

  it.effect("is not that of another day when the run is resumed", () => {
    const events: Array<Event.Recorded> = []
    const agentAt = (price: Price.Price, turns: ReadonlyArray<ScriptedModel.Turn>) =>
      Agent.make("a", {
        policy: Policy.fromModel(ScriptedModel.make(turns, { price, name: "m" }).model, { maxOutputTokens: 200 }),
        toolkit: Toolkit.make(Pay),
      })
    return Effect.gen(function* () {
      const asks = { calls: [{ name: "pay", params: {} }], usage }
      const spring = agentAt(priceOf("1", "10", "spring"), [asks])
      const first = yield* Agent.run(spring, "go", { budget: { steps: 9, toolCalls: 9, money: "1 USD" }, runId: "r" })
      const answers = (first._tag === "Suspended" ? first.waitsFor : []).map(
        ({ approval, digest }) => ({ approval, digest, decision: "approved", by: "ada" }) as const,
      )
      const last = yield* Agent.resume(agentAt(priceOf("5", "50", "summer"), [says]), { run: "r", answers })
      assert.deepStrictEqual([first._tag, last._tag], ["Suspended", "Completed"])
      // Two calls of 1,000 tokens at 1 USD and 100 at 10 USD a million, in nano-USD.
      assert.strictEqual(last.report.accounts[0]!.own.money, 2 * (1_000_000 + 1_000_000))
      const versions = all(events, "Priced").map(({ price }) => price["version"])
      assert.deepStrictEqual(versions, ["spring"])
    }).pipe(
      Effect.provide(Toolkit.make(Pay).toLayer({ pay: () => Effect.succeed("paid") })),
      Effect.provideService(Journal.Journal, Journal.toArray(events)),
    )
  })

  it.effect("is the one on record also where its table moves between the record and the hold", () =>
    Effect.gen(function* () {
      let asked = 0
      const moves = () => priceOf(`${++asked}`, "10", `edition ${asked}`)
      const { model } = ScriptedModel.make([looks, says], { name: "m" })
      const policy = Policy.fromModel({ ...model, priceOf: moves }, { maxOutputTokens: 200 })
      const ran = whole(yield* run(Agent.make("a", { policy, toolkit }), { steps: 9, toolCalls: 9, money: "1 USD" }))
      const versions = all(ran.events, "Priced").map(({ price }) => price["version"])
      assert.deepStrictEqual(versions, ["edition 1"])
      assert.strictEqual(ran.outcome.report.accounts[0]!.own.money, 2 * (1_000_000 + 1_000_000))
    }).pipe(Effect.provide(handled())),
  )

  it.effect("is its own for each of two models that bear one name", () =>
    Effect.gen(function* () {
      const first = ScriptedModel.make([{ fault: { status: 401 } }], { price: priceOf("1", "10", "direct"), name: "m" })
      const second = ScriptedModel.make([says], { price: priceOf("5", "50", "resold"), name: "m" })
      const policy = Policy.fromModel(Model.withFallback(first.model, second.model), { maxOutputTokens: 200 })
      const ran = whole(yield* run(Agent.make("a", { policy, ...bare }), { steps: 9, money: "1 USD" }))
      const versions = all(ran.events, "Priced").map(({ price }) => price["version"])
      assert.deepStrictEqual(versions, ["direct", "resold"])
      assert.strictEqual(ran.outcome.report.accounts[0]!.own.money, 5_000_000 + 5_000_000)
    }),
  )

  it.effect("is what the wrap-up is kept at, too", () =>
    Effect.gen(function* () {
      const asks = { calls: [{ name: "pay", params: {} }], usage }
      const needs: Array<Budget.Grant> = []
      const agentAt = (price: Price.Price, turns: ReadonlyArray<ScriptedModel.Turn>) => {
        const policy = Policy.fromModel(ScriptedModel.make(turns, { price, name: "m" }).model, { maxOutputTokens: 200 })
        const wrapUpNeeds = (view: Policy.View) =>
          Effect.tap(policy.wrapUpNeeds(view), (one) => Effect.sync(() => needs.push(one)))
        return Agent.make("a", { policy: { ...policy, wrapUpNeeds }, toolkit: Toolkit.make(Pay) })
      }
      const events: Array<Event.Recorded> = []
      yield* Effect.gen(function* () {
        const dear = agentAt(priceOf("5", "50", "spring"), [asks])
        const first = yield* Agent.run(dear, "go", { budget: { steps: 9, toolCalls: 9, money: "1 USD" }, runId: "r" })
        const answers = (first._tag === "Suspended" ? first.waitsFor : []).map(
          ({ approval, digest }) => ({ approval, digest, decision: "approved", by: "ada" }) as const,
        )
        yield* Agent.resume(agentAt(priceOf("1", "1", "summer"), [says]), { run: "r", answers })
      }).pipe(Effect.provideService(Journal.Journal, Journal.toArray(events)))
      for (const { inputTokens = 0, outputTokens = 0, money } of needs) {
        assert.strictEqual(money, 5_000 * inputTokens + 50_000 * outputTokens)
      }
      assert.lengthOf(needs, 2)
    }).pipe(Effect.provide(Toolkit.make(Pay).toLayer({ pay: () => Effect.succeed("paid") }))),
  )

  it.effect("is also that of the model that its replies name, and of a bill that comes late", () => {
    const events: Array<Event.Recorded> = []
    const agentAt = (price: Price.Price, turns: ReadonlyArray<ScriptedModel.Turn>) => {
      const { model } = ScriptedModel.make(turns, { price, name: "m" })
      return Agent.make("a", {
        policy: Policy.fromModel({ ...model, priceOf: () => price }, { maxOutputTokens: 200 }),
        toolkit: Toolkit.make(Pay),
      })
    }
    return Effect.gen(function* () {
      const asks = { calls: [{ name: "pay", params: {} }], usage, model: "m-2026" }
      const spring = agentAt(priceOf("1", "10", "spring"), [asks])
      const first = yield* Agent.run(spring, "go", { budget: { steps: 9, toolCalls: 9, money: "1 USD" }, runId: "r" })
      const answers = (first._tag === "Suspended" ? first.waitsFor : []).map(
        ({ approval, digest }) => ({ approval, digest, decision: "approved", by: "ada" }) as const,
      )
      const late = { text: "hi", model: "m-2026", usage: null, id: "resp_1", stored: usage }
      const last = yield* Agent.resume(agentAt(priceOf("5", "50", "summer"), [late]), { run: "r", answers })
      assert.deepStrictEqual([first._tag, last._tag], ["Suspended", "Completed"])
      assert.lengthOf(all(events, "Adjusted"), 1)
      assert.strictEqual(last.report.accounts[0]!.own.money, 2 * (1_000_000 + 1_000_000))
    }).pipe(
      Effect.provide(Toolkit.make(Pay).toLayer({ pay: () => Effect.succeed("paid") })),
      Effect.provideService(Journal.Journal, Journal.toArray(events)),
    )
  })

  it.effect("is found in the table, for the model and for the one its replies name", () =>
    Effect.gen(function* () {
      const scripted = ScriptedModel.make([says], { name: "gpt-5-mini" })
      const priced = yield* Prices.priced(scripted.model, { provider: "openai" })
      const mini = yield* Prices.find({ provider: "openai", model: "gpt-5-mini" })
      const large = yield* Prices.find({ provider: "openai", model: "gpt-5" })
      assert.deepStrictEqual(priced.price, mini)
      assert.deepStrictEqual(priced.priceOf?.("gpt-5", undefined), large)
      assert.isUndefined(priced.priceOf?.("gpt-0", undefined))
      const agent = Agent.make("a", { toolkit })
      const layer = Prices.layer({ provider: "openai" }).pipe(Layer.provide(scripted.layer))
      const { outcome } = yield* run(agent, { steps: 5, money: "1 USD" }).pipe(Effect.provide(layer))
      assert.strictEqual(outcome._tag, "Completed")
      const nobody = ScriptedModel.make([says], { name: "gpt-0" })
      const error = yield* Effect.flip(Prices.priced(nobody.model, { provider: "openai" }))
      assert.strictEqual(error._tag, "UnknownPrice")
      const unpriced = yield* run(agent, { steps: 5, money: "1 USD" }).pipe(Effect.provide(nobody.layer))
      assert.strictEqual(stopped(unpriced.outcome).reason, "unpriced")
    }).pipe(Effect.provide(handled())),
  )
})

describe("the table", () => {
  it.effect("has no price for a tier that costs more than the one it knows", () =>
    Effect.gen(function* () {
      const { model } = ScriptedModel.make([], { name: "gpt-5-mini" })
      const priced = (tier: string, overrides: Readonly<Record<string, Price.Price>> = {}) =>
        Effect.result(Prices.priced({ ...model, tier }, { provider: "openai", overrides }))
      for (const tier of ["default", "flex"]) assert.isTrue(Result.isSuccess(yield* priced(tier)), tier)
      const error = Result.getOrUndefined(Result.flip(yield* priced("priority")))
      assert.strictEqual(error?.reason, 'the table has no rates for the service tier "priority"')
      const own = yield* priced("priority", { "gpt-5-mini": priceOf("0.5", "4", "mine") })
      assert.strictEqual(Result.getOrUndefined(own)?.price?.version, "mine")
    }),
  )
})

describe("a listener to the text of a model", () => {
  it.effect("hears it as it comes, and whose it is; what it throws is its own", () =>
    Effect.gen(function* () {
      const heard: Array<readonly [string, string, number]> = []
      const { model } = ScriptedModel.make([looks, says], { name: "m" })
      const onText = (delta: string, { agent, step }: { readonly agent: string; readonly step: number }) => {
        heard.push([delta, agent, step])
        throw new Error("no more")
      }
      const agent = Agent.make("a", { policy: Policy.fromModel(model, { maxOutputTokens: 200, onText }), toolkit })
      const { outcome } = yield* run(agent, { steps: 9, toolCalls: 9 })
      assert.strictEqual(outcome._tag, "Completed")
      assert.strictEqual(heard.length, 1)
      assert.isTrue("hi there".startsWith(heard[0]![0]))
      assert.deepStrictEqual(heard[0]!.slice(1), ["a", 2])
    }).pipe(Effect.provide(handled())),
  )
})
