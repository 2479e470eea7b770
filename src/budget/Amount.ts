/**
 * Amounts as people write them: "0.50 USD", "200k tokens", "3 minutes". Decimal strings are read digit by digit, so no
 * float comes near money.
 */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type Dimension, type Grant, invalidAmount, maximum, validate } from "./Dimension.ts"
import type { InvalidAmount } from "./Refusal.ts"

/** Nano-USD in one USD. */
export const nanoUsdPerUsd = 1_000_000_000

/**
 * A budget as a user writes it. A field left out is uncapped; 0 is a cap of zero.
 *
 * **Units**: `money` is a decimal number of US dollars with its unit, such as `"0.50 USD"`; counters are whole numbers,
 * or text such as `"200k"`; `wallClock` is an Effect duration or text such as `"3 minutes"`.
 *
 * @category amounts
 * @since 0.1.0
 */
export interface Input {
  readonly steps?: number | string | undefined
  readonly ticks?: number | string | undefined
  readonly inputTokens?: number | string | undefined
  readonly outputTokens?: number | string | undefined
  readonly toolCalls?: number | string | undefined
  readonly money?: string | undefined
  readonly wallClock?: Duration.Input | string | undefined
}

const Count = Schema.optionalKey(Schema.Union([Schema.Finite, Schema.String]))

/**
 * A budget as it stands in a configuration file or a request: {@link Input}, checked. A wrong amount is named with its
 * field, its value and the remedy.
 *
 * **Example** (Reading a budget from JSON)
 *
 * ```ts
 * import { Budget } from "bursar"
 * import * as Result from "effect/Result"
 * import * as Schema from "effect/Schema"
 *
 * const read = Schema.decodeUnknownResult(Budget.FromJson)
 * Result.isSuccess(read({ money: "0.50 USD", inputTokens: "200k" })) // => true
 * const wrong = read({ money: "0.50 EUR" })
 * Result.isFailure(wrong) && wrong.failure.message // => 'money is "0.50 EUR": give US dollars such as "0.50 USD", at most 9 decimals'
 * ```
 *
 * @category amounts
 * @since 0.1.0
 */
export const FromJson = Schema.Struct({
  steps: Count,
  ticks: Count,
  inputTokens: Count,
  outputTokens: Count,
  toolCalls: Count,
  money: Schema.optionalKey(Schema.String),
  wallClock: Schema.optionalKey(Schema.String),
}).check(
  Schema.makeFilter((input) => {
    const parsed = parse(input)
    if (Result.isSuccess(parsed)) return true
    const { field, value, remedy } = parsed.failure
    return `${field} is ${value}: ${remedy}`
  }),
)

/** A budget in the ledger's units. */
export interface Parsed {
  readonly grant: Grant
  readonly wallClockMillis: number | undefined
}

/**
 * Reads a budget as people write it.
 *
 * **Fails with** `InvalidAmount`, naming the field, the value and the remedy.
 *
 * **Example** (Half a dollar and three minutes)
 *
 * ```ts
 * import { Budget } from "bursar"
 * import * as Result from "effect/Result"
 *
 * const parsed = Result.getOrThrow(Budget.parse({ money: "0.50 USD", inputTokens: "200k", wallClock: "3 minutes" }))
 * parsed.grant // => { inputTokens: 200000, money: 500000000 }
 * parsed.wallClockMillis // => 180000
 * ```
 *
 * @category amounts
 * @since 0.1.0
 */
export const parse = (input: Input): Result.Result<Parsed, InvalidAmount> => {
  const stranger = Object.keys(input).find((field) => !fields.has(field))
  if (stranger !== undefined) {
    return invalid(stranger, input[stranger as keyof Input], `use one of ${[...fields].join(", ")}`)
  }
  const grant: { [D in Dimension]?: number } = {}
  for (const field of counters) {
    const given = input[field]
    if (given === undefined) continue
    const count = typeof given === "string" ? readCount(given) : given
    if (count === undefined) return invalid(field, given, `give a whole number such as "60" or "200k"`)
    grant[field] = count
  }
  if (input.money !== undefined) {
    const money = readMoney(input.money)
    if (money === undefined)
      return invalid("money", input.money, `give US dollars such as "0.50 USD", at most 9 decimals`)
    grant.money = money
  }
  const valid = validate(grant, "budget")
  if (Result.isFailure(valid))
    return Result.fail({ ...valid.failure, field: valid.failure.field.slice("budget.".length) })
  if (input.wallClock === undefined) return Result.succeed({ grant: valid.success, wallClockMillis: undefined })
  const wallClockMillis = readMillis(input.wallClock)
  return wallClockMillis === undefined
    ? invalid("wallClock", input.wallClock, `give a time above 0 such as "90 seconds" or "3 minutes"`)
    : Result.succeed({ grant: valid.success, wallClockMillis })
}

const counters = ["steps", "ticks", "inputTokens", "outputTokens", "toolCalls"] as const

/** A misspelt field would be a cap that nobody keeps. */
const fields: ReadonlySet<string> = new Set([...counters, "money", "wallClock"])

const invalid = (field: string, value: unknown, remedy: string): Result.Result<never, InvalidAmount> =>
  Result.fail(invalidAmount(field, value, remedy))

const multipliers: Readonly<Record<string, number>> = { "": 1, k: 1_000, m: 1_000_000 }

/** "60", "200k", "1.5M tokens": a decimal times its multiplier, if that is whole. */
const readCount = (text: string): number | undefined => {
  const match = /^(\d+(?:\.\d+)?)\s*([km]?)(?:\s+(?:tokens?|steps?|calls?|ticks?))?$/i.exec(text.trim())
  return match === null ? undefined : scale(match[1]!, multipliers[match[2]!.toLowerCase()]!)
}

/** "0.50 USD" or "$0.50" in nano-USD. The unit may be left out only where it makes no difference: for 0. */
const readMoney = (text: unknown): number | undefined => {
  if (typeof text !== "string") return undefined
  const match = /^(\$?)\s*(\d+(?:\.\d+)?)\s*(USD)?$/i.exec(text.trim())
  if (match === null) return undefined
  const amount = scale(match[2]!, nanoUsdPerUsd)
  const hasUnit = match[1] !== "" || match[3] !== undefined
  return hasUnit || amount === 0 ? amount : undefined
}

/** A decimal times a power of ten, exactly; `undefined` when it is not whole or too large. */
const scale = (decimal: string, by: number): number | undefined => {
  const [whole = "0", fraction = ""] = decimal.split(".")
  const scaled = BigInt(whole + fraction) * BigInt(by)
  const divisor = 10n ** BigInt(fraction.length)
  if (scaled % divisor !== 0n) return undefined
  const amount = scaled / divisor
  return amount > BigInt(maximum) ? undefined : Number(amount)
}

const readMillis = (input: Duration.Input | string): number | undefined => {
  const text = typeof input === "string" ? input.trim().replace(/^(\d+(?:\.\d+)?)(ms|s|m|h)$/i, expandUnit) : input
  const duration = Option.getOrUndefined(Duration.fromInput(text as Duration.Input))
  if (duration === undefined) return undefined
  const millis = Math.floor(Duration.toMillis(duration))
  return Number.isSafeInteger(millis) && millis > 0 ? millis : undefined
}

const units: Readonly<Record<string, string>> = { ms: "millis", s: "seconds", m: "minutes", h: "hours" }

const expandUnit = (_: string, amount: string, unit: string): string => `${amount} ${units[unit.toLowerCase()]}`

/**
 * Nano-USD as people read it: at least two decimals, no more than needed.
 *
 * **Example** (A fraction of a cent)
 *
 * ```ts
 * import { Budget } from "bursar"
 *
 * Budget.formatMoney(1_234_000) // => "0.001234 USD"
 * Budget.formatMoney(500_000_000) // => "0.50 USD"
 * ```
 *
 * @category amounts
 * @since 0.1.0
 */
export const formatMoney = (nanoUsd: number): string => {
  const whole = Math.floor(nanoUsd / nanoUsdPerUsd)
  const fraction = String(nanoUsd % nanoUsdPerUsd)
    .padStart(9, "0")
    .replace(/0+$/, "")
    .padEnd(2, "0")
  return `${whole}.${fraction} USD`
}
