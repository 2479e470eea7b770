/**
 * Prices as whole pico-USD per token, and the cost of a call in nano-USD.
 *
 * A price is flat, or has size tiers (above a size of the input the **whole** request has other rates) and service tiers
 * (what the provider calls flex, priority or batch). Its laws: one call's cost is the exact sum of tokens times rate,
 * rounded **up once** (rounding each part, or adding floats, would book thousands of small calls wrong); and what
 * {@link worstCase} says is never below {@link costOf} of any usage within those tokens, in any tier.
 */
import * as Result from "effect/Result"
import { type Complete, isNatural } from "./Plausible.ts"

export { type Complete, plausible } from "./Plausible.ts"

/**
 * What tokens cost.
 *
 * **Units**: pico-USD per token; 1 USD per million tokens is 1,000,000.
 *
 * @category prices
 * @since 0.1.0
 */
export interface Rates {
  readonly inputPicoUsd: number
  readonly cachedInputPicoUsd: number
  readonly cacheWriteInputPicoUsd: number
  readonly outputPicoUsd: number
}

/**
 * Rates for the whole of a request whose input is **above** a size.
 *
 * @category prices
 * @since 0.1.0
 */
export interface SizeTier extends Rates {
  readonly aboveInputTokens: number
}

/**
 * Rates with the sizes of input above which others take their place.
 *
 * @category prices
 * @since 0.1.0
 */
export interface Tariff extends Rates {
  readonly tiers?: ReadonlyArray<SizeTier> | undefined
}

/**
 * What a model costs. It is plain data: written into a record, it says for ever what a run was priced at.
 *
 * **Units**: pico-USD per token, per request and per call of a hosted tool.
 *
 * @category prices
 * @since 0.1.0
 */
export interface Price extends Tariff {
  /** By the name that the provider reports. The price itself is `"default"`, unless that stands here too. */
  readonly serviceTiers?: Readonly<Record<string, Tariff>> | undefined
  /** For each request, whatever its size. */
  readonly requestPicoUsd?: number | undefined
  /** For each call of a tool that the provider runs itself, by its name, such as `"web_search"`. */
  readonly hostedPicoUsd?: Readonly<Record<string, number>> | undefined
  /** The table the rates were taken from. */
  readonly version?: string | undefined
}

/**
 * Rates as people write them: US dollars per million tokens, as decimals. Those left out are those of plain input.
 *
 * @category prices
 * @since 0.1.0
 */
export interface DecimalRates {
  readonly input: string
  readonly output: string
  readonly cachedInput?: string | undefined
  readonly cacheWriteInput?: string | undefined
}

/**
 * {@link DecimalRates}, and others above some sizes of the input.
 *
 * @category prices
 * @since 0.1.0
 */
export interface DecimalTariff extends DecimalRates {
  readonly tiers?: ReadonlyArray<DecimalRates & { readonly aboveInputTokens: number }> | undefined
}

/**
 * A price as people write it. `perRequest` and `perThousandCalls` (of tools that the provider runs) are US dollars too.
 *
 * @category prices
 * @since 0.1.0
 */
export interface DecimalPrice extends DecimalTariff {
  readonly serviceTiers?: Readonly<Record<string, DecimalTariff>> | undefined
  readonly perRequest?: string | undefined
  readonly perThousandCalls?: Readonly<Record<string, string>> | undefined
}

/**
 * A price from rates in US dollars per million tokens, written as decimals. A rate that is not a whole pico-USD per
 * token is rounded up. Rates left out are those of plain input.
 *
 * **Fails with** a sentence that names the rate, its value and the remedy.
 *
 * **Example** (1.25 USD in, 10 USD out)
 *
 * ```ts
 * import { Price } from "bursar"
 * import * as Result from "effect/Result"
 *
 * Result.getOrThrow(Price.perMillion({ input: "1.25", output: "10" })).outputPicoUsd // => 10000000
 * ```
 *
 * **Example** (Twice the input and half the output more above 272,000 tokens; half of everything when it may take long)
 *
 * ```ts
 * import { Price } from "bursar"
 * import * as Result from "effect/Result"
 *
 * const price = Result.getOrThrow(
 *   Price.perMillion({
 *     input: "4",
 *     output: "20",
 *     tiers: [{ aboveInputTokens: 272_000, input: "8", output: "30" }],
 *     serviceTiers: { flex: { input: "2", output: "10" } },
 *   }),
 * )
 * Price.worstCase(price, { inputTokens: 272_000, outputTokens: 0 }) // => 1088000000
 * Price.worstCase(price, { inputTokens: 272_001, outputTokens: 0 }) // => 2176008000
 * Price.worstCase(price, { inputTokens: 272_000, outputTokens: 0, serviceTier: "flex" }) // => 544000000
 * ```
 *
 * @category prices
 * @since 0.1.0
 */
export const perMillion = (price: DecimalPrice): Result.Result<Price, string> =>
  Result.gen(function* () {
    const { serviceTiers, perRequest, perThousandCalls } = price
    const named = yield* each(serviceTiers, (one, name) => toTariff(one, `serviceTiers.${name}.`))
    const hosted = yield* each(perThousandCalls, (one, name) => toPico(`perThousandCalls.${name}`, one, 1_000n))
    return {
      ...(yield* toTariff(price, "")),
      ...(named === undefined ? {} : { serviceTiers: named }),
      ...(perRequest === undefined ? {} : { requestPicoUsd: yield* toPico("perRequest", perRequest, 1n) }),
      ...(hosted === undefined ? {} : { hostedPicoUsd: hosted }),
    }
  })

const toTariff = (tariff: DecimalTariff, at: string): Result.Result<Tariff, string> =>
  Result.gen(function* () {
    const rates = yield* toRates(tariff, at)
    if (tariff.tiers === undefined || tariff.tiers.length === 0) return rates
    const tiers = yield* Result.all(
      tariff.tiers.map((one, index) => toTier(one, { at: `${at}tiers[${index}].`, all: tariff.tiers ?? [] })),
    )
    return { ...rates, tiers: tiers.toSorted((a, b) => a.aboveInputTokens - b.aboveInputTokens) }
  })

const toTier = (
  tier: DecimalRates & { readonly aboveInputTokens: number },
  { at, all }: { readonly at: string; readonly all: ReadonlyArray<{ readonly aboveInputTokens: number }> },
): Result.Result<SizeTier, string> => {
  const { aboveInputTokens } = tier
  if (!isNatural(aboveInputTokens)) {
    return Result.fail(`${at}aboveInputTokens is ${aboveInputTokens}: give a whole number of tokens, such as 272000`)
  }
  if (all.filter((one) => one.aboveInputTokens === aboveInputTokens).length > 1) {
    return Result.fail(`${at}aboveInputTokens is ${aboveInputTokens} twice: give one tier for each size`)
  }
  return Result.map(toRates(tier, at), (rates) => ({ ...rates, aboveInputTokens }))
}

const toRates = (rates: DecimalRates, at: string): Result.Result<Rates, string> =>
  Result.gen(function* () {
    return {
      inputPicoUsd: yield* toPico(`${at}input`, rates.input, 1_000_000n),
      cachedInputPicoUsd: yield* toPico(`${at}cachedInput`, rates.cachedInput ?? rates.input, 1_000_000n),
      cacheWriteInputPicoUsd: yield* toPico(`${at}cacheWriteInput`, rates.cacheWriteInput ?? rates.input, 1_000_000n),
      outputPicoUsd: yield* toPico(`${at}output`, rates.output, 1_000_000n),
    }
  })

const each = <A, B>(
  record: Readonly<Record<string, A>> | undefined,
  read: (value: A, name: string) => Result.Result<B, string>,
): Result.Result<Readonly<Record<string, B>> | undefined, string> =>
  record === undefined
    ? Result.succeed(undefined)
    : Result.map(
        Result.all(
          Object.entries(record).map(([name, value]) => Result.map(read(value, name), (one) => [name, one] as const)),
        ),
        (entries) => Object.fromEntries(entries),
      )

const picoPerUsd = 1_000_000_000_000n

/** US dollars for `units` of something, as pico-USD for one of them. */
const toPico = (name: string, decimal: string, units: bigint): Result.Result<number, string> => {
  const match = /^(\d{1,9})(?:\.(\d{1,12}))?$/.exec(decimal.trim())
  if (match === null) return Result.fail(`${name} is "${decimal}": give US dollars as a decimal, such as "1.25"`)
  const [, whole = "0", fraction = ""] = match
  const scale = 10n ** BigInt(fraction.length) * units
  const pico = (BigInt(whole + fraction) * picoPerUsd + scale - 1n) / scale
  return pico > BigInt(Number.MAX_SAFE_INTEGER)
    ? Result.fail(`${name} is "${decimal}": give less than that; a rate in pico-USD has to be exact`)
    : Result.succeed(Number(pico))
}

/**
 * What a call holds: tokens, and what else it may cost.
 *
 * **Units**: tokens; calls of hosted tools by name. Without a `serviceTier` it may be served in any that is priced.
 *
 * @category prices
 * @since 0.1.0
 */
export interface Held {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly serviceTier?: string | undefined
  readonly hostedCalls?: Readonly<Record<string, number>> | undefined
}

/**
 * What a call was beside its tokens: the service tier that the provider names, and the calls of hosted tools.
 *
 * @category prices
 * @since 0.1.0
 */
export interface Served {
  readonly serviceTier?: string | undefined
  readonly hostedCalls?: Readonly<Record<string, number>> | undefined
}

/**
 * The most a call can cost, in nano-USD: all input at the dearest input rate (a cached price is never assumed), all
 * output used, in the dearest size tier that the input can reach and the dearest service tier unless one is named.
 *
 * **Dies** on a hosted tool without a rate; see {@link unpricedTools}.
 *
 * @category prices
 * @since 0.1.0
 */
export const worstCase = (price: Price, held: Held): number => {
  const beside = surcharge(price, held.hostedCalls)
  if (price.serviceTiers === undefined) return worstIn(price, held, beside)
  const one = tariffOf(price, held.serviceTier)
  if (one !== undefined) return worstIn(one, held, beside)
  return tariffs(price).reduce((most, tariff) => Math.max(most, worstIn(tariff, held, beside)), 0)
}

/** With some input at its dearest; below a tier there is at most so much of it as the tier lets through. */
const worstIn = (tariff: Tariff, held: Held, beside: Pairs): number => {
  const { inputTokens, outputTokens } = held
  const { tiers } = tariff
  if (tiers === undefined) {
    return sum([inputTokens, dearestInput(tariff), outputTokens, tariff.outputPicoUsd], beside)
  }
  let most = 0
  for (let index = -1; index < tiers.length; index++) {
    const rates = tiers[index] ?? tariff
    const start = tiers[index]?.aboveInputTokens ?? -1
    if (start >= inputTokens) continue
    const input = Math.min(inputTokens, nextSize(tiers, start))
    most = Math.max(most, sum([input, dearestInput(rates), outputTokens, rates.outputPicoUsd], beside))
  }
  return most
}

const nextSize = (tiers: ReadonlyArray<SizeTier>, start: number): number =>
  tiers.reduce((next, tier) => (tier.aboveInputTokens > start ? Math.min(next, tier.aboveInputTokens) : next), Infinity)

const dearestInput = (rates: Rates): number =>
  Math.max(rates.inputPicoUsd, rates.cachedInputPicoUsd, rates.cacheWriteInputPicoUsd)

/**
 * What a call cost, from complete usage, in nano-USD, in the service tier it was served in: the dearest one that is
 * priced where the provider names none, or one that has no price.
 *
 * **Dies** on a hosted tool without a rate; see {@link unpricedTools}.
 *
 * @category prices
 * @since 0.1.0
 */
export const costOf = (price: Price, usage: Complete, served: Served = {}): number => {
  const beside = surcharge(price, served.hostedCalls)
  if (price.serviceTiers === undefined) return costIn(price, usage, beside)
  const one = tariffOf(price, served.serviceTier)
  if (one !== undefined) return costIn(one, usage, beside)
  return tariffs(price).reduce((most, tariff) => Math.max(most, costIn(tariff, usage, beside)), 0)
}

const costIn = (tariff: Tariff, usage: Complete, beside: Pairs): number => {
  const rates = tariff.tiers === undefined ? tariff : ratesFor(tariff, tariff.tiers, usage.inputTokens)
  const tokens = [
    usage.inputTokens - usage.cachedInputTokens - usage.cacheWriteInputTokens,
    rates.inputPicoUsd,
    usage.cachedInputTokens,
    rates.cachedInputPicoUsd,
    usage.cacheWriteInputTokens,
    rates.cacheWriteInputPicoUsd,
    usage.outputTokens,
    rates.outputPicoUsd,
  ]
  return sum(tokens, beside)
}

/** Of the tiers that the input is above, the one that starts highest. */
const ratesFor = (tariff: Rates, tiers: ReadonlyArray<SizeTier>, inputTokens: number): Rates => {
  let [rates, start] = [tariff, -1]
  for (const tier of tiers) {
    if (tier.aboveInputTokens < inputTokens && tier.aboveInputTokens > start) {
      ;[rates, start] = [tier, tier.aboveInputTokens]
    }
  }
  return rates
}

const tariffs = (price: Price): ReadonlyArray<Tariff> => {
  const named = price.serviceTiers ?? {}
  return Object.hasOwn(named, "default") ? Object.values(named) : [price, ...Object.values(named)]
}

const tariffOf = (price: Price, serviceTier: string | undefined): Tariff | undefined => {
  if (serviceTier === undefined) return undefined
  if (price.serviceTiers !== undefined && Object.hasOwn(price.serviceTiers, serviceTier)) {
    return price.serviceTiers[serviceTier]
  }
  return serviceTier === "default" ? price : undefined
}

/** Pairs of numbers to multiply and add up. */
type Pairs = ReadonlyArray<number>

const nothing: Pairs = []

/** What is paid beside tokens. */
const surcharge = (price: Price, hostedCalls: Readonly<Record<string, number>> | undefined): Pairs => {
  if (price.requestPicoUsd === undefined && hostedCalls === undefined) return nothing
  const calls = hostedCalls ?? {}
  const [unpriced] = unpricedTools(price, calls)
  if (unpriced !== undefined) throw new Error(`calls of ${unpriced} have no price and were not refused`)
  const hosted = Object.entries(calls).flatMap(([tool, count]) => [count, price.hostedPicoUsd?.[tool] ?? 0])
  return [1, price.requestPicoUsd ?? 0, ...hosted]
}

/**
 * The hosted tools among these calls that have no rate. Under a cap on money nothing may be sent that could call one.
 *
 * @category prices
 * @since 0.1.0
 */
export const unpricedTools = (price: Price, hostedCalls: Readonly<Record<string, number>>): ReadonlyArray<string> =>
  Object.entries(hostedCalls).flatMap(([tool, calls]) =>
    calls > 0 && !Object.hasOwn(price.hostedPicoUsd ?? {}, tool) ? [tool] : [],
  )

/** The sum of products, in pico-USD, as nano-USD rounded up; with floats while they are exact. */
const sum = (tokens: Pairs, beside: Pairs): number => {
  const pico = floatSum(tokens) + floatSum(beside)
  if (pico <= Number.MAX_SAFE_INTEGER) return Math.ceil(pico / 1000)
  return Number((exactSum(tokens) + exactSum(beside) + 999n) / 1_000n)
}

const floatSum = (pairs: Pairs): number => {
  let pico = 0
  for (let index = 0; index < pairs.length; index += 2) pico += pairs[index]! * pairs[index + 1]!
  return pico
}

const exactSum = (pairs: Pairs): bigint => {
  let pico = 0n
  for (let index = 0; index < pairs.length; index += 2) pico += BigInt(pairs[index]!) * BigInt(pairs[index + 1]!)
  return pico
}
