/**
 * The time of an account: one deadline, and for an agent the points at which exploring and verifying end before it.
 *
 * Time is not additive and never refunded: a child's deadline is the minimum of what it asks and of the point at which
 * the reserve that funds it ends in its parent, so a child always ends before its parent must answer.
 *
 * **Units**: milliseconds, on the clock of the run.
 */
import * as Result from "effect/Result"
import { invalidAmount, isNatural, maximum } from "./Dimension.ts"
import type { InvalidAmount, Refusal } from "./Refusal.ts"
import type { Reserve } from "./Reserve.ts"

/**
 * Until when each reserve may dispatch. Absent altogether when the account has no deadline.
 *
 * @category deadlines
 * @since 0.1.0
 */
export interface Window {
  readonly exploreEndMillis: number
  readonly verifyEndMillis: number
  readonly deadlineMillis: number
}

/**
 * How the window of an account is divided.
 *
 * - `scope`: one window; every reserve ends at the deadline.
 * - `agent`: output owns the last min(15 %, 30 s), and with a verifier verify owns the min(25 %, 60 s) before that,
 *   unless explicit times are given.
 *
 * @category deadlines
 * @since 0.1.0
 */
export type WindowPlan =
  | { readonly _tag: "Scope" }
  | {
      readonly _tag: "Agent"
      readonly verifier: boolean
      readonly outputMillis?: number | undefined
      readonly verifyMillis?: number | undefined
    }

/** The first time from outside that is not a natural number of milliseconds, or lies past what can be counted. */
export const invalidTime = (
  opening: {
    readonly wallClockMillis?: number | undefined
    readonly minimumMillis?: number | undefined
    readonly window?: WindowPlan | undefined
  },
  nowMillis: number,
): InvalidAmount | undefined => {
  const { wallClockMillis, minimumMillis, window } = opening
  if (wallClockMillis === undefined && minimumMillis === undefined && window === undefined) return undefined
  const given: Record<string, number | undefined> = { wallClockMillis, minimumMillis }
  if (window?._tag === "Agent") {
    given["window.outputMillis"] = window.outputMillis
    given["window.verifyMillis"] = window.verifyMillis
  }
  const wrong = Object.entries(given).find(([, value]) => value !== undefined && !isNatural(value))
  if (wrong !== undefined) return invalidAmount(...wrong, "give whole milliseconds, 0 or more")
  return nowMillis + (wallClockMillis ?? 0) > maximum
    ? invalidAmount("wallClockMillis", wallClockMillis, "give a time within the range of the clock")
    : undefined
}

/** Divides the time between `openedAtMillis` and `deadlineMillis`. */
export const divide = (
  times: { readonly openedAtMillis: number; readonly deadlineMillis: number },
  plan: WindowPlan,
): Window => {
  const { deadlineMillis } = times
  if (plan._tag === "Scope") {
    return { exploreEndMillis: deadlineMillis, verifyEndMillis: deadlineMillis, deadlineMillis }
  }
  const length = deadlineMillis - times.openedAtMillis
  const output = Math.min(length, plan.outputMillis ?? Math.min(Math.floor(length * 0.15), 30_000))
  const verify =
    plan.verifier || plan.verifyMillis !== undefined
      ? Math.min(length - output, plan.verifyMillis ?? Math.min(Math.floor(length * 0.25), 60_000))
      : 0
  const verifyEndMillis = deadlineMillis - output
  return { exploreEndMillis: verifyEndMillis - verify, verifyEndMillis, deadlineMillis }
}

/**
 * The instant at which a reserve may no longer dispatch; `undefined` without a deadline.
 *
 * @category deadlines
 * @since 0.1.0
 */
export const endOf = (window: Window | undefined, reserve: Reserve): number | undefined => {
  if (window === undefined) return undefined
  switch (reserve) {
    case "explore":
    case "retry":
      return window.exploreEndMillis
    case "verify":
      return window.verifyEndMillis
    case "output":
      return window.deadlineMillis
  }
}

/** The same window, later: time stands still for a paused account. */
export const shift = (window: Window, byMillis: number): Window => ({
  exploreEndMillis: window.exploreEndMillis + byMillis,
  verifyEndMillis: window.verifyEndMillis + byMillis,
  deadlineMillis: window.deadlineMillis + byMillis,
})

/** The same window, cut off at `limitMillis`. */
export const clamp = (window: Window, limitMillis: number): Window => ({
  exploreEndMillis: Math.min(window.exploreEndMillis, limitMillis),
  verifyEndMillis: Math.min(window.verifyEndMillis, limitMillis),
  deadlineMillis: Math.min(window.deadlineMillis, limitMillis),
})

/**
 * The deadline of a child: the earlier of what it asked and of the end of the funding reserve in its parent.
 *
 * **Fails with** `DeadlinePassed` when less than `neededMillis` would be left.
 */
export const childDeadline = (options: {
  readonly parent: Window | undefined
  readonly reserve: Reserve
  readonly nowMillis: number
  readonly askedMillis: number | undefined
  readonly neededMillis: number
}): Result.Result<number | undefined, Refusal> => {
  const limit = endOf(options.parent, options.reserve)
  const asked = options.askedMillis === undefined ? undefined : options.nowMillis + options.askedMillis
  const deadline = limit === undefined ? asked : asked === undefined ? limit : Math.min(limit, asked)
  if (deadline === undefined) return Result.succeed(undefined)
  const leftMillis = Math.max(0, deadline - options.nowMillis)
  return leftMillis <= 0 || leftMillis < options.neededMillis
    ? Result.fail({
        _tag: "DeadlinePassed",
        reserve: options.reserve,
        leftMillis,
        neededMillis: Math.max(1, options.neededMillis),
      })
    : Result.succeed(deadline)
}
