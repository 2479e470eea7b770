/**
 * The four parts of a grant, and how a grant is split into them.
 *
 * Seniority: explore < retry < verify < output. **Money flows only upward**: a hold that is short in its own reserve
 * may take the missing part from a junior one, never from a senior one, so what is kept for the answer cannot be
 * spent on looking further.
 */
import * as Result from "effect/Result"
import {
  add,
  amounts,
  type Amounts,
  type Capped,
  capped,
  dimensions,
  type Dimension,
  type Grant,
  invalidAmount,
  isNatural,
  map,
  validate,
  zero,
} from "./Dimension.ts"
import type { Refusal } from "./Refusal.ts"

/**
 * The reserves of an account, junior first: `explore` for ordinary work and children, `retry` for attempts after the
 * first, `verify` for checking an answer, `output` for the wrap-up.
 *
 * @category reserves
 * @since 0.1.0
 */
export const reserves = ["explore", "retry", "verify", "output"] as const

/** @since 0.1.0 */
export type Reserve = (typeof reserves)[number]

/** One value for each reserve. */
export type PerReserve<A> = { readonly [R in Reserve]: A }

/**
 * Shares of a grant in whole percent; the rest is explore.
 *
 * @category reserves
 * @since 0.1.0
 */
export interface Shares {
  readonly output: number
  readonly verify: number
  readonly retry: number
}

/**
 * The shares used unless others are given: output 15 %, verify 25 %, retry 10 %, explore the rest.
 *
 * @category reserves
 * @since 0.1.0
 */
export const defaultShares: Shares = { output: 15, verify: 25, retry: 10 }

/**
 * How a grant is to be split: by shares, minimum first, or into explicit amounts. Without a verifier the verify share
 * joins explore.
 *
 * @category reserves
 * @since 0.1.0
 */
export type Plan = (
  | {
      readonly _tag: "Shares"
      readonly shares: Shares
      readonly verifier: boolean
      /** What one smallest answer needs: always in output first. */
      readonly answer: Grant
      /** What one check needs: in verify next. */
      readonly check: Grant
    }
  | {
      readonly _tag: "Explicit"
      readonly output?: Grant | undefined
      readonly verify?: Grant | undefined
      readonly retry?: Grant | undefined
    }
) & {
  /**
   * The most that exploring itself may use of explore, in whole percent for each dimension; the rest waits there for
   * retry, verify and output to borrow. Without it exploring may use all.
   */
  readonly exploreAtMost?: Grant | undefined
}

/** Everything in explore: for a scope around a plain Effect, which has no answer to keep funds for. */
export const undivided: Plan = { _tag: "Explicit" }

/**
 * The default plan of an agent: default shares, and one step and one tick kept for the answer. `check` is what one check
 * of an answer needs; without any the verify share joins explore.
 *
 * @category reserves
 * @since 0.1.0
 */
export const forAgent = (options: {
  readonly check?: Grant | undefined
  readonly answer?: Grant
  readonly shares?: Shares
  readonly exploreAtMost?: Grant
}): Plan => {
  const check = options.check ?? {}
  return {
    exploreAtMost: options.exploreAtMost,
    _tag: "Shares",
    shares: options.shares ?? defaultShares,
    verifier: Object.values(check).some((amount) => amount > 0),
    answer: { steps: 1, ticks: 1, ...options.answer },
    check,
  }
}

/** `percent` of `amount`, rounded down, exact up to 2^53 - 1. */
export const floorShare = (amount: number, percent: number): number =>
  Math.floor(amount / 100) * percent + Math.floor(((amount % 100) * percent) / 100)

/**
 * Splits one counter, minimum first: output gets what one answer needs, then verify what one check needs, then each
 * the floor of its share, and what remains is explore.
 *
 * Largest-remainder rounding would give a one-step account its step as explore: it could search and never answer.
 *
 * **Example** (Ten steps, with a verifier)
 *
 * ```ts
 * import { Budget } from "bursar"
 *
 * Budget.splitCounter(10, { shares: Budget.defaultShares, verifier: true, answer: 1, check: 1 })
 * // => { explore: 6, retry: 1, verify: 2, output: 1 }
 * ```
 *
 * @category reserves
 * @since 0.1.0
 */
export const splitCounter = (
  grant: number,
  plan: { readonly shares: Shares; readonly verifier: boolean; readonly answer: number; readonly check: number },
): PerReserve<number> => {
  const output = Math.min(grant, Math.max(plan.answer, floorShare(grant, plan.shares.output)))
  const verify = plan.verifier
    ? Math.min(grant - output, Math.max(plan.check, floorShare(grant, plan.shares.verify)))
    : 0
  const retry = Math.min(grant - output - verify, floorShare(grant, plan.shares.retry))
  return { explore: grant - output - verify - retry, retry, verify, output }
}

/** The wrap-up withdraws all tools, so a tool call kept for the output could never be spent: its share is explore. */
const sharesOf = (dimension: Dimension, shares: Shares): Shares =>
  dimension === "toolCalls" ? { ...shares, output: 0 } : shares

/**
 * Splits a grant once, at the opening of an account. Uncapped dimensions get 0 everywhere: they are counted, not
 * limited.
 *
 * **Fails with** `InvalidAmount` when explicit reserves add up to more than the grant (they are refused, not scaled),
 * `Insufficient` when the grant does not cover one answer (and one check).
 *
 * @category reserves
 * @since 0.1.0
 */
export const split = (grant: Grant, plan: Plan, account: string): Result.Result<PerReserve<Amounts>, Refusal> => {
  const wrong = plan.exploreAtMost === undefined ? undefined : wrongPercent(plan.exploreAtMost)
  if (wrong !== undefined) return Result.fail(wrong)
  return plan._tag === "Shares" ? splitByShares(grant, plan, account) : splitExplicitly(grant, plan)
}

const wrongPercent = (percents: Grant): Refusal | undefined => {
  const valid = validate(percents, "reserves.exploreAtMost")
  if (Result.isFailure(valid)) return valid.failure
  const d = dimensions.find((d) => (percents[d] ?? 0) > 100)
  return d === undefined
    ? undefined
    : invalidAmount(`reserves.exploreAtMost.${d}`, percents[d], "give at most 100 percent")
}

const splitByShares = (
  grant: Grant,
  plan: Extract<Plan, { _tag: "Shares" }>,
  account: string,
): Result.Result<PerReserve<Amounts>, Refusal> => {
  const caps = capped(grant)
  const minimum = minimumOf(plan)
  if (Result.isFailure(minimum)) return Result.fail(minimum.failure)
  const { answer, check } = minimum.success
  const needed = add(answer, check)
  const short = belowMinimum(amounts(grant), needed, caps, account)
  if (short !== undefined) return Result.fail(short)
  const parts = (dimension: Dimension): PerReserve<number> =>
    splitCounter(grant[dimension] ?? 0, {
      shares: sharesOf(dimension, plan.shares),
      verifier: plan.verifier,
      answer: answer[dimension],
      check: check[dimension],
    })
  const bySplit = (reserve: Reserve): Amounts => map((dimension) => (caps[dimension] ? parts(dimension)[reserve] : 0))
  return Result.succeed({
    explore: bySplit("explore"),
    retry: bySplit("retry"),
    verify: bySplit("verify"),
    output: bySplit("output"),
  })
}

/** What is kept in any case; a check is only made where there is a verifier. */
const minimumOf = (
  plan: Extract<Plan, { _tag: "Shares" }>,
): Result.Result<{ readonly answer: Amounts; readonly check: Amounts }, Refusal> => {
  const { output, verify, retry } = plan.shares
  for (const [name, share] of Object.entries({ output, verify, retry })) {
    if (!isNatural(share)) return Result.fail(invalidAmount(`reserves.shares.${name}`, share, "give whole percent"))
  }
  if (output + verify + retry > 100) {
    return Result.fail(invalidAmount("reserves.shares", output + verify + retry, "keep at most 100 percent"))
  }
  const answer = validate(plan.answer, "reserves.answer")
  if (Result.isFailure(answer)) return Result.fail(answer.failure)
  const check = validate(plan.check, "reserves.check")
  if (Result.isFailure(check)) return Result.fail(check.failure)
  return Result.succeed({ answer: amounts(answer.success), check: plan.verifier ? amounts(check.success) : zero })
}

/** The refusal for a grant that does not cover what the account cannot work without. */
const belowMinimum = (grant: Amounts, needed: Amounts, caps: Capped, account: string): Refusal | undefined => {
  const short = dimensions.filter((d) => caps[d] && grant[d] < needed[d])
  if (short.length === 0) return undefined
  return {
    _tag: "Insufficient",
    shortages: short.map((dimension) => ({
      dimension,
      reserve: "explore",
      asked: needed[dimension],
      available: grant[dimension],
      account,
      whose: "minimum" as const,
    })),
  }
}

const splitExplicitly = (
  grant: Grant,
  plan: Extract<Plan, { _tag: "Explicit" }>,
): Result.Result<PerReserve<Amounts>, Refusal> => {
  if (plan === undivided) return Result.succeed({ explore: amounts(grant), retry: zero, verify: zero, output: zero })
  const parts = { output: zero, verify: zero, retry: zero }
  for (const reserve of ["output", "verify", "retry"] as const) {
    const valid = validate(plan[reserve] ?? {}, `reserves.${reserve}`)
    if (Result.isFailure(valid)) return Result.fail(valid.failure)
    parts[reserve] = amounts(valid.success)
  }
  const { output, verify, retry } = parts
  const kept = add(add(output, verify), retry)
  for (const dimension of dimensions) {
    const cap = grant[dimension]
    if (kept[dimension] > (cap ?? 0)) {
      const remedy =
        cap === undefined ? "cap that dimension or leave it out of the reserves" : `keep at most the grant of ${cap}`
      return Result.fail({
        _tag: "InvalidAmount",
        field: `reserves.*.${dimension}`,
        value: String(kept[dimension]),
        remedy,
      })
    }
  }
  const explore = map((d) => (grant[d] === undefined ? 0 : (grant[d] ?? 0) - kept[d]))
  return Result.succeed({ explore, retry, verify, output })
}
