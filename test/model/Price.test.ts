/** Prices against an oracle that only knows fractions of whole numbers. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Price } from "../../src/index.ts"

const natural = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum }))

const rate = natural(1_000_000_000)
const rates = { inputPicoUsd: rate, cachedInputPicoUsd: rate, cacheWriteInputPicoUsd: rate, outputPicoUsd: rate }
/** Starts close together, so that inputs fall on both sides of each and right on them; in any order. */
const tiers = Schema.Array(Schema.Struct({ ...rates, aboveInputTokens: natural(12) })).check(Schema.isMaxLength(3))
const Tariff = Schema.Struct({ ...rates, tiers })
const names = ["flex", "priority", "default"] as const
const AnyPrice = Schema.Struct({
  ...rates,
  tiers,
  service: Schema.Array(Tariff).check(Schema.isMaxLength(3)),
  requestPicoUsd: natural(20_000_000_000),
  searchPicoUsd: natural(20_000_000_000),
})

type Drawn = typeof AnyPrice.Type

/** One size, one set of rates: of two drawn for the same size the first stays. */
const distinct = (all: Drawn["tiers"]) =>
  all.filter((one, index) => all.findIndex((other) => other.aboveInputTokens === one.aboveInputTokens) === index)

/** What has no tiers says nothing of them: the common price, for which the sums are shorter. */
const unlessEmpty = <T extends object>(all: T): T | undefined => (Object.keys(all).length === 0 ? undefined : all)

const priceOf = ({ service, searchPicoUsd, ...price }: Drawn): Price.Price => ({
  ...price,
  tiers: unlessEmpty(distinct(price.tiers)),
  serviceTiers: unlessEmpty(
    Object.fromEntries(
      service.map((one, index) => [names[index]!, { ...one, tiers: unlessEmpty(distinct(one.tiers)) }] as const),
    ),
  ),
  hostedPicoUsd: { web_search: searchPicoUsd },
})

const Call = Schema.Struct({
  held: natural(14),
  /** Parts of what is held, in sixteenths. */
  used: natural(16),
  cached: natural(16),
  written: natural(16),
  output: natural(9_000_000_000),
  outputUsed: natural(16),
  searches: natural(3),
  searched: natural(3),
  tier: natural(4),
  scale: Schema.Literals([1, 3, 1_000_003, 30_000_000_011]),
})

const sixteenths = (amount: number, parts: number) => Number((BigInt(amount) * BigInt(parts)) / 16n)

/** A price and a call, with sizes of input that are `scale` times those drawn. */
const scaled = (drawn: Drawn, call: typeof Call.Type) => {
  const by = <T extends Price.Tariff>(tariff: T): T => ({
    ...tariff,
    tiers: tariff.tiers?.map((one) => ({ ...one, aboveInputTokens: one.aboveInputTokens * call.scale })),
  })
  const plain = priceOf(drawn)
  const price: Price.Price = {
    ...by(plain),
    serviceTiers: unlessEmpty(
      Object.fromEntries(Object.entries(plain.serviceTiers ?? {}).map(([name, one]) => [name, by(one)])),
    ),
  }
  const inputTokens = sixteenths(call.held * call.scale, call.used)
  const cachedInputTokens = sixteenths(inputTokens, call.cached)
  const usage: Price.Complete = {
    inputTokens,
    cachedInputTokens,
    cacheWriteInputTokens: sixteenths(inputTokens - cachedInputTokens, call.written),
    outputTokens: sixteenths(call.output, call.outputUsed),
    reasoningTokens: 0,
  }
  const held = {
    inputTokens: call.held * call.scale,
    outputTokens: call.output,
    hostedCalls: { web_search: call.searches },
  }
  const hostedCalls = { web_search: Math.min(call.searches, call.searched) }
  const serviceTier = ["flex", "priority", "default", undefined, "elsewhere"][call.tier]
  return { price, usage, held, hostedCalls, serviceTier }
}

/** The cost in nano-USD by whole fractions; `undefined` where the tier has no price of its own. */
const oracle = (price: Price.Price, usage: Price.Complete, served: Price.Served): bigint | undefined => {
  const named = served.serviceTier === undefined ? undefined : price.serviceTiers?.[served.serviceTier]
  const tariff = named ?? (served.serviceTier === "default" ? price : undefined)
  if (tariff === undefined) return undefined
  const reached = (tariff.tiers ?? [])
    .filter((one) => one.aboveInputTokens < usage.inputTokens)
    .toSorted((a, b) => b.aboveInputTokens - a.aboveInputTokens)
  const of = reached[0] ?? tariff
  const [input, cached, written] = [usage.inputTokens, usage.cachedInputTokens, usage.cacheWriteInputTokens].map(BigInt)
  const pico =
    (input! - cached! - written!) * BigInt(of.inputPicoUsd) +
    cached! * BigInt(of.cachedInputPicoUsd) +
    written! * BigInt(of.cacheWriteInputPicoUsd) +
    BigInt(usage.outputTokens) * BigInt(of.outputPicoUsd) +
    BigInt(price.requestPicoUsd ?? 0) +
    BigInt(served.hostedCalls?.["web_search"] ?? 0) * BigInt(price.hostedPicoUsd?.["web_search"] ?? 0)
  return pico / 1000n + (pico % 1000n === 0n ? 0n : 1n)
}

const settings = { arbitrary: { runs: 3000, seed: 11 } }

describe("a price with tiers", () => {
  it.effect.prop(
    "costs what whole fractions say, in every tier",
    [AnyPrice, Call],
    ([drawn, call]) =>
      Effect.sync(() => {
        const { price, usage, hostedCalls, serviceTier } = scaled(drawn, call)
        const cost = Price.costOf(price, usage, { serviceTier, hostedCalls })
        const tiersThere = ["default", ...Object.keys(price.serviceTiers ?? {})]
        const named = price.serviceTiers === undefined ? "default" : serviceTier
        const one = oracle(price, usage, { serviceTier: named, hostedCalls })
        const all = tiersThere.map((tier) => oracle(price, usage, { serviceTier: tier, hostedCalls })!)
        // A tier that nobody priced is the dearest of those that somebody did.
        const expected = one ?? all.reduce((most, each) => (each > most ? each : most))
        assert.strictEqual(cost, Number(expected))
      }),
    settings,
  )

  it.effect.prop(
    "is held at no less than any use of what is held costs, in whatever tier it is served",
    [AnyPrice, Call],
    ([drawn, call]) =>
      Effect.sync(() => {
        const { price, usage, held, hostedCalls, serviceTier } = scaled(drawn, call)
        const cost = Price.costOf(price, usage, { serviceTier, hostedCalls })
        assert.isAtLeast(Price.worstCase(price, held), cost)
        assert.isAtLeast(Price.worstCase(price, { ...held, serviceTier }), cost)
      }),
    settings,
  )

  it.effect.prop(
    "is held at what some use of it costs: not a nano-USD more than needed",
    [AnyPrice, Call],
    ([drawn, call]) =>
      Effect.sync(() => {
        const { price, held } = scaled(drawn, call)
        const sizes = Object.values({ price, ...price.serviceTiers }).flatMap((one) => one.tiers ?? [])
        const inputs = [held.inputTokens, ...sizes.map((one) => Math.min(held.inputTokens, one.aboveInputTokens))]
        const costs = inputs.flatMap((inputTokens) =>
          [
            [0, 0],
            [inputTokens, 0],
            [0, inputTokens],
          ].map(([cachedInputTokens, cacheWriteInputTokens]) =>
            Price.costOf(
              price,
              {
                inputTokens,
                cachedInputTokens: cachedInputTokens!,
                cacheWriteInputTokens: cacheWriteInputTokens!,
                outputTokens: held.outputTokens,
                reasoningTokens: 0,
              },
              { hostedCalls: held.hostedCalls },
            ),
          ),
        )
        assert.strictEqual(Price.worstCase(price, held), Math.max(...costs))
      }),
    settings,
  )

  it.effect.prop(
    "is held at more for more",
    [AnyPrice, Call, natural(3), natural(3)],
    ([drawn, call, moreInput, moreOutput]) =>
      Effect.sync(() => {
        const { price, held, serviceTier } = scaled(drawn, call)
        const more = {
          ...held,
          inputTokens: held.inputTokens + moreInput * call.scale,
          outputTokens: held.outputTokens + moreOutput,
        }
        assert.isAtLeast(
          Price.worstCase(price, { ...more, serviceTier }),
          Price.worstCase(price, { ...held, serviceTier }),
        )
      }),
    settings,
  )

  it("changes the price of the whole request one token above the size", () => {
    const price = Result.getOrThrow(
      Price.perMillion({
        input: "4",
        cachedInput: "0.4",
        cacheWriteInput: "5",
        output: "20",
        tiers: [{ aboveInputTokens: 272_000, input: "8", cachedInput: "0.8", cacheWriteInput: "10", output: "30" }],
      }),
    )
    const usage = (inputTokens: number): Price.Complete => ({
      inputTokens,
      cachedInputTokens: 1_000,
      cacheWriteInputTokens: 2_000,
      outputTokens: 100,
      reasoningTokens: 0,
    })
    assert.deepStrictEqual(
      [271_999, 272_000, 272_001].map((input) => Price.costOf(price, usage(input))),
      [
        268_999 * 4_000 + 1_000 * 400 + 2_000 * 5_000 + 100 * 20_000,
        269_000 * 4_000 + 1_000 * 400 + 2_000 * 5_000 + 100 * 20_000,
        269_001 * 8_000 + 1_000 * 800 + 2_000 * 10_000 + 100 * 30_000,
      ],
    )
  })

  it("is bounded below the size when the dearer rates are the lower ones", () => {
    const flat = { input: "10", output: "10" }
    const price = Result.getOrThrow(
      Price.perMillion({ ...flat, tiers: [{ aboveInputTokens: 100, input: "1", output: "1" }] }),
    )
    assert.strictEqual(Price.worstCase(price, { inputTokens: 101, outputTokens: 0 }), 100 * 10_000)
  })
})

describe("a hosted tool", () => {
  const price = Result.getOrThrow(
    Price.perMillion({ input: "0", output: "0", perRequest: "0.005", perThousandCalls: { web_search: "10" } }),
  )

  it("costs its rate for each call, beside the fee of the request", () => {
    const held = { inputTokens: 0, outputTokens: 0, hostedCalls: { web_search: 3 } }
    assert.strictEqual(Price.worstCase(price, held), 5_000_000 + 3 * 10_000_000)
  })

  it("is never free because nobody knows its rate", () => {
    const hostedCalls = { file_search: 1, constructor: 1, web_search: 1, code: 0 }
    assert.deepStrictEqual(Price.unpricedTools(price, hostedCalls), ["file_search", "constructor"])
    assert.throws(() => Price.worstCase(price, { inputTokens: 1, outputTokens: 1, hostedCalls }), /file_search/)
  })
})

describe("a service tier", () => {
  const price = Result.getOrThrow(
    Price.perMillion({
      input: "2",
      output: "2",
      serviceTiers: { flex: { input: "1", output: "1" }, priority: { input: "4", output: "4" } },
    }),
  )
  const tokens = { inputTokens: 1000, outputTokens: 1000 }
  const usage = { ...tokens, cachedInputTokens: 0, cacheWriteInputTokens: 0, reasoningTokens: 0 }

  it("is held at the dearest, unless it is named", () => {
    const worst = (serviceTier?: string) => Price.worstCase(price, { ...tokens, serviceTier })
    assert.deepStrictEqual(
      [worst("flex"), worst("default"), worst("priority"), worst(), worst("constructor")],
      [2_000_000, 4_000_000, 8_000_000, 8_000_000, 8_000_000],
    )
  })

  it("is booked as it was served, and as the dearest where nobody says", () => {
    const cost = (serviceTier?: string) => Price.costOf(price, usage, { serviceTier })
    assert.deepStrictEqual(
      [cost("flex"), cost("default"), cost("priority"), cost(), cost("scale")],
      [2_000_000, 4_000_000, 8_000_000, 8_000_000, 8_000_000],
    )
  })
})

describe("a price as people write it", () => {
  const wrong = (price: Partial<Price.DecimalPrice>) => {
    const read = Price.perMillion({ input: "1", output: "1", ...price })
    return Result.isFailure(read) ? read.failure : "read"
  }

  it("is refused with the field, the value and the remedy", () => {
    const rates = { input: "1", output: "1" }
    assert.deepStrictEqual(
      [
        wrong({ tiers: [{ ...rates, aboveInputTokens: 0.5 }] }),
        wrong({
          tiers: [
            { ...rates, aboveInputTokens: 9 },
            { ...rates, aboveInputTokens: 9 },
          ],
        }),
        wrong({ tiers: [{ ...rates, output: "x", aboveInputTokens: 9 }] }),
        wrong({ serviceTiers: { flex: { ...rates, input: "-1" } } }),
        wrong({ perThousandCalls: { web_search: "ten" } }),
        wrong({ perRequest: "99999" }),
      ],
      [
        "tiers[0].aboveInputTokens is 0.5: give a whole number of tokens, such as 272000",
        "tiers[0].aboveInputTokens is 9 twice: give one tier for each size",
        'tiers[0].output is "x": give US dollars as a decimal, such as "1.25"',
        'serviceTiers.flex.input is "-1": give US dollars as a decimal, such as "1.25"',
        'perThousandCalls.web_search is "ten": give US dollars as a decimal, such as "1.25"',
        'perRequest is "99999": give less than that; a rate in pico-USD has to be exact',
      ],
    )
  })
})
