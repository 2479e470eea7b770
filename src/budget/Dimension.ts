/**
 * The dimensions a budget is counted in, and exact arithmetic over all of them at once.
 *
 * Every amount is an integer from 0 to 2^53 - 1. A **grant** may leave a dimension out, which means *uncapped*; 0 is a
 * cap of zero. {@link Amounts} always has every dimension, and there an absent use is simply 0. Nothing in here knows
 * about accounts, reserves or time.
 */
import * as Result from "effect/Result"
import type { InvalidAmount } from "./Refusal.ts"

/**
 * The counters of a budget, in the order in which a stop for budget names the first short one.
 *
 * | dimension | unit |
 * | --- | --- |
 * | `steps` | decision attempts: dispatched model requests, or calls of a function policy |
 * | `ticks` | passes of the host: a dispatch, or a wait between attempts |
 * | `inputTokens` | tokens of input, cached and cache-written ones inside |
 * | `outputTokens` | tokens of output, reasoning inside |
 * | `money` | nano-USD: 1 USD = 1,000,000,000 |
 * | `toolCalls` | started attempts of a tool; starting a child is one call of the parent |
 *
 * @category dimensions
 * @since 0.1.0
 */
export const dimensions = ["steps", "ticks", "inputTokens", "outputTokens", "money", "toolCalls"] as const

/**
 * One counter of a budget.
 *
 * @category dimensions
 * @since 0.1.0
 */
export type Dimension = (typeof dimensions)[number]

/**
 * An amount in every dimension.
 *
 * **Units**: see {@link dimensions}.
 *
 * @category amounts
 * @since 0.1.0
 */
export type Amounts = { readonly [D in Dimension]: number }

/**
 * Caps: an absent dimension is uncapped, 0 is a cap of zero.
 *
 * @category amounts
 * @since 0.1.0
 */
export type Grant = { readonly [D in Dimension]?: number }

/**
 * Which dimensions have a cap; the rest is counted but never refused.
 *
 * @category amounts
 * @since 0.1.0
 */
export type Capped = { readonly [D in Dimension]: boolean }

/** The largest amount: sums beyond it would no longer be exact. */
export const maximum = Number.MAX_SAFE_INTEGER

const build = <A>(f: (dimension: Dimension) => A): { readonly [D in Dimension]: A } => ({
  steps: f("steps"),
  ticks: f("ticks"),
  inputTokens: f("inputTokens"),
  outputTokens: f("outputTokens"),
  money: f("money"),
  toolCalls: f("toolCalls"),
})

/**
 * Nothing in any dimension.
 *
 * @category amounts
 * @since 0.1.0
 */
export const zero: Amounts = build(() => 0)

/**
 * Fills the dimensions a partial record leaves out with 0.
 *
 * **Example** (One step and two calls)
 *
 * ```ts
 * import { Budget } from "bursar"
 *
 * Budget.amounts({ steps: 1, toolCalls: 2 }).money // => 0
 * ```
 *
 * @category amounts
 * @since 0.1.0
 */
export const amounts = (partial: Grant): Amounts => ({
  // `+ 0` reads -0 as 0.
  steps: (partial.steps ?? 0) + 0,
  ticks: (partial.ticks ?? 0) + 0,
  inputTokens: (partial.inputTokens ?? 0) + 0,
  outputTokens: (partial.outputTokens ?? 0) + 0,
  money: (partial.money ?? 0) + 0,
  toolCalls: (partial.toolCalls ?? 0) + 0,
})

/** Applies `f` to each dimension. */
export const map = (f: (dimension: Dimension) => number): Amounts => build(f)

export const capped = (grant: Grant): Capped => ({
  steps: grant.steps !== undefined,
  ticks: grant.ticks !== undefined,
  inputTokens: grant.inputTokens !== undefined,
  outputTokens: grant.outputTokens !== undefined,
  money: grant.money !== undefined,
  toolCalls: grant.toolCalls !== undefined,
})

export const add = (a: Amounts, b: Amounts): Amounts => ({
  steps: a.steps + b.steps,
  ticks: a.ticks + b.ticks,
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
  money: a.money + b.money,
  toolCalls: a.toolCalls + b.toolCalls,
})

export const subtract = (a: Amounts, b: Amounts): Amounts => ({
  steps: a.steps - b.steps,
  ticks: a.ticks - b.ticks,
  inputTokens: a.inputTokens - b.inputTokens,
  outputTokens: a.outputTokens - b.outputTokens,
  money: a.money - b.money,
  toolCalls: a.toolCalls - b.toolCalls,
})

export const min = (a: Amounts, b: Amounts): Amounts => ({
  steps: Math.min(a.steps, b.steps),
  ticks: Math.min(a.ticks, b.ticks),
  inputTokens: Math.min(a.inputTokens, b.inputTokens),
  outputTokens: Math.min(a.outputTokens, b.outputTokens),
  money: Math.min(a.money, b.money),
  toolCalls: Math.min(a.toolCalls, b.toolCalls),
})

export const isZero = (a: Amounts): boolean => equals(a, zero)

export const equals = (a: Amounts, b: Amounts): boolean =>
  a.steps === b.steps &&
  a.ticks === b.ticks &&
  a.inputTokens === b.inputTokens &&
  a.outputTokens === b.outputTokens &&
  a.money === b.money &&
  a.toolCalls === b.toolCalls

/** Whether `a` is at most `b` in every dimension. */
export const fits = (a: Amounts, b: Amounts): boolean =>
  a.steps <= b.steps &&
  a.ticks <= b.ticks &&
  a.inputTokens <= b.inputTokens &&
  a.outputTokens <= b.outputTokens &&
  a.money <= b.money &&
  a.toolCalls <= b.toolCalls

/** Keeps the capped dimensions of `a` and sets the others to 0. */
export const onlyCapped = (a: Amounts, caps: Capped): Amounts => ({
  steps: caps.steps ? a.steps : 0,
  ticks: caps.ticks ? a.ticks : 0,
  inputTokens: caps.inputTokens ? a.inputTokens : 0,
  outputTokens: caps.outputTokens ? a.outputTokens : 0,
  money: caps.money ? a.money : 0,
  toolCalls: caps.toolCalls ? a.toolCalls : 0,
})

const nothing: Grant = Object.freeze({})

/** Only the dimensions that are not 0: what a journal line or a message shows. */
export const nonZero = (a: Amounts): Grant => {
  if (a === zero) return nothing
  const { steps, ticks, inputTokens, outputTokens, money, toolCalls } = a
  // A journal is made of these: what a call of a model and one of a tool come to is written as compactly as can be.
  if (toolCalls === 0 && steps !== 0 && ticks !== 0 && inputTokens !== 0 && outputTokens !== 0 && money !== 0) {
    return { steps, ticks, inputTokens, outputTokens, money }
  }
  if (toolCalls !== 0 && steps === 0 && ticks === 0 && inputTokens === 0 && outputTokens === 0 && money === 0) {
    return { toolCalls }
  }
  const shown: { [D in Dimension]?: number } = {}
  if (a.steps !== 0) shown.steps = a.steps
  if (a.ticks !== 0) shown.ticks = a.ticks
  if (a.inputTokens !== 0) shown.inputTokens = a.inputTokens
  if (a.outputTokens !== 0) shown.outputTokens = a.outputTokens
  if (a.money !== 0) shown.money = a.money
  if (a.toolCalls !== 0) shown.toolCalls = a.toolCalls
  return shown
}

/** Adds safe integers; a sum that would not be exact is a broken law, not a refusal. */
export const addChecked = (a: Amounts, b: Amounts): Amounts => {
  const sum = add(a, b)
  if (fits(sum, most)) return sum
  for (const dimension of dimensions) {
    if (sum[dimension] > maximum)
      throw new RangeError(`${dimension}: ${a[dimension]} + ${b[dimension]} exceeds 2^53 - 1`)
  }
  return sum
}

const most: Amounts = build(() => maximum)

/**
 * Checks amounts that come from outside: integers from 0 to 2^53 - 1, named after a known dimension. -0 is read as 0.
 *
 * **Fails with** `InvalidAmount`, which names the field, the value and the remedy.
 *
 * @category validation
 * @since 0.1.0
 */
export const validate = (input: Grant, field: string): Result.Result<Grant, InvalidAmount> => {
  const wrong = wrongIn(input, field)
  if (wrong !== undefined) return Result.fail(wrong)
  return Result.succeed(copied(input))
}

/** The known dimensions of a grant, those left out left out. */
export const copied = (input: Grant): Grant => {
  const checked: { [D in Dimension]?: number } = {}
  if (input.steps !== undefined) checked.steps = input.steps + 0
  if (input.ticks !== undefined) checked.ticks = input.ticks + 0
  if (input.inputTokens !== undefined) checked.inputTokens = input.inputTokens + 0
  if (input.outputTokens !== undefined) checked.outputTokens = input.outputTokens + 0
  if (input.money !== undefined) checked.money = input.money + 0
  if (input.toolCalls !== undefined) checked.toolCalls = input.toolCalls + 0
  return checked
}

/** What is wrong with amounts from outside, if anything is. */
export const wrongIn = (input: Grant, field: string): InvalidAmount | undefined => {
  if (!isRecord(input)) return invalidAmount(field, input, `give amounts by dimension: ${dimensions.join(", ")}`)
  for (const key in input) {
    const value: unknown = input[key as Dimension]
    if (!known.has(key)) return invalidAmount(`${field}.${key}`, value, `use one of ${dimensions.join(", ")}`)
    if (value !== undefined && !isNatural(value)) {
      return invalidAmount(`${field}.${key}`, value, `give a whole number from 0 to ${maximum}`)
    }
  }
  return undefined
}

const known: ReadonlySet<string> = new Set(dimensions)

const isRecord = (input: unknown): boolean => typeof input === "object" && input !== null && !Array.isArray(input)

/** True for a whole number from 0 to 2^53 - 1. */
export const isNatural = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

/** The refusal of a value from outside. */
export const invalidAmount = (field: string, value: unknown, remedy: string): InvalidAmount => ({
  _tag: "InvalidAmount",
  field,
  value: show(value),
  remedy,
})

const show = (value: unknown): string => {
  if (typeof value === "string") return JSON.stringify(value)
  return typeof value === "object" && value !== null ? Object.prototype.toString.call(value) : String(value)
}
