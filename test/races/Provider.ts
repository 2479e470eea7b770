/**
 * The side that bills. It keeps its own count, which no ledger can talk it out of, and watches it against the caps.
 */
import * as Effect from "effect/Effect"
import type { Dimension, Grant } from "../../src/budget/Budget.ts"
import type { Call } from "./Plan.ts"
import { ticks } from "./Schedule.ts"

/** What a call fails with, on purpose. */
export class CallFailed {
  readonly _tag = "CallFailed"
}

/** What the counter refuses with. */
export class NoRoom {
  readonly _tag = "NoRoom"
}

/** What a call dies of, on purpose; any other defect is a mistake. */
export class Planned extends Error {}

/** Whether a call was billed before it ended, however it ended. */
export interface Answer {
  billed: boolean
}

export class Provider {
  readonly billed: { [D in Dimension]?: number } = {}

  /** Steps aside, bills, steps aside, ends: an interruption may come before the bill or after it. */
  answer(call: Call, answer: Answer): Effect.Effect<void, CallFailed> {
    return ticks(call.before).pipe(
      Effect.flatMap(() => {
        answer.billed = true
        for (const d in call.bill) {
          const dimension = d as Dimension
          this.billed[dimension] = (this.billed[dimension] ?? 0) + call.bill[dimension]!
        }
        return ticks(call.after)
      }),
      Effect.flatMap((): Effect.Effect<void, CallFailed> => {
        if (call.end === "succeeds") return Effect.void
        return call.end === "fails" ? Effect.fail(new CallFailed()) : Effect.die(new Planned("a call dies"))
      }),
    )
  }
}

/** How far the largest of some amounts is above its cap, and what part of the cap that is. */
export interface Overshoot {
  readonly amount: number
  readonly part: number
}

export const none: Overshoot = { amount: 0, part: 0 }

export const overshoot = (cap: Grant, spent: Grant): Overshoot => {
  let most = none
  for (const d in cap) {
    const limit = cap[d as Dimension]!
    const amount = (spent[d as Dimension] ?? 0) - limit
    if (amount / limit > most.part) most = { amount, part: amount / limit }
  }
  return most
}

export const larger = (a: Overshoot, b: Overshoot): Overshoot => (b.part > a.part ? b : a)
