/**
 * Prices as whole pico-USD per token, and the cost of a call in nano-USD.
 *
 * One call's cost is the exact sum of tokens times rate, rounded **up once**: rounding each part, or adding floats, would
 * book thousands of small calls wrong.
 */
import * as Result from "effect/Result"
import type { Usage } from "./Provider.ts"

/**
 * What a model costs.
 *
 * **Units**: pico-USD per token; 1 USD per million tokens is 1,000,000.
 *
 * @category prices
 * @since 0.1.0
 */
export interface Price {
  readonly inputPicoUsd: number
  readonly cachedInputPicoUsd: number
  readonly cacheWriteInputPicoUsd: number
  readonly outputPicoUsd: number
}

/**
 * A price from rates in US dollars per million tokens, written as decimals. A rate that is not a whole pico-USD per
 * token is rounded up. Rates left out are those of plain input.
 *
 * **Fails with** a sentence that names the rate, when one is not a decimal number.
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
 * @category prices
 * @since 0.1.0
 */
export const perMillion = (rates: {
  readonly input: string
  readonly output: string
  readonly cachedInput?: string
  readonly cacheWriteInput?: string
}): Result.Result<Price, string> =>
  Result.gen(function* () {
    const inputPicoUsd = yield* toPico("input", rates.input)
    return {
      inputPicoUsd,
      cachedInputPicoUsd: yield* toPico("cachedInput", rates.cachedInput ?? rates.input),
      cacheWriteInputPicoUsd: yield* toPico("cacheWriteInput", rates.cacheWriteInput ?? rates.input),
      outputPicoUsd: yield* toPico("output", rates.output),
    }
  })

const toPico = (name: string, decimal: string): Result.Result<number, string> => {
  const match = /^(\d{1,9})(?:\.(\d{1,12}))?$/.exec(decimal.trim())
  if (match === null) return Result.fail(`${name} is "${decimal}": give US dollars per million tokens, such as "1.25"`)
  const [, whole = "0", fraction = ""] = match
  const scale = 10n ** BigInt(fraction.length)
  return Result.succeed(Number((BigInt(whole + fraction) * 1_000_000n + scale - 1n) / scale))
}

const picoPerNano = 1_000n

/** Pico-USD to nano-USD, rounded up. */
const toNano = (pico: bigint): number => Number((pico + picoPerNano - 1n) / picoPerNano)

/** The most a call can cost: all input at the dearest input rate, all output used. In nano-USD. */
export const worstCase = (
  price: Price,
  tokens: { readonly inputTokens: number; readonly outputTokens: number },
): number => {
  const dearest = Math.max(price.inputPicoUsd, price.cachedInputPicoUsd, price.cacheWriteInputPicoUsd)
  return sum([tokens.inputTokens, dearest, tokens.outputTokens, price.outputPicoUsd])
}

/** What a call cost, from complete usage. In nano-USD. */
export const costOf = (price: Price, usage: Complete): number =>
  sum([
    usage.inputTokens - usage.cachedInputTokens - usage.cacheWriteInputTokens,
    price.inputPicoUsd,
    usage.cachedInputTokens,
    price.cachedInputPicoUsd,
    usage.cacheWriteInputTokens,
    price.cacheWriteInputPicoUsd,
    usage.outputTokens,
    price.outputPicoUsd,
  ])

/** The sum of products of pairs in nano-USD; with floats while they are exact. */
const sum = (pairs: ReadonlyArray<number>): number => {
  let pico = 0
  for (let index = 0; index < pairs.length; index += 2) pico += pairs[index]! * pairs[index + 1]!
  if (pico <= Number.MAX_SAFE_INTEGER) return Math.ceil(pico / 1000)
  let exact = 0n
  for (let index = 0; index < pairs.length; index += 2) exact += BigInt(pairs[index]!) * BigInt(pairs[index + 1]!)
  return toNano(exact)
}

/** Usage that can be booked: present, whole, consistent, and not zero beside a reply. */
export interface Complete {
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly cacheWriteInputTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
}

/**
 * Usage as it can be booked, or `undefined` when it is missing, all zero, negative, not whole, or contradicts itself.
 * Such a call is booked at its hold.
 */
export const plausible = (usage: Usage | undefined): Complete | undefined => {
  if (usage?.inputTokens === undefined || usage.outputTokens === undefined) return undefined
  const complete: Complete = {
    inputTokens: usage.inputTokens,
    cachedInputTokens: usage.cachedInputTokens ?? 0,
    cacheWriteInputTokens: usage.cacheWriteInputTokens ?? 0,
    outputTokens: usage.outputTokens,
    reasoningTokens: usage.reasoningTokens ?? 0,
  }
  const natural =
    isNatural(complete.inputTokens) &&
    isNatural(complete.cachedInputTokens) &&
    isNatural(complete.cacheWriteInputTokens) &&
    isNatural(complete.outputTokens) &&
    isNatural(complete.reasoningTokens)
  const consistent =
    complete.cachedInputTokens + complete.cacheWriteInputTokens <= complete.inputTokens &&
    complete.reasoningTokens <= complete.outputTokens
  return natural && consistent && complete.inputTokens + complete.outputTokens > 0 ? complete : undefined
}

const isNatural = (count: number): boolean => Number.isSafeInteger(count) && count >= 0
