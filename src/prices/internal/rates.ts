/**
 * The rates of the table as whole pico-USD. Nothing here computes a total: the table's own totals are floats, and count
 * what is missing as 0.
 *
 * Its laws: a rate is the decimal that stands in the table, rounded up where it is no whole pico-USD; where several
 * rates may apply to a token, the dearest does; and a model whose bill cannot be told from its tokens has no price.
 */
import type { ConditionalPrice, ModelInfo, ModelPrice } from "@pydantic/genai-prices"
import * as Result from "effect/Result"
import type { Price, Rates, SizeTier } from "../../model/Price.ts"

/** What a caller does that changes the rates. */
export interface Use {
  /** Writes to the cache for an hour, which some providers charge more for than for the usual minutes. */
  readonly longCache?: boolean | undefined
  /** Sends sound or film, whose tokens cost more. */
  readonly media?: boolean | undefined
}

const picoPerUsd = 12

/** Dollars for `units` of something (a power of ten) as pico-USD for one of them, and whether that was whole. */
export const toPico = (usd: number, units: number): { readonly pico: number; readonly whole: boolean } => {
  const [decimal = "0", exponent = "0"] = String(usd).split("e")
  const [integer = "0", fraction = ""] = decimal.split(".")
  const digits = BigInt(integer + fraction)
  const shift = picoPerUsd + Number(exponent) - fraction.length - (String(units).length - 1)
  if (shift >= 0) return { pico: Number(digits * 10n ** BigInt(shift)), whole: true }
  const divisor = 10n ** BigInt(-shift)
  return { pico: Number((digits + divisor - 1n) / divisor), whole: digits % divisor === 0n }
}

const perMillion = 1_000_000
const perThousand = 1_000

const inputs = ["input_mtok", "input_image_mtok"]
const mediaInputs = ["input_audio_mtok", "input_video_mtok"]
const cached = ["cache_read_mtok", "cache_image_read_mtok"]
const mediaCached = ["cache_audio_read_mtok"]
const written = ["cache_write_mtok"]
const writtenForLong = ["cache_write_1h_mtok"]
/** A model that can draw or speak may do so unasked. */
const outputs = ["output_mtok", "output_reasoning_mtok", "output_image_mtok", "output_audio_mtok", "output_video_mtok"]

/** Names of the table, and those that providers use on the wire. */
const hosted: Readonly<Record<string, string>> = {
  web_searches_kcount: "web_search",
  storage_searches_kcount: "file_search",
}

const perRequest = "requests_kcount"

/** Charged for what no request of Bursar contains: lengths of sound, pages of a document. */
const elsewhere = [
  "audio_hours",
  "input_audio_hours",
  "output_audio_hours",
  "input_document_kpages",
  "input_annotated_document_kpages",
]

const understood: ReadonlySet<string> = new Set([
  ...[inputs, mediaInputs, cached, mediaCached, written, writtenForLong, outputs, elsewhere].flat(),
  ...Object.keys(hosted),
  perRequest,
])

/** The prices that may hold at a time: one, but for those that depend on the time of day, which all may. */
export const inForce = (prices: ModelInfo["prices"], at: Date): ReadonlyArray<ModelPrice> => {
  if (!Array.isArray(prices)) return [prices]
  const found: Array<ModelPrice> = []
  // The table lets the last one win whose condition is met.
  for (const one of prices.toReversed()) {
    if (isTooEarly(one, at)) continue
    found.push(one.prices)
    if (one.constraint?.type !== "time_of_date") return found
  }
  return found.length === 0 && prices[0] !== undefined ? [prices[0].prices] : found
}

const isTooEarly = ({ constraint }: ConditionalPrice, at: Date): boolean =>
  constraint?.type === "start_date" && at < new Date(constraint.start_date)

/** The price of a model, or the reason why there is none. */
export const toPrice = (all: ReadonlyArray<ModelPrice>, use: Use): Result.Result<Price, string> => {
  for (const prices of all) {
    const stranger = Object.keys(prices).find((key) => prices[key] !== undefined && !understood.has(key))
    if (stranger !== undefined) return Result.fail(`it charges for ${stranger}, which is not known beforehand`)
    // Left out is not free: for the table's own arithmetic it would be.
    for (const needed of ["input_mtok", "output_mtok"]) {
      if (prices[needed] === undefined) return Result.fail(`the table has no ${needed} for it`)
    }
  }
  const sizes = all.flatMap((prices) => Object.values(prices).flatMap(startsOf))
  const tiers = [...new Set(sizes)]
    .toSorted((a, b) => a - b)
    .map((start): SizeTier => ({ aboveInputTokens: start, ...ratesAbove(all, { start, use }) }))
  const dearest = (key: string): number =>
    Math.max(0, ...all.map((prices) => pico(prices, { key, start: -1, units: perThousand }) ?? 0))
  const tools = Object.keys(hosted).filter((key) => all.some((prices) => prices[key] !== undefined))
  return Result.succeed({
    ...ratesAbove(all, { start: -1, use }),
    ...(tiers.length === 0 ? {} : { tiers }),
    ...(dearest(perRequest) === 0 ? {} : { requestPicoUsd: dearest(perRequest) }),
    ...(tools.length === 0
      ? {}
      : { hostedPicoUsd: Object.fromEntries(tools.map((key) => [hosted[key]!, dearest(key)])) }),
  })
}

const startsOf = (value: ModelPrice[string]): ReadonlyArray<number> =>
  typeof value === "object" ? value.tiers.map((tier) => tier.start) : []

interface Where {
  readonly start: number
  readonly use: Use
}

/** What holds for an input just above a size, at the dearest of all these prices. */
const ratesAbove = (all: ReadonlyArray<ModelPrice>, where: Where): Rates => {
  const each = all.map((prices) => ratesOf(prices, where))
  const dearest = (rate: keyof Rates): number => Math.max(...each.map((rates) => rates[rate]))
  return {
    inputPicoUsd: dearest("inputPicoUsd"),
    cachedInputPicoUsd: dearest("cachedInputPicoUsd"),
    cacheWriteInputPicoUsd: dearest("cacheWriteInputPicoUsd"),
    outputPicoUsd: dearest("outputPicoUsd"),
  }
}

/** What is read from or written to the cache costs plain input where the table says nothing else. */
const ratesOf = (prices: ModelPrice, { start, use }: Where): Rates => {
  const dearest = (keys: ReadonlyArray<string>): number | undefined => {
    const found = keys.flatMap((key) => pico(prices, { key, start, units: perMillion }) ?? [])
    return found.length === 0 ? undefined : Math.max(...found)
  }
  const media = use.media === true
  const inputPicoUsd = dearest([...inputs, ...(media ? mediaInputs : [])]) ?? 0
  return {
    inputPicoUsd,
    cachedInputPicoUsd: dearest([...cached, ...(media ? mediaCached : [])]) ?? inputPicoUsd,
    cacheWriteInputPicoUsd: dearest([...written, ...(use.longCache === true ? writtenForLong : [])]) ?? inputPicoUsd,
    outputPicoUsd: dearest(outputs) ?? 0,
  }
}

const pico = (
  prices: ModelPrice,
  { key, start, units }: { readonly key: string; readonly start: number; readonly units: number },
): number | undefined => {
  const value = prices[key]
  if (value === undefined) return undefined
  if (typeof value === "number") return toPico(value, units).pico
  const reached = value.tiers.filter((tier) => tier.start <= start).toSorted((a, b) => b.start - a.start)
  return toPico(reached[0]?.price ?? value.base, units).pico
}
