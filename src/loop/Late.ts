/**
 * Late correction: before an agent ends, the providers of calls that were booked at their hold are asked once for what
 * these came to. What they can tell corrects the books; what they cannot leaves them as they are.
 */
import * as Effect from "effect/Effect"
import { within } from "../tool/Bounded.ts"
import type { Machine } from "./Machine.ts"

/** The longest that all answers together may take. */
const limitMillis = 5_000

/** How many are asked at a time. */
const concurrency = 8

/**
 * Corrects what was assumed, within its own short limit and never beyond the deadline of the agent. A hold is corrected at
 * most once, and the corrections that came in time are kept whatever becomes of the others.
 */
export const correct = <A, R>(machine: Machine<A, R>): Effect.Effect<void, never, R> =>
  Effect.suspend(() => {
    const { policy, purse, stored } = machine
    const left = purse.ledger.leftMillis(purse.account, "output") ?? Infinity
    const { laterBill } = policy
    if (laterBill === undefined || left === 0) return Effect.void
    const asked = stored.splice(0)
    const each = Effect.forEach(
      asked,
      ({ hold, ...response }) =>
        Effect.suspend(() => laterBill(response, machine.options.freeze)).pipe(
          Effect.map((actual) => {
            if (actual !== undefined) purse.ledger.adjust({ account: purse.account, id: hold }, actual)
          }),
          // A provider that breaks down tells nothing.
          Effect.catchDefect(() => Effect.void),
        ),
      { concurrency, discard: true },
    )
    const millis = Math.min(limitMillis, left)
    return Effect.uninterruptibleMask((restore) => Effect.asVoid(within(each, { millis, late: undefined, restore })))
  })
