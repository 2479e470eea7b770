/** Every rate of the whole table against the decimals that stand in it, and names as the table itself matches them. */
import { calcPrice, type ModelInfo, type ModelPrice, type Provider, waitForUpdate } from "@pydantic/genai-prices"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as TestClock from "effect/testing/TestClock"
import { Price } from "../../src/index.ts"
import { inForce, toPico, toPrice } from "../../src/prices/internal/rates.ts"
import { Prices } from "../../src/prices/index.ts"
import { manifest } from "../house/tree.ts"

const providers: ReadonlyArray<Provider> = (await waitForUpdate()) ?? []
const models = providers.flatMap((provider) => provider.models.map((model) => ({ provider: provider.id, model })))
const entriesOf = ({ prices }: ModelInfo): ReadonlyArray<ModelPrice> =>
  Array.isArray(prices) ? prices.map((one) => one.prices) : [prices]
const entries = models.flatMap((one) => entriesOf(one.model).map((prices) => ({ ...one, prices })))

/** Dollars times 10^30 as a whole number, from the digits that stand in the table. */
const grains = (usd: number): bigint => {
  const [, whole, fraction = "", exponent = "0"] = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(usd))!
  return BigInt(whole! + fraction) * 10n ** BigInt(30 - fraction.length + Number(exponent))
}

/** Whether a rate is the smallest whole number of pico-USD that is not below the decimal. */
const isDecimal = (pico: number, usd: number, units: bigint): boolean => {
  const grainsPerPico = units * 10n ** 18n
  return BigInt(pico) * grainsPerPico >= grains(usd) && (BigInt(pico) - 1n) * grainsPerPico < grains(usd)
}

/** The decimal that the table has for a token of a request of this size. */
const decimal = (prices: ModelPrice, keys: ReadonlyArray<string>, inputTokens: number): number | undefined => {
  const found = keys.flatMap((key) => {
    const value = prices[key]
    if (value === undefined) return []
    if (typeof value === "number") return [value]
    return [value.tiers.reduce((price, tier) => (inputTokens > tier.start ? tier.price : price), value.base)]
  })
  return found.length === 0 ? undefined : Math.max(...found)
}

const keysOf = {
  inputPicoUsd: ["input_mtok", "input_image_mtok"],
  cachedInputPicoUsd: ["cache_read_mtok", "cache_image_read_mtok"],
  cacheWriteInputPicoUsd: ["cache_write_mtok"],
  outputPicoUsd: [
    "output_mtok",
    "output_reasoning_mtok",
    "output_image_mtok",
    "output_audio_mtok",
    "output_video_mtok",
  ],
} as const

describe("the table of prices", () => {
  it("is imported rate by rate, none of them rounded down", () => {
    let [rates, imported] = [0, 0]
    for (const { model, prices, provider } of entries) {
      const price = toPrice([prices], {})
      if (Result.isFailure(price)) continue
      imported += 1
      for (const at of [{ ...price.success, aboveInputTokens: 0 }, ...(price.success.tiers ?? [])]) {
        for (const [rate, keys] of Object.entries(keysOf)) {
          const input = decimal(prices, keysOf.inputPicoUsd, at.aboveInputTokens + 1)!
          const usd = decimal(prices, keys, at.aboveInputTokens + 1) ?? input
          const where = `${provider}:${model.id} ${rate} ${usd}`
          assert.isTrue(isDecimal(at[rate as keyof typeof keysOf], usd, 1_000_000n), where)
          rates += 1
        }
      }
      const { hostedPicoUsd = {}, requestPicoUsd = 0 } = price.success
      const beside = { web_search: "web_searches_kcount", file_search: "storage_searches_kcount" }
      for (const [tool, key] of Object.entries(beside)) {
        assert.strictEqual(Object.hasOwn(hostedPicoUsd, tool), prices[key] !== undefined)
        if (typeof prices[key] === "number") assert.isTrue(isDecimal(hostedPicoUsd[tool]!, prices[key], 1_000n))
      }
      assert.isTrue(isDecimal(requestPicoUsd, Number(prices["requests_kcount"] ?? 0), 1_000n))
    }
    assert.deepStrictEqual(
      { providers: providers.length, models: models.length, entries: entries.length, imported, rates },
      { providers: 43, models: 1694, entries: 1724, imported: 1494, rates: 6216 },
    )
  })

  it("has few rates that are no whole pico-USD", () => {
    const all = entries.flatMap(({ model, prices, provider }) =>
      Object.entries(prices).flatMap(([key, value]) => {
        const units = key.endsWith("_mtok") ? 1_000_000 : key.endsWith("_kcount") ? 1_000 : undefined
        if (units === undefined || value === undefined) return []
        const usds = typeof value === "number" ? [value] : [value.base, ...value.tiers.map((tier) => tier.price)]
        return usds.map((usd) => ({ name: `${provider}:${model.id} ${key} ${usd}`, usd, units }))
      }),
    )
    const uneven = all.filter(({ units, usd }) => grains(usd) % (BigInt(units) * 10n ** 18n) !== 0n)
    assert.deepStrictEqual(
      all.filter(({ units, usd }) => !toPico(usd, units).whole).map(({ name }) => name),
      uneven.map(({ name }) => name),
    )
    console.log(`${uneven.length} of ${all.length} rates are no whole pico-USD and are rounded up:`)
    for (const { name } of uneven) console.log(`  ${name}`)
    assert.deepStrictEqual([uneven.length, all.length], [7, 4144])
  })

  it("has no price for a model whose tokens it does not price, where its own totals are 0", () => {
    const reasons: Record<string, number> = {}
    for (const { prices } of entries) {
      const price = toPrice([prices], {})
      if (Result.isFailure(price)) reasons[price.failure] = (reasons[price.failure] ?? 0) + 1
      else assert.isAbove(Math.min(price.success.inputPicoUsd, price.success.outputPicoUsd), 0)
    }
    assert.deepStrictEqual(reasons, {
      "it charges for input_text_messages_kcount, which is not known beforehand": 4,
      "it charges for output_citation_mtok, which is not known beforehand": 1,
      "the table has no input_mtok for it": 177,
      "the table has no output_mtok for it": 48,
    })
    assert.strictEqual(
      calcPrice({ input_tokens: 9, output_tokens: 9 }, "gemma-3", { providerId: "google" })!.total_price,
      0,
    )
    const free = Prices.findAt({ model: "gemma-3", provider: "google" }, new Date())
    assert.isTrue(Result.isFailure(free) && free.failure.reason.includes("input_mtok"))
  })

  it("comes to what its own floats come to, a nano-USD or less apart, on both sides of each size", () => {
    let compared = 0
    for (const { model, prices, provider } of entries) {
      const price = toPrice([prices], {})
      const keys = Object.keys(prices).filter((key) => prices[key] !== undefined)
      const plain = keys.every((key) =>
        /^(input|output|cache_read|cache_write|cache_write_1h)_mtok$|_kcount$/.test(key),
      )
      if (Result.isFailure(price) || !plain) continue
      const own = providers.find((one) => one.id === provider)!
      const provided = { ...own, models: [{ ...model, match: { equals: "it" }, prices }] }
      const sizes = price.success.tiers?.flatMap((tier) => [0, 1, 2].map((more) => tier.aboveInputTokens + more))
      for (const inputTokens of [1_000, ...(sizes ?? [])]) {
        const usage = { inputTokens, cachedInputTokens: 300, cacheWriteInputTokens: 200, outputTokens: 777 }
        const theirs = calcPrice(
          { input_tokens: inputTokens, cache_read_tokens: 300, cache_write_tokens: 200, output_tokens: 777 },
          "it",
          { provider: provided },
        )
        const difference = Price.costOf(price.success, { ...usage, reasoningTokens: 0 }) - theirs!.total_price * 1e9
        assert.isTrue(
          difference > -0.01 && difference < 1.01,
          `${provider}:${model.id} at ${inputTokens}: ${difference}`,
        )
        compared += 1
      }
    }
    assert.isAbove(compared, entries.length / 2)
  })
})

describe("finding a price", () => {
  const at = (query: Prices.Query, date = "2026-09-30") => Prices.findAt(query, new Date(date))
  const entry = (query: Prices.Query) => {
    const found = at(query)
    return Result.isSuccess(found) ? found.success.version!.split(" ").at(-1) : found.failure.reason
  }

  it("matches names as the table does", () => {
    for (const { model, provider } of models) {
      const theirs = calcPrice({}, model.id, { providerId: provider })
      const ours = entry({ model: model.id, provider })
      if (theirs === null) assert.strictEqual(ours, "the table does not know it")
      else if (!/no \w+_mtok|charges for/.test(ours!))
        assert.strictEqual(ours, `${theirs.provider.id}:${theirs.model.id}`)
    }
    assert.deepStrictEqual(
      [
        entry({ model: "gpt-5-mini-2025-08-07" }),
        entry({ model: " GPT-5-Mini " }),
        entry({ model: "claude-sonnet-4-6", baseUrl: "https://api.anthropic.com/v1" }),
        entry({ model: "gpt-5-mini", provider: "azure" }),
        entry({ model: "openai/gpt-5-mini", baseUrl: "https://openrouter.ai/api/v1" }),
      ],
      [
        "openai:gpt-5-mini",
        "openai:gpt-5-mini",
        "anthropic:claude-sonnet-4-6",
        "azure:gpt-5-mini",
        "openrouter:openai/gpt-5-mini",
      ],
    )
  })

  it("has the dearest of the day, and the price of the date", () => {
    const output = (model: string, date: string) =>
      Result.getOrThrow(at({ model, provider: "deepseek" }, date)).outputPicoUsd
    assert.strictEqual(output("deepseek-v4-pro", "2026-08-16"), 3_960_000)
    assert.strictEqual(output("deepseek-chat", "2026-09-30T20:00:00Z"), 1_100_000)
    const sol = (date: string) => Result.getOrThrow(at({ model: "gpt-5.6-sol" }, date))
    assert.deepStrictEqual([sol("2026-08-20").outputPicoUsd, sol("2026-08-21").outputPicoUsd], [30_000_000, 20_000_000])
    assert.deepStrictEqual(sol("2026-08-21").tiers, [
      {
        aboveInputTokens: 271_999,
        inputPicoUsd: 8_000_000,
        cachedInputPicoUsd: 800_000,
        cacheWriteInputPicoUsd: 10_000_000,
        outputPicoUsd: 30_000_000,
      },
    ])
    const noon = { type: "time_of_date", start_time: "11:00:00Z", end_time: "13:00:00Z" } as const
    const later = { type: "start_date", start_date: "2030-01-01" } as const
    const never = [{ prices: { input_mtok: 9, output_mtok: 9 } }]
    const prices = [...never, { prices: { input_mtok: 5, output_mtok: 1 } }]
    const discounts = [...prices, { prices: { input_mtok: 1, output_mtok: 2 }, constraint: noon }]
    assert.deepStrictEqual(inForce(discounts, new Date(0)).length, 2)
    const dearest = Result.getOrThrow(toPrice(inForce(discounts, new Date(0)), {}))
    assert.deepStrictEqual([dearest.inputPicoUsd, dearest.outputPicoUsd], [5_000_000, 2_000_000])
    // Before the first date of all the table takes the first.
    assert.deepStrictEqual(inForce([{ prices: { input_mtok: 1 }, constraint: later }], new Date(0)), [
      { input_mtok: 1 },
    ])
  })

  it("charges for a long cache, and for sound, where these are used", () => {
    const claude = { model: "claude-sonnet-4-6", provider: "anthropic" }
    assert.strictEqual(Result.getOrThrow(at(claude)).cacheWriteInputPicoUsd, 3_750_000)
    assert.strictEqual(Result.getOrThrow(at({ ...claude, longCache: true })).cacheWriteInputPicoUsd, 6_000_000)
    const gemini = { model: "gemini-3.1-flash-live-preview", provider: "google" }
    assert.strictEqual(Result.getOrThrow(at(gemini)).inputPicoUsd, 1_000_000)
    assert.strictEqual(Result.getOrThrow(at({ ...gemini, media: true })).inputPicoUsd, 3_000_000)
  })

  it.effect("reads the clock", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.parse("2026-08-20"))
      assert.strictEqual((yield* Prices.find({ model: "gpt-5.6-sol" })).outputPicoUsd, 30_000_000)
      yield* TestClock.adjust("1 day")
      assert.strictEqual((yield* Prices.find({ model: "gpt-5.6-sol" })).outputPicoUsd, 20_000_000)
    }),
  )

  it("lets the caller know better", () => {
    const price = Result.getOrThrow(Price.perMillion({ input: "1", output: "2" }))
    const overrides = { "gpt-5": price, "azure:gpt-5": { ...price, version: "our contract" } }
    const version = (query: Prices.Query) => Result.getOrThrow(at({ ...query, overrides })).version
    assert.strictEqual(version({ model: "gpt-5" }), "given by the caller")
    assert.strictEqual(version({ model: "gpt-5", provider: "openai" }), "given by the caller")
    assert.strictEqual(version({ model: "gpt-5", provider: "azure" }), "our contract")
    assert.match(version({ model: "gpt-5.1" })!, /openai:gpt-5\.1$/)
  })

  it("says what is missing and what to do", () => {
    const found = at({ model: "gpt-0", provider: "openai" })
    assert.isTrue(Result.isFailure(found))
    assert.strictEqual(
      Result.isFailure(found) && found.failure.message,
      'no price for the model "gpt-0" of "openai": the table does not know it; check the name, or give its price yourself: Price.perMillion({ input: "1.25", output: "10" })',
    )
    assert.strictEqual(entry({ model: "constructor", provider: "__proto__" }), "the table does not know it")
    assert.strictEqual(entry({ model: "" }), "the table does not know it")
  })

  it("names the release of the table", () => {
    const installed = manifest.devDependencies["@pydantic/genai-prices"]
    assert.match(Prices.version(), new RegExp(`^@pydantic/genai-prices ${installed} \\(\\d{4}-\\d{2}-\\d{2}\\)$`))
  })
})
